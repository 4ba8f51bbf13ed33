package app

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/engine/plan"
)

// packPanel is everything known of one pack.
type packPanel struct {
	p      *packsPage
	body   *fyne.Container
	scroll *widget.PageScroll
	root   *fyne.Container
	seen   string // what was drawn, to leave it alone when nothing changed
	all    bool   // every key of the file is shown
}

func newPackPanel(p *packsPage) *packPanel {
	d := &packPanel{p: p, body: widget.V(16)}
	pad := theme.Size(widget.SizePage)
	d.scroll = widget.NewPageScroll(widget.Inset(4, pad, 24, pad, d.body))
	d.root = widget.Over(widget.NewGround(widget.ColorSurface, "", 0), &fyne.Container{Layout: edgeLayout{}, Objects: []fyne.CanvasObject{widget.NewGround(widget.ColorLine, "", 0), d.scroll}})
	return d
}

func (d *packPanel) set(e catalog.Entry, k *packDetail) {
	words, on := startWords(d.p.a, e, k)
	if words == tr("See what would fit") { // it stands below
		words = tr("Look again")
	}
	seen := fmt.Sprint(e.Name, e.Path, k.info != nil, k.plan, k.infoErr, k.planErr, k.health, words, on, d.all)
	if seen == d.seen {
		return
	}
	d.seen = seen
	a := d.p.a
	d.body.Objects = nil
	head := widget.H(6, widget.Flex(widget.NewHeading(e.Name).Cutting(80)))
	if !e.Demo {
		head.Add(widget.NewIconButton("trash", tr("Take off the list; files stay"), func() { a.packs.remove(e) }))
	}
	head.Add(widget.NewIconButton("close", tr("Close (Esc)"), func() { d.p.open("") }))
	d.body.Add(widget.Inset(10, 0, 0, 0, head))
	start := fynewidget.NewButton(words, func() { d.p.startOrStop(e.Name) })
	start.Importance = fynewidget.HighImportance
	if !on {
		start.Disable()
	}
	if words == tr("Stop") || words == tr("Cancel") {
		start.Importance = fynewidget.MediumImportance
	}
	row := widget.H(8, start)
	if a.engine.Phase == EngineReady && strings.EqualFold(a.engine.Pack, e.Name) {
		row.Add(fynewidget.NewButton(tr("Chat with it"), func() { a.chat().choosePack(e.Name); a.visit("chat") }))
	}
	d.body.Add(row)
	switch {
	case k.health.Status == catalog.Gone || k.health.Status == catalog.Changed:
		d.body.Add(notice(widget.StateWatch, capital(k.health.Text), tr("Look again"), func() { a.packs.again(e) }))
	case k.infoErr != nil:
		d.body.Add(notice(widget.StateAct, sentence(k.infoErr), tr("Look again"), func() { a.packs.again(e) }))
	case k.info != nil && !k.info.Known:
		d.body.Add(notice(widget.StateAct, capital(k.info.Problem), "", nil))
	}
	if k.plan != nil {
		d.fit(e, k.plan)
	} else if k.planErr != nil && k.info != nil && k.info.Known {
		d.body.Add(notice(widget.StateWatch, sentence(k.planErr), "", nil))
	}
	if k.info != nil {
		d.facts(e, k.info)
	}
	d.files(e, k)
	if k.info != nil {
		d.metadata(k.info)
	}
	d.body.Refresh()
	d.scroll.Refresh()
}

// fit is the picture with its sentence, what would help, and what was
// considered.
func (d *packPanel) fit(e catalog.Entry, p *plan.Plan) {
	pic := widget.NewFit(false)
	pic.Set(fitRows(p))
	box := widget.V(10, pic, widget.NewParagraph(fitSentence(p)), widget.NewNote(tr("Context %s tokens, KV cache %s, prompts in pieces of %d.", tokens(p.Context), p.KV, p.Chunk)))
	for _, r := range p.Reasons {
		box.Add(widget.NewNote(capital(r)))
	}
	for _, x := range p.Crossing { // between cards
		box.Add(widget.NewNote(capital(x)))
	}
	if len(p.Remedies) > 0 {
		list := widget.V(6, widget.NewCaption(tr("What would make it fit")))
		for _, r := range p.Remedies {
			row := widget.H(10, widget.Flex(widget.NewNote(capital(r.Text)).In(widget.ColorText)))
			if do := d.remedy(e, r); do != nil {
				row.Add(fynewidget.NewButton(tr("Do this"), do))
			}
			list.Add(row)
		}
		box.Add(list)
	}
	title := tr("How it fits")
	if !p.Fits {
		title = tr("Why it does not fit")
	}
	d.section(title, widget.Box(box))
	if p.Fits && len(p.Speed.Terms) > 0 {
		rows := [][]string{}
		for _, t := range p.Speed.Terms {
			rows = append(rows, []string{termName(t.Name), tr("%.1f ms", t.Ms), t.Why})
		}
		d.section(tr("Where the time of a token goes"), grid([]string{tr("part"), tr("time"), tr("why")}, rows, 1))
	}
	d.alternatives(e, p)
	d.rates(e, p)
}

