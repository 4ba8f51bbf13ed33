package engine

// Feed-forwards of any width on cards. Kernels take widths in multiples of 32,
// so others are filled up with zeros: a gate of 0 makes 0 of whatever the up
// matrix gives, for every activation there is. Block formats have such widths
// anyway, so this touches plain floats only, which means small models.

func up32(n int) int { return (n + 31) / 32 * 32 }

// widen gives l, or a copy whose feed-forwards are filled up.
func widen(l *layer) *layer {
	e := l.expert
	if l.ff == up32(l.ff) && e.ff == up32(e.ff) && e.shared == up32(e.shared) {
		return l
	}
	out, s := *l, *l.layerSpec
	s.ff, s.expert.ff, s.expert.shared = up32(l.ff), up32(e.ff), up32(e.shared)
	out.layerSpec = &s
	out.gate, out.up, out.down = l.gate.filled(s.ff, l.gate.cols), l.up.filled(s.ff, l.up.cols), l.down.filled(l.down.rows, s.ff)
	n := s.expert.shared
	out.shGate, out.shUp, out.shDown = l.shGate.filled(n, l.shGate.cols), l.shUp.filled(n, l.shUp.cols), l.shDown.filled(l.shDown.rows, n)
	n = s.expert.ff
	if l.fused {
		out.gates = l.gates.filledHalves(e.ff, n)
	} else {
		out.gates, out.ups = l.gates.filled(n, l.gates.cols), l.ups.filled(n, l.ups.cols)
	}
	out.downs = l.downs.filled(l.downs.rows, n)
	return &out
}

// filled gives w with zeros up to rows and cols.
func (w *matrix) filled(rows, cols int) matrix {
	if w.none() || w.rows == rows && w.cols == cols || !w.f.Float {
		return *w
	}
	out := *w
	out.rows, out.cols, out.rowBytes = rows, cols, w.rowBytes/w.cols*cols
	out.data = make([]byte, rows*out.rowBytes)
	copyRows(out.data, out.rowBytes, w.data, w.rowBytes)
	if w.bias != nil {
		out.bias = make([]float32, rows)
		copy(out.bias, w.bias)
	}
	return out
}

func copyRows(dst []byte, to int, src []byte, from int) {
	for r := 0; r*from < len(src); r++ {
		copy(dst[r*to:], src[r*from:(r+1)*from])
	}
}

// filled does the same to every matrix of a bank.
func (b *bank) filled(rows, cols int) bank {
	if b.none() || b.rows == rows && b.cols == cols || !b.f.Float {
		return *b
	}
	out := *b
	out.rows, out.cols, out.rowBytes = rows, cols, b.rowBytes/b.cols*cols
	n := rows * out.rowBytes
	out.data = make([]byte, b.count*n)
	if b.biases != nil {
		out.biases = make([]float32, b.count*rows)
	}
	for e := range b.count {
		copyRows(out.data[e*n:(e+1)*n], out.rowBytes, b.of(e), b.rowBytes)
		if b.biases != nil {
			copy(out.biases[e*rows:(e+1)*rows], b.biases[e*b.rows:(e+1)*b.rows])
		}
	}
	return out
}

// filledHalves widens matrices that hold ff gate rows and then ff up rows.
func (b *bank) filledHalves(ff, to int) bank {
	if b.none() || ff == to || !b.f.Float {
		return *b
	}
	half := func(at int) bank {
		h := *b
		h.rows, h.data, h.biases = ff, nil, nil
		for e := range b.count {
			h.data = append(h.data, b.of(e)[at*b.rowBytes:(at+ff)*b.rowBytes]...)
			if b.biases != nil {
				h.biases = append(h.biases, b.biases[e*b.rows+at:e*b.rows+at+ff]...)
			}
		}
		return h.filled(to, b.cols)
	}
	g, u := half(0), half(ff)
	out := g
	out.rows, out.data, out.biases = 2*to, nil, nil
	for e := range b.count {
		out.data = append(append(out.data, g.of(e)...), u.of(e)...)
	}
	if b.biases != nil {
		out.biases = twoBiases(&g, &u)
	}
	return out
}
