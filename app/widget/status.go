package widget

import (
	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// StatusPart is one piece of the status line; pressing it opens the page that
// explains it.
type StatusPart struct {
	ID    string
	Text  string
	Color fyne.ThemeColorName // "" for dim
	State State               // a mark before the text; StateUnknown for none
	Tip   string
	Mono  bool
}

// Status is the line at the foot of the window.
type Status struct {
	fynewidget.BaseWidget
	OnTapped func(id string)
	parts    []StatusPart
	pieces   []*statusPiece
	row      *fyne.Container
}

// NewStatus makes an empty line.
func NewStatus() *Status {
	s := &Status{row: &fyne.Container{Layout: statusLayout{}}}
	s.ExtendBaseWidget(s)
	return s
}

// Set shows parts. Pieces of equal ids are kept, so that a part under the
// pointer or with the focus stays there.
func (s *Status) Set(parts []StatusPart) {
	same := len(parts) == len(s.parts)
	for i := range parts {
		same = same && parts[i].ID == s.parts[i].ID
	}
	if !same {
		s.pieces, s.row.Objects = nil, nil
		for i, p := range parts {
			piece := newStatusPiece()
			piece.OnTapped = func() {
				if s.OnTapped != nil {
					s.OnTapped(p.ID)
				}
			}
			if i > 0 {
				s.row.Add(NewCaption("·"))
			}
			s.pieces = append(s.pieces, piece)
			s.row.Add(piece)
		}
	}
	changed := !same
	for i, p := range parts {
		changed = s.pieces[i].set(p) || changed
	}
	s.parts = parts
	if changed {
		s.row.Refresh()
	}
}

// Parts is what the line shows.
func (s *Status) Parts() []StatusPart { return s.parts }

// CreateRenderer shows the row.
func (s *Status) CreateRenderer() fyne.WidgetRenderer {
	s.ExtendBaseWidget(s)
	return fynewidget.NewSimpleRenderer(Inset(2, 10, 2, 10, s.row))
}

// statusLayout is a row that drops pieces at its end that find no room.
type statusLayout struct{}

func (statusLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	x := float32(0)
	for _, o := range objs {
		m := o.MinSize()
		if x+m.Width > s.Width {
			m.Width = 0
			o.Resize(fyne.Size{})
			o.Move(fyne.NewPos(s.Width+2000, 0))
			continue
		}
		o.Resize(fyne.NewSize(m.Width, m.Height))
		o.Move(fyne.NewPos(x, (s.Height-m.Height)/2))
		x += m.Width + 2
	}
}

func (statusLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	h := themeSize(SizeCaption) + 12
	for _, o := range objs {
		h = max(h, o.MinSize().Height)
	}
	return fyne.NewSize(100, h)
}

type statusPiece struct {
	tap
	light *Light
	text  *Text
	row   *fyne.Container
	last  StatusPart
}

func newStatusPiece() *statusPiece {
	p := &statusPiece{light: NewLight(StateUnknown), text: NewCaption("")}
	p.light.Hide()
	p.row = H(5, p.light, p.text)
	p.init(p, 4)
	return p
}

// set says whether the piece's width may have changed.
func (p *statusPiece) set(s StatusPart) bool {
	if s == p.last {
		return false
	}
	p.last = s
	p.Tip = s.Tip
	c := s.Color
	if c == "" {
		c = ColorDim
	}
	p.text.Style.Monospace = s.Mono
	was := p.MinSize()
	p.text.SetIn(s.Text, c)
	p.light.Set(s.State)
	p.light.Hidden = s.State == StateUnknown
	if now := p.MinSize(); now != was {
		p.row.Refresh()
		return true
	}
	return false
}

// CreateRenderer shows mark and text.
func (p *statusPiece) CreateRenderer() fyne.WidgetRenderer {
	p.ExtendBaseWidget(p)
	return fynewidget.NewSimpleRenderer(Over(p.ground, Inset(4, 6, 4, 6, p.row)))
}