// remedy is what a change that makes the pack fit is done by; nil for one that
// cannot be done here, such as a smaller pack.
func (d *packPanel) remedy(e catalog.Entry, r plan.Remedy) func() {
	a := d.p.a
	switch r.Kind {
	case "context", "kv":
		return func() {
			a.change(func(s *Settings) {
				if r.Wishes.Context > 0 {
					s.Context = r.Wishes.Context
				}
				if r.Wishes.KV != "" {
					s.KV = r.Wishes.KV
				}
			})
			a.replan()
		}
	case "map":
		return func() { d.choose(e, r.Wishes.Placement) }
	case "cpu":
		return func() { a.runOn(e, deviceCPU) }
	case "cards":
		return func() { a.runOn(e, "") }
	}
	return nil
}

// termName is what a part of a token's time is called.
func termName(s string) string {
	if s == "cpu" {
		return tr("CPU")
	}
	return first(s)
}

// rates says how fast the machine is taken to be, and has it measured.
func (d *packPanel) rates(e catalog.Entry, p *plan.Plan) {
	if len(p.Rates) == 0 {
		return
	}
	a := d.p.a
	box := widget.V(4)
	for _, t := range p.Rates {
		box.Add(widget.NewNote(capital(t)))
	}
	if m, ok := a.deps.Packs.(measurer); ok {
		words := tr("Measure this machine")
		if p.Speed.Measured {
			words = tr("Measure again")
		}
		b := fynewidget.NewButton(words, nil)
		b.OnTapped = func() {
			b.Disable()
			b.SetText(tr("Measuring…"))
			a.slowly(func() error { return m.Measure(context.Background(), e) }, func(err error) {
				b.SetText(words)
				b.Enable()
				if err != nil {
					a.fail(err)
					return
				}
				a.replan()
			})
		}
		box.Add(widget.H(0, b))
	}
	d.section(tr("What the plan goes by"), widget.Box(box))
}

// alternatives are the placements that were considered: those that fit can be
// chosen, and the engine moves there if it has this pack.
func (d *packPanel) alternatives(e catalog.Entry, p *plan.Plan) {
	if len(p.Alternatives) == 0 && d.p.a.settings.Placements[e.Name] == "" {
		return
	}
	box := widget.V(0)
	line := func(name string, s plan.Speed, fits bool, why string, do fyne.CanvasObject) {
		speed := "—"
		if fits && s.DecodeHigh > 0 {
			speed = tr("%s tok/s", between(s.DecodeLow, s.DecodeHigh))
		}
		if len(box.Objects) > 0 {
			box.Add(widget.Rule())
		}
		left := widget.V(2, widget.NewNote(capital(name)).In(widget.ColorText))
		if why != "" {
			left.Add(widget.NewNote(capital(why)))
		}
		row := widget.H(12, widget.Flex(left), widget.NewCaption(speed).Mono().In(widget.ColorText))
		if do != nil {
			row.Add(do)
		}
		box.Add(widget.Inset(8, 0, 8, 0, row))
	}
	now := tr("chosen by the plan")
	if !p.Fits {
		now = tr("comes nearest to fitting")
	}
	var back fyne.CanvasObject
	if d.p.a.settings.Placements[e.Name] != "" {
		now = tr("chosen by you")
		b := fynewidget.NewButton(tr("Let the plan choose"), func() { d.choose(e, "") })
		back = b
	}
	line(p.Placement.Words(), p.Speed, p.Fits, now, back)
	for _, x := range p.Alternatives {
		var do fyne.CanvasObject
		if x.Fits {
			b := fynewidget.NewButton(tr("Use this"), func() { d.choose(e, x.Placement) })
			do = b
		}
		line(x.Placement.Words(), x.Speed, x.Fits, x.Why, do)
	}
	d.section(tr("Where it can live"), widget.Box(box))
}

