package widget

import (
	"image/color"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"
)

// span is a piece of one line of code in one colour.
type span struct {
	text  string
	color fyne.ThemeColorName
}

// codeText draws lines of code. Fyne's TextGrid makes an object of every
// character; this makes one of every coloured piece, and only for the lines
// that can be seen.
type codeText struct {
	fynewidget.BaseWidget
	lines       [][]span
	wrap        bool
	top, bottom float32 // what can be seen; bottom 0: everything
	width       float32
	rows        []codeRow // lines as shown: cut where they wrap
	rowsFor     int       // columns that rows were cut for; -1: stale
	longest     int       // columns of the longest line
}

// codeRow is one row on the screen.
type codeRow []span

func newCodeText() *codeText {
	t := &codeText{rowsFor: -1}
	t.ExtendBaseWidget(t)
	return t
}

// runLimit is the most characters drawn as one object: a texture has a limit.
const runLimit = 400

// setLines replaces the text and keeps the colours of lines that are equal.
func (t *codeText) setLines(source string) {
	parts := strings.Split(strings.ReplaceAll(source, "\t", "    "), "\n")
	lines := make([][]span, len(parts))
	for i, p := range parts {
		if i < len(t.lines) && spanText(t.lines[i]) == p {
			lines[i] = t.lines[i]
			continue
		}
		lines[i] = []span{{p, ColorText}}
	}
	t.lines = lines
	t.stale()
}

func (t *codeText) setColours(lines [][]span) {
	if lines != nil {
		t.lines = lines
		t.stale()
	}
}

func (t *codeText) setWrap(on bool) {
	t.wrap = on
	t.stale()
}

func (t *codeText) stale() {
	t.rowsFor = -1
	t.longest = 0
	for _, l := range t.lines {
		t.longest = max(t.longest, columns(spanText(l)))
	}
	t.Refresh()
}

func (t *codeText) setWindow(top, bottom float32) {
	_, h := t.cell()
	if int(top/h) == int(t.top/h) && int(bottom/h) == int(t.bottom/h) {
		return
	}
	t.top, t.bottom = top, bottom
	t.Refresh()
}

func (t *codeText) cell() (w, h float32) {
	m := fyne.MeasureText("M", theme.TextSize(), fyne.TextStyle{Monospace: true})
	return m.Width, m.Height + 2
}

func spanText(l []span) string {
	if len(l) == 1 {
		return l[0].text
	}
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// columns counts cells; characters outside Latin may take two.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x1100 {
			n++
		}
	}
	return n
}

// layout cuts lines into rows of at most cols columns; 0 means no limit.
func (t *codeText) layout(cols int) []codeRow {
	if t.rowsFor == cols && t.rows != nil {
		return t.rows
	}
	t.rows = t.rows[:0]
	for _, l := range t.lines {
		if cols == 0 || columns(spanText(l)) <= cols {
			t.rows = append(t.rows, l)
			continue
		}
		var row codeRow
		left := cols
		for _, s := range l {
			for columns(s.text) > left {
				cut, n := 0, 0
				for i, r := range s.text {
					w := 1
					if r >= 0x1100 {
						w = 2
					}
					if n+w > left {
						break
					}
					n += w
					cut = i + len(string(r))
				}
				if cut == 0 && left == cols {
					cut = len(string([]rune(s.text)[0]))
				}
				if cut > 0 {
					row = append(row, span{s.text[:cut], s.color})
				}
				t.rows = append(t.rows, row)
				row, left, s.text = nil, cols, s.text[cut:]
			}
			row = append(row, s)
			left -= columns(s.text)
		}
		t.rows = append(t.rows, row)
	}
	t.rowsFor = cols
	return t.rows
}

func (t *codeText) current() []codeRow {
	if !t.wrap || t.width <= 0 {
		return t.layout(0)
	}
	w, _ := t.cell()
	return t.layout(max(8, int(t.width/w)))
}

// CreateRenderer draws the rows in view.
func (t *codeText) CreateRenderer() fyne.WidgetRenderer { return &codeRenderer{t: t} }

type codeRenderer struct {
	t     *codeText
	texts []fyne.CanvasObject // pool; the first used are shown
	used  int
}

