package app

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
)

// servePage opens the engine to other programs and shows who uses it.
type servePage struct {
	a       *App
	address *widget.Entry
	key     *widget.Entry
	toggle  *fynewidget.Button
	state   *widget.Light
	words   *widget.Paragraph
	fault   *fyne.Container
	table   *fyne.Container
	kind    string
	snip    *fyne.Container
	body    *fyne.Container
	root    fyne.CanvasObject
	inView  bool
	seen    string
}

// defaultAddress is where other programs find the engine unless the person
// says otherwise: this computer only.
const defaultAddress = "127.0.0.1:8484"

func newServe(a *App) page {
	p := &servePage{a: a, kind: "curl", state: widget.NewLight(widget.StateUnknown), words: widget.NewParagraph(""), fault: widget.V(0), table: widget.V(4), snip: widget.V(8)}
	p.address = a.field(defaultAddress)
	p.key = a.field(tr("none"))
	p.address.OnChanged = func(s string) { a.change(func(x *Settings) { x.Address = strings.TrimSpace(s) }); p.snippets() }
	p.key.OnChanged = func(s string) { a.change(func(x *Settings) { x.Key = strings.TrimSpace(s) }); p.snippets() }
	p.toggle = fynewidget.NewButton("", p.flip)
	p.toggle.Importance = fynewidget.HighImportance
	form := widget.V(12,
		widget.H(10, p.state, widget.Flex(p.words), p.toggle), p.fault,
		widget.HTop(16, widget.Flex(widget.V(5, widget.NewCaption(tr("Address")), p.address)),
			widget.Flex(widget.V(5, widget.NewCaption(tr("Key that programs must show")), widget.H(4, widget.Flex(p.key),
				widget.NewIconButton("key", tr("Make a new key"), func() { p.key.SetText(newKey()) }),
				widget.NewIconButton("copy", tr("Copy the key"), func() { a.fyne.Clipboard().SetContent(p.key.Text) }))))),
		widget.NewNote(tr("127.0.0.1 is this computer alone. 0.0.0.0 is everyone on the network: then a key is needed.")))
	p.body = widget.V(22, widget.Box(form), widget.V(8, widget.NewHeading(tr("Requests")), p.table), p.snip)
	pad := theme.Size(widget.SizePage)
	p.root = widget.NewPageScroll(widget.Inset(4, pad, 28, pad, widget.AtMost(960, p.body)))
	if a.deps.Gateway != nil {
		a.stops = append(a.stops, a.deps.Gateway.Watch(func() { a.ui(p.requests) }))
	}
	p.storeOpened()
	return p
}

func (p *servePage) object() fyne.CanvasObject { return p.root }

func (p *servePage) shown(on bool) {
	p.inView = on
	if on {
		p.draw()
	}
}

func (p *servePage) storeOpened() {
	a := p.a
	address := a.settings.Address
	if address == "" {
		address = defaultAddress
	}
	set := func(e *widget.Entry, s string) {
		f := e.OnChanged
		e.OnChanged = nil
		e.SetText(s)
		e.OnChanged = f
	}
	set(p.address, address)
	set(p.key, a.settings.Key)
	p.draw()
}

func (p *servePage) engineChanged(EngineState) { p.draw() }

// newKey is a random key.
func newKey() string {
	b := make([]byte, 24)
	rand.Read(b)
	return "oc-" + base64.RawURLEncoding.EncodeToString(b)
}

// flip opens or closes the door.
func (p *servePage) flip() {
	g := p.a.deps.Gateway
	if g == nil {
		return
	}
	if g.Addr() != "" {
		p.a.background(g.Close, func(err error) {
			p.a.failIf(err)
			p.a.change(func(s *Settings) { s.Serve = false })
			p.draw()
		})
		return
	}
	p.open()
}

// open listens; what is wrong is said where the address stands.
func (p *servePage) open() {
	addr, key := strings.TrimSpace(p.address.Text), strings.TrimSpace(p.key.Text)
	if addr == "" {
		addr = defaultAddress
	}
	if !loopback(addr) && key == "" {
		p.problem(tr("Everyone on the network could use the engine. Set a key first."), tr("Make a key"), func() { p.key.SetText(newKey()); p.open() })
		return
	}
	p.a.background(func() error { return p.a.deps.Gateway.Open(addr, key) }, func(err error) {
		if err != nil {
			p.problem(sentence(err), tr("Try the next port"), func() {
				p.address.SetText(nextPort(addr))
				p.open()
			})
			return
		}
		p.problem("", "", nil)
		p.a.change(func(s *Settings) { s.Serve = true })
		p.draw()
		if p.a.engine.Phase == EngineOff {
			p.a.startLast()
		}
	})
}

func (p *servePage) problem(text, button string, do func()) {
	p.fault.Objects = nil
	if text != "" {
		p.fault.Objects = []fyne.CanvasObject{notice(widget.StateAct, text, button, do)}
	}
	p.fault.Refresh()
	p.body.Refresh()
}