// choose sets the placement of a pack, "" for the plan's choice, and loads it
// again where the engine has it.
func (d *packPanel) choose(e catalog.Entry, place plan.Placement) {
	a := d.p.a
	a.change(func(s *Settings) {
		m := maps.Clone(s.Placements)
		if m == nil {
			m = map[string]string{}
		}
		if m[e.Name] = string(place); place == "" {
			delete(m, e.Name)
		}
		s.Placements = m
	})
	a.packs.again(e)
	if (a.engine.Phase == EngineReady || a.engine.Phase == EngineLoading) && strings.EqualFold(a.engine.Pack, e.Name) {
		a.start(e)
	}
}

func (d *packPanel) section(title string, o fyne.CanvasObject) {
	d.body.Add(widget.V(8, widget.NewText(title).Bold(), o))
}

// facts lists what the header says, in words.
func (d *packPanel) facts(e catalog.Entry, in *PackInfo) {
	var rows [][]string
	add := func(name, value string) {
		if value != "" && value != "0" && value != bytes64(0) {
			rows = append(rows, []string{name, value})
		}
	}
	add(tr("Family"), in.Arch)
	add(tr("Made from"), in.Base)
	add(tr("By"), in.Author)
	add(tr("Licence"), in.Licence)
	add(tr("Size label"), in.SizeLabel)
	if in.Params > 0 {
		add(tr("Weights"), count(in.Params))
		add(tr("At work per token"), count(in.ActiveParams))
	}
	add(tr("Precision"), bits(in.Params, in.Bytes))
	add(tr("Quantised as"), in.Quantised)
	layers := fmt.Sprint(in.Layers)
	if in.Recurrent > 0 {
		layers = tr("%d, of which %d recurrent", in.Layers, in.Recurrent)
	}
	add(tr("Layers"), layers)
	if in.DraftLayers > 0 {
		add(tr("Draft blocks"), fmt.Sprint(in.DraftLayers))
	}
	add(tr("Width"), fmt.Sprint(in.Width))
	if in.Heads > 0 {
		add(tr("Heads"), tr("%d, %d for keys and values", in.Heads, in.KVHeads))
	}
	if in.Experts > 0 {
		text := tr("%d a layer, %d at a time", in.Experts, in.ExpertsUsed)
		if in.SharedExperts > 0 {
			text += tr(", %d shared", in.SharedExperts)
		}
		add(tr("Experts"), text)
		add(tr("One expert"), bytes64(in.OneExpert))
		add(tr("All experts"), bytes64(in.Expert))
	}
	add(tr("Everything else"), bytes64(in.Dense))
	add(tr("Read per token"), bytes64(in.Active))
	if kv, ok := in.KVPerToken["f16"]; ok && kv > 0 {
		add(tr("KV cache per token"), tr("%s as f16", bytes64(kv)))
	}
	add(tr("Trained context"), tokens(in.Context))
	add(tr("Vocabulary"), fmt.Sprint(in.Vocab))
	add(tr("Tokenizer"), in.Tokenizer)
	if in.ChatTemplate {
		add(tr("Chat template"), tr("its own"))
	} else {
		add(tr("Chat template"), tr("none: ChatML is used instead"))
	}
	d.section(tr("Facts"), grid(nil, rows, -1))
	if in.Description != "" {
		d.body.Add(widget.NewNote(in.Description))
	}
	if len(in.Formats) > 0 {
		var mix [][]string
		for _, f := range in.Formats {
			mix = append(mix, []string{f.Name, fmt.Sprint(f.Tensors), bytes64(f.Bytes)})
		}
		d.section(tr("Tensors by type"), grid([]string{tr("type"), tr("tensors"), tr("bytes")}, mix, 1, 2))
	}
}

func (d *packPanel) files(e catalog.Entry, k *packDetail) {
	box := widget.V(4)
	state := widget.StateUnknown
	switch k.health.Status {
	case catalog.Good:
		state = widget.StateGood
	case catalog.Changed, catalog.Odd:
		state = widget.StateWatch
	case catalog.Gone:
		state = widget.StateAct
	}
	if k.health.Text != "" {
		box.Add(widget.HTop(8, widget.NewLight(state), widget.Flex(widget.NewNote(capital(k.health.Text)))))
	}
	for _, f := range e.Files {
		box.Add(widget.H(8, widget.Flex(widget.NewCaption(filepath.Base(f.Path)).Mono().In(widget.ColorText).Cutting(80)), widget.NewCaption(bytes64(f.Size)).Mono()))
	}
	dir := filepath.Dir(e.Path)
	box.Add(widget.H(4, widget.Flex(widget.NewCaption(dir).Cutting(80)), widget.NewIconButton("copy", tr("Copy the path"), func() { d.p.a.fyne.Clipboard().SetContent(e.Path) })))
	if e.Origin != "" {
		box.Add(widget.NewCaption(tr("from %s", e.Origin)).Cutting(80))
	}
	d.section(tr("Files"), box)
}

