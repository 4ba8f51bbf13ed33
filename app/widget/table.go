package widget

import (
	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// newTable shows a Markdown table: a header over a line, rows with thin lines
// between them, columns as wide as their text while there is room.
func newTable(n node) fyne.CanvasObject {
	l := &tableLayout{}
	c := &fyne.Container{Layout: l}
	for i, row := range n.rows {
		l.cols = max(l.cols, len(row))
		if i == 0 {
			l.cols = max(l.cols, len(n.right))
		}
	}
	for i, row := range n.rows {
		for j := range l.cols {
			var runs []run
			if j < len(row) {
				runs = append(runs, row[j]...)
			}
			if i == 0 {
				for k := range runs {
					runs[k].bold = true
				}
			}
			rich := fynewidget.NewRichText(segments(node{kind: paragraph, runs: runs})...)
			rich.Wrapping = fyne.TextWrapWord
			natural := float32(0)
			for _, r := range runs {
				natural += fyne.MeasureText(r.text, themeSize(SizeText), fyne.TextStyle{Bold: r.bold, Monospace: r.code}).Width
			}
			if j < len(n.right) && n.right[j] {
				for _, s := range rich.Segments {
					if t, ok := s.(*fynewidget.TextSegment); ok {
						t.Style.Alignment = fyne.TextAlignTrailing
					}
				}
			}
			l.natural = append(l.natural, natural+2)
			c.Objects = append(c.Objects, Unpad(rich))
		}
		l.rows++
	}
	for range l.rows {
		c.Objects = append(c.Objects, NewGround(ColorLine, "", 0))
	}
	return c
}

// tableLayout lays cells row by row, then one line under each row.
type tableLayout struct {
	cols, rows int
	natural    []float32 // width of each cell's text on one line
	width      float32
}

const (
	cellGap   = 16 // between columns
	cellPad   = 5  // above and below text
	cellLeast = 48
)

// widths shares the room between columns: narrow ones get what they need, the
// rest share what is left by need.
func (l *tableLayout) widths(room float32) []float32 {
	need := make([]float32, l.cols)
	for i, w := range l.natural {
		need[i%l.cols] = max(need[i%l.cols], w)
	}
	room -= cellGap * float32(l.cols-1)
	fixed := make([]bool, l.cols)
	for {
		left, open, want := room, 0, float32(0)
		for i, w := range need {
			if fixed[i] {
				left -= w
			} else {
				open++
				want += w
			}
		}
		if open == 0 || want <= left {
			return need
		}
		done := true
		for i, w := range need {
			if !fixed[i] && w <= left/float32(open) {
				fixed[i], done = true, false
			}
		}
		if done {
			for i, w := range need {
				if !fixed[i] {
					need[i] = max(cellLeast, left*w/want)
				}
			}
			return need
		}
	}
}

func (l *tableLayout) place(objs []fyne.CanvasObject, width float32, move bool) float32 {
	w := l.widths(width)
	y := float32(0)
	for r := range l.rows {
		h := float32(0)
		for c := range l.cols {
			h = max(h, HeightAt(objs[r*l.cols+c], w[c]))
		}
		x := float32(0)
		for c := range l.cols {
			if move {
				o := objs[r*l.cols+c]
				o.Resize(fyne.NewSize(w[c], h))
				o.Move(fyne.NewPos(x, y+cellPad))
			}
			x += w[c] + cellGap
		}
		y += h + 2*cellPad
		if move {
			line := objs[l.rows*l.cols+r]
			line.Resize(fyne.NewSize(min(width, x-cellGap), 1))
			line.Move(fyne.NewPos(0, y))
		}
		y++
	}
	return y
}

func (l *tableLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	l.width = s.Width
	l.place(objs, s.Width, true)
}

func (l *tableLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(cellLeast, l.place(objs, max(l.width, cellLeast), false))
}