// loopback says whether an address is this computer alone.
func loopback(addr string) bool {
	host := addr
	if i := strings.LastIndex(addr, ":"); i >= 0 {
		host = addr[:i]
	}
	host = strings.Trim(host, "[]")
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

func nextPort(addr string) string {
	i := strings.LastIndex(addr, ":")
	n := 0
	if i < 0 {
		return defaultAddress
	}
	fmt.Sscan(addr[i+1:], &n)
	if n < 1024 || n >= 65535 {
		n = 8484
	}
	return fmt.Sprintf("%s:%d", addr[:i], n+1)
}

func (p *servePage) draw() {
	g := p.a.deps.Gateway
	switch {
	case g == nil:
		p.state.Set(widget.StateUnknown)
		p.words.Set(tr("Other programs cannot be served by this build."))
		p.toggle.Disable()
	case g.Addr() != "":
		state, words := widget.StateGood, tr("Open at http://%s/v1. The pack is %s.", g.Addr(), orDash(p.a.engine.Pack))
		if p.a.engine.Phase != EngineReady {
			state, words = widget.StateWatch, tr("Open at http://%s/v1, but no pack is loaded: requests are refused until one is.", g.Addr())
		}
		p.state.Set(state)
		p.words.Set(words)
		p.toggle.Importance = fynewidget.MediumImportance
		p.toggle.SetText(tr("Close"))
		p.address.Disable()
		p.key.Disable()
	default:
		p.state.Set(widget.StateUnknown)
		p.words.Set(tr("Closed. Only this window talks to the engine."))
		p.toggle.Importance = fynewidget.HighImportance
		p.toggle.SetText(tr("Open for other programs"))
		p.address.Enable()
		p.key.Enable()
	}
	p.requests()
	p.snippets()
}

// requests lists the last requests, the newest first.
func (p *servePage) requests() {
	g := p.a.deps.Gateway
	if g == nil || !p.inView {
		return
	}
	list := g.Requests()
	seen := fmt.Sprint(list)
	if seen == p.seen && len(p.table.Objects) > 0 {
		return
	}
	p.seen = seen
	p.table.Objects = nil
	if len(list) == 0 {
		p.table.Add(widget.NewNote(tr("Nobody has asked yet.")))
	} else {
		var rows [][]string
		for i, r := range list {
			if i == 40 {
				break
			}
			tok, speed := "", ""
			if r.Tokens > 0 {
				tok = fmt.Sprint(r.Tokens)
			}
			if r.TokS > 0 {
				speed = rate(r.TokS)
			}
			result := r.Result
			if r.Busy {
				result = tr("answering")
			}
			rows = append(rows, []string{r.Time.Format("15:04:05"), r.Client, r.Path, tok, speed, span(r.Took), result})
		}
		p.table.Add(grid([]string{tr("time"), tr("from"), tr("what"), tr("tokens"), tr("rate"), tr("took"), tr("result")}, rows, 3, 4, 5))
	}
	p.table.Refresh()
}

// snippets are ready-made lines for common clients.
func (p *servePage) snippets() {
	addr := strings.TrimSpace(p.address.Text)
	if addr == "" {
		addr = defaultAddress
	}
	base := "http://" + strings.Replace(addr, "0.0.0.0", "127.0.0.1", 1)
	key := strings.TrimSpace(p.key.Text)
	kinds := []struct{ id, lang, text string }{
		{"curl", "sh", curlText(base, key)},
		{"Python", "python", pythonText(base, key)},
		{"JavaScript", "javascript", jsText(base, key)},
		{"Anthropic", "sh", anthropicText(base, key)},
		{tr("environment"), "sh", "export OPENAI_BASE_URL=" + base + "/v1\nexport OPENAI_API_KEY=" + orKey(key)},
	}
	p.snip.Objects = nil
	row := widget.H(6, widget.Flex(widget.NewHeading(tr("Ready-made"))))
	var code fyne.CanvasObject
	for i, k := range kinds {
		chip := widget.NewChip("", k.id, false, func() { p.kind = k.id; p.snippets() })
		if k.id == p.kind || i == 0 && code == nil {
			code = widget.NewCode(k.lang, k.text)
		}
		if k.id == p.kind {
			chip.SetColor(widget.ColorAccent)
		}
		row.Add(chip)
	}
	p.snip.Add(row)
	p.snip.Add(code)
	p.snip.Refresh()
	p.body.Refresh()
}

func orKey(key string) string {
	if key == "" {
		return "none"
	}
	return key
}

func curlText(base, key string) string {
	auth := ""
	if key != "" {
		auth = " \\\n  -H \"Authorization: Bearer " + key + "\""
	}
	return "curl " + base + "/v1/chat/completions" + auth + " \\\n  -H \"Content-Type: application/json\" \\\n  -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story about a fox\"}]}'"
}

func pythonText(base, key string) string {
	return "from openai import OpenAI\n\nclient = OpenAI(base_url=\"" + base + "/v1\", api_key=\"" + orKey(key) + "\")\nfor piece in client.chat.completions.create(\n    model=\"outcrop\", stream=True,\n    messages=[{\"role\": \"user\", \"content\": \"Tell me a story about a fox\"}]):\n    if piece.choices:\n        print(piece.choices[0].delta.content or \"\", end=\"\", flush=True)"
}

func jsText(base, key string) string {
	return "const answer = await fetch(\"" + base + "/v1/chat/completions\", {\n  method: \"POST\",\n  headers: { \"Content-Type\": \"application/json\", Authorization: \"Bearer " + orKey(key) + "\" },\n  body: JSON.stringify({ messages: [{ role: \"user\", content: \"Tell me a story about a fox\" }] }),\n});\nconsole.log((await answer.json()).choices[0].message.content);"
}

func anthropicText(base, key string) string {
	return "export ANTHROPIC_BASE_URL=" + base + "\nexport ANTHROPIC_API_KEY=" + orKey(key)
}