// metadata is every key of the file, and the chat template.
func (d *packPanel) metadata(in *PackInfo) {
	const template = "tokenizer.chat_template"
	if t, ok := in.Metadata[template].(string); ok && t != "" {
		d.section(tr("Chat template"), widget.NewCode("jinja", clip(t, 6000)))
	}
	var rows [][]string
	for _, k := range slices.Sorted(maps.Keys(in.Metadata)) {
		if k == template {
			continue
		}
		rows = append(rows, []string{k, clip(metaWords(in.Metadata[k]), 160)})
	}
	if len(rows) == 0 {
		return
	}
	if !d.all && len(rows) > 12 {
		n := len(rows)
		d.section(tr("Metadata"), widget.V(6, grid(nil, rows[:12], -1), widget.H(0, widget.NewLink(tr("Show all %d keys", n), func() {
			d.all = true
			if e, ok := d.p.a.packs.named(d.p.chosen); ok {
				d.set(e, d.p.a.packs.detail(e))
			}
		}))))
		return
	}
	d.section(tr("Metadata"), grid(nil, rows, -1))
}

// metaWords writes a value of a file's metadata in one line.
func metaWords(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return tr("%v values, first %v", v["length"], v["first"])
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// grid is a small table: dim first column, values wrapped, numbers to the
// right where asked.
func grid(head []string, rows [][]string, numbers ...int) fyne.CanvasObject {
	g := &gridLayout{}
	c := &fyne.Container{Layout: g}
	if len(head) > 0 {
		rows = append([][]string{head}, rows...)
	}
	for i, r := range rows {
		g.cols = len(r)
		for j, s := range r {
			right := slices.Contains(numbers, j)
			var o fyne.CanvasObject
			switch {
			case i == 0 && len(head) > 0:
				t := widget.NewCaption(s)
				if right {
					t.Right()
				}
				o = t
			case right:
				o = widget.NewCaption(s).Mono().In(widget.ColorText).Right()
			case j == 0 && len(numbers) > 0 && numbers[0] == -1:
				o = widget.NewCaption(s).Cutting(60)
			default:
				o = widget.NewNote(s).In(widget.ColorText)
			}
			g.natural = append(g.natural, fyne.MeasureText(s, theme.CaptionTextSize(), fyne.TextStyle{Monospace: right}).Width+3)
			c.Objects = append(c.Objects, o)
		}
	}
	g.rows = len(rows)
	return c
}

// gridLayout gives each column what it needs and the last one the rest.
type gridLayout struct {
	cols, rows int
	natural    []float32
	width      float32
}

func (g *gridLayout) widths(room float32) []float32 {
	w := make([]float32, g.cols)
	for i, n := range g.natural {
		w[i%g.cols] = max(w[i%g.cols], n)
	}
	used := float32(0)
	for i := range w {
		if i < g.cols-1 {
			w[i] = min(w[i], room*0.42)
			used += w[i] + 12
		}
	}
	w[g.cols-1] = max(60, room-used)
	return w
}

func (g *gridLayout) place(objs []fyne.CanvasObject, width float32, move bool) float32 {
	if g.cols == 0 {
		return 0
	}
	w := g.widths(width)
	y := float32(0)
	for r := range g.rows {
		h := float32(0)
		for c := range g.cols {
			h = max(h, widget.HeightAt(objs[r*g.cols+c], w[c]))
		}
		x := float32(0)
		for c := range g.cols {
			if move {
				o := objs[r*g.cols+c]
				o.Resize(fyne.NewSize(w[c], widget.HeightAt(o, w[c]))) // at the top of its row, as wrapped neighbours are
				o.Move(fyne.NewPos(x, y))
			}
			x += w[c] + 12
		}
		y += h + 5
	}
	return y
}

func (g *gridLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	g.width = s.Width
	g.place(objs, s.Width, true)
}

func (g *gridLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(120, g.place(objs, max(g.width, 200), false))
}
