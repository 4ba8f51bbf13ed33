package widget

import (
	"net/url"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Prose shows one Markdown block that is not code. Set replaces its text and
// redraws only the parts that changed.
type Prose struct {
	fynewidget.BaseWidget
	box    *fyne.Container
	views  []*view
	source string
}

// NewProse makes a block from Markdown.
func NewProse(source string) *Prose {
	p := &Prose{box: V(8)}
	p.ExtendBaseWidget(p)
	p.Set(source)
	return p
}

// Set changes the text.
func (p *Prose) Set(source string) {
	if source == p.source && p.views != nil {
		return
	}
	p.source = source
	var changed bool
	p.views, changed = reconcile(p.box, p.views, parse(source))
	if changed {
		p.box.Refresh()
	}
}

// Source is the text that is shown.
func (p *Prose) Source() string { return p.source }

// CreateRenderer shows the box of parts.
func (p *Prose) CreateRenderer() fyne.WidgetRenderer { return fynewidget.NewSimpleRenderer(p.box) }

// view is a node on the screen.
type view struct {
	n    node
	obj  fyne.CanvasObject
	rich *fynewidget.RichText // of paragraphs and headings
	box  *fyne.Container      // of what holds kids
	kids []*view
}

// reconcile makes box show the nodes and keeps every view that still fits.
// It says whether objects came or went.
func reconcile(box *fyne.Container, old []*view, nodes []node) ([]*view, bool) {
	changed := len(old) != len(nodes)
	views := make([]*view, len(nodes))
	for i, n := range nodes {
		if i < len(old) && old[i].update(n) {
			views[i] = old[i]
			continue
		}
		views[i] = newView(n)
		changed = true
	}
	if changed {
		box.Objects = box.Objects[:0]
		for _, v := range views {
			box.Objects = append(box.Objects, v.obj)
		}
	}
	return views, changed
}

// update changes the view to show n, or says that it cannot.
func (v *view) update(n node) bool {
	if v.n.equal(n) {
		return true
	}
	if v.n.kind != n.kind || v.n.level != n.level || v.n.marker != n.marker || v.n.tight != n.tight {
		return false
	}
	switch n.kind {
	case paragraph, heading:
		v.rich.Segments = segments(n)
		v.rich.Refresh()
	case quote, list, item:
		var changed bool
		if v.kids, changed = reconcile(v.box, v.kids, n.kids); changed {
			v.box.Refresh()
		}
	default:
		return false
	}
	v.n = n
	return true
}

func newView(n node) *view {
	v := &view{n: n}
	switch n.kind {
	case paragraph, heading:
		v.rich = fynewidget.NewRichText(segments(n)...)
		v.rich.Wrapping = fyne.TextWrapWord
		v.obj = Unpad(v.rich)
		if n.kind == heading {
			v.obj = Inset(4, 0, 0, 0, v.obj)
		}
	case quote:
		v.box = V(8)
		v.kids, _ = reconcile(v.box, nil, n.kids)
		v.obj = &fyne.Container{Layout: quoteLayout{}, Objects: []fyne.CanvasObject{NewGround(ColorLine, "", 1.5), v.box}}
	case list:
		gap := float32(4)
		if !n.tight {
			gap = 8
		}
		v.box = V(gap)
		v.kids, _ = reconcile(v.box, nil, n.kids)
		v.obj = v.box
	case item:
		v.box = V(4)
		v.kids, _ = reconcile(v.box, nil, n.kids)
		v.obj = &fyne.Container{Layout: itemLayout{}, Objects: []fyne.CanvasObject{marker(n.marker), v.box}}
	case table:
		v.obj = newTable(n)
	case rule:
		v.obj = Inset(4, 0, 4, 0, Rule())
	case codeBlock:
		v.obj = NewCode(n.lang, n.text)
	}
	return v
}

func marker(m string) fyne.CanvasObject {
	switch m {
	case "☐":
		return Sized(16, 16, fynewidget.NewIcon(theme.CheckButtonIcon()))
	case "☑":
		return Sized(16, 16, fynewidget.NewIcon(IconIn("check", ColorAccent)))
	}
	return NewText(m).In(ColorDim).Right()
}

// segments turns runs into what RichText draws.
func segments(n node) []fynewidget.RichTextSegment {
	size := SizeText
	if n.kind == heading && n.level <= 2 {
		size = SizeHeading
	}
	var out []fynewidget.RichTextSegment
	for _, r := range n.runs {
		if u := webLink(r.link); u != nil {
			// A link is one object that cannot wrap, so each word is one.
			words := strings.SplitAfter(r.text, " ")
			for _, w := range words {
				if w == "" {
					continue
				}
				out = append(out, &fynewidget.HyperlinkSegment{Text: w, URL: u, SizeName: size,
					TextStyle: fyne.TextStyle{Bold: r.bold || n.kind == heading, Italic: r.italic}})
			}
			continue
		}
		style := fynewidget.RichTextStyleInline
		if r.code {
			style = fynewidget.RichTextStyleCodeInline
		}
		style.SizeName = size
		style.TextStyle.Bold = r.bold || n.kind == heading
		style.TextStyle.Italic = r.italic
		style.TextStyle.Strikethrough = r.strike
		out = append(out, &fynewidget.TextSegment{Text: r.text, Style: style})
	}
	if len(out) == 0 {
		out = append(out, &fynewidget.TextSegment{Style: fynewidget.RichTextStyleInline})
	}
	return out
}

// webLink gives the address of a link that may be opened: the web and mail.
// A model must not be able to make a click open a local file or program.
func webLink(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		return nil
	}
	switch u.Scheme {
	case "http", "https":
		if u.Host != "" {
			return u
		}
	case "mailto":
		return u
	}
	return nil
}

type quoteLayout struct{}

func (quoteLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	objs[0].Resize(fyne.NewSize(3, s.Height))
	objs[1].Resize(fyne.NewSize(max(0, s.Width-14), s.Height))
	objs[1].Move(fyne.NewPos(14, 0))
}

func (quoteLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	return objs[1].MinSize().AddWidthHeight(14, 0)
}

type itemLayout struct{}

func (itemLayout) indent() float32 { return theme.TextSize() * 1.7 }

func (l itemLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	in := max(l.indent(), objs[0].MinSize().Width+6)
	m := objs[0].MinSize()
	objs[0].Resize(fyne.NewSize(in-7, m.Height))
	objs[0].Move(fyne.NewPos(0, 1))
	objs[1].Resize(fyne.NewSize(max(0, s.Width-in), s.Height))
	objs[1].Move(fyne.NewPos(in, 0))
}

func (l itemLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	in := max(l.indent(), objs[0].MinSize().Width+6)
	m := objs[1].MinSize()
	return fyne.NewSize(m.Width+in, max(m.Height, objs[0].MinSize().Height))
}