func (r *codeRenderer) Layout(s fyne.Size) {
	if r.t.width != s.Width {
		r.t.width = s.Width
	}
	r.draw()
}

func (r *codeRenderer) MinSize() fyne.Size {
	w, h := r.t.cell()
	rows := r.t.current()
	width := float32(0)
	if !r.t.wrap {
		width = float32(r.t.longest) * w
	}
	return fyne.NewSize(width, float32(len(rows))*h)
}

func (r *codeRenderer) draw() {
	t := r.t
	w, h := t.cell()
	rows := t.current()
	first, last := 0, len(rows)
	if t.bottom > 0 {
		first = max(0, int(t.top/h)-8)
		last = min(len(rows), int(t.bottom/h)+9)
	}
	size := theme.TextSize()
	r.used = 0
	for i := first; i < last; i++ {
		x := float32(0)
		for _, s := range rows[i] {
			for _, piece := range pieces(s.text) {
				if strings.TrimSpace(piece) != "" {
					c := r.next()
					c.Text, c.TextSize, c.Color = piece, size, theme.Color(s.color)
					c.TextStyle = fyne.TextStyle{Monospace: true}
					c.Resize(c.MinSize())
					c.Move(fyne.NewPos(x, float32(i)*h+1))
				}
				x += float32(columns(piece)) * w
			}
		}
	}
}

// pieces cuts a long run so that no texture gets too wide.
func pieces(s string) []string {
	if len(s) <= runLimit {
		return []string{s}
	}
	var out []string
	n, from := 0, 0
	for i := range s {
		if n == runLimit {
			out = append(out, s[from:i])
			n, from = 0, i
		}
		n++
	}
	return append(out, s[from:])
}

func (r *codeRenderer) next() *canvas.Text {
	if r.used == len(r.texts) {
		r.texts = append(r.texts, canvas.NewText("", color.Black))
	}
	r.used++
	return r.texts[r.used-1].(*canvas.Text)
}

func (r *codeRenderer) Refresh() {
	r.draw()
	canvas.Refresh(r.t)
}

func (r *codeRenderer) Objects() []fyne.CanvasObject { return r.texts[:r.used] }
func (r *codeRenderer) Destroy()                     {}

// highlightLimit is the most bytes that are coloured; longer code is plain.
const highlightLimit = 200_000

// highlight colours code by its language, or gives nil where the language is
// unknown.
func highlight(lang, source string) [][]span {
	if lang == "" || len(source) > highlightLimit {
		return nil
	}
	lexer := lexers.Get(lang)
	if lexer == nil {
		return nil
	}
	it, err := chroma.Coalesce(lexer).Tokenise(nil, source)
	if err != nil {
		return nil
	}
	want := strings.Count(source, "\n") + 1
	lines := make([][]span, 1, want)
	for tok := it(); tok != chroma.EOF; tok = it() {
		c := codeColour(tok.Type)
		for i, part := range strings.Split(strings.ReplaceAll(tok.Value, "\t", "    "), "\n") {
			if i > 0 {
				if len(lines) == want {
					break // lexers may add a line end
				}
				lines = append(lines, nil)
			}
			if part != "" {
				lines[len(lines)-1] = append(lines[len(lines)-1], span{part, c})
			}
		}
	}
	for len(lines) < want {
		lines = append(lines, nil)
	}
	return lines
}

// codeColour keeps to the colours that the theme has.
func codeColour(t chroma.TokenType) fyne.ThemeColorName {
	switch {
	case t.InCategory(chroma.Comment):
		return ColorDim
	case t.InCategory(chroma.Keyword), t == chroma.NameTag, t == chroma.NameBuiltinPseudo:
		return ColorAccent
	case t.InSubCategory(chroma.LiteralString):
		return ColorRAM
	case t.InSubCategory(chroma.LiteralNumber), t == chroma.NameAttribute, t == chroma.NameConstant, t == chroma.KeywordConstant:
		return ColorVRAM
	case t == chroma.GenericInserted:
		return ColorGood
	case t == chroma.GenericDeleted:
		return ColorAct
	case t == chroma.NameFunction, t == chroma.NameBuiltin, t == chroma.NameClass, t == chroma.NameDecorator:
		return ColorFile
	}
	return ColorText
}
