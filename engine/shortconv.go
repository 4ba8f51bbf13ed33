package engine

import "outcrop/engine/quant"

// shortConv is the gated short convolution of LFM2 (models.md 9 of the
// references): [b|c|x] = in n;  s = b x;  y = out(c conv(s)). The convolution
// is causal, per channel, without activation; its state is the last columns
// of s.
func (m *Model) shortConv(p *pass, l *layer) {
	dim, ch := m.spec.dim, l.conv.channels
	grow(&p.u, p.t*3*ch)
	grow(&p.uc, p.t*ch)
	grow(&p.att, p.t*ch)
	p.acts(&p.in, p.xb, p.t, dim, l.convIn.f.Float)
	p.begin()
	p.want(p.u, 3*ch, &l.convIn, &p.in)
	p.run()
	p.tokens(l, gateConv)
	p.each((ch+convChunk-1)/convChunk, l, convolveShort)

	mem := &p.st.layers[l.index]
	if p.tentative {
		log := &mem.log[p.st.book^1]
		copy(grow(&log.u, maxWindow*ch), p.uc[:p.t*ch])
	} else {
		shiftInputs(mem.hist, p.uc, p.t, l.conv.taps-1, ch)
	}
	p.acts(&p.in, p.att, p.t, ch, l.convOut.f.Float)
	p.begin()
	p.want(p.y, dim, &l.convOut, &p.in)
	p.run()
}

func gateConv(p *pass, l *layer, t int, _ *worker) {
	ch := l.conv.channels
	s := p.uc[t*ch : (t+1)*ch]
	copy(s, p.u[t*3*ch:])
	quant.MulF32(s, p.u[(t*3+2)*ch:(t*3+3)*ch])
}

func convolveShort(p *pass, l *layer, i int, _ *worker) {
	ch, back := l.conv.channels, l.conv.taps-1
	lo, hi := i*convChunk, min((i+1)*convChunk, ch)
	hist := p.st.layers[l.index].hist
	for t := range p.t {
		out := p.att[t*ch+lo : t*ch+hi]
		clear(out)
		for k := range l.conv.taps {
			src, at := p.uc, t-back+k
			if at < 0 {
				src, at = hist, at+back
			}
			mulAdd(out, l.convTaps[k*ch+lo:k*ch+hi], src[at*ch+lo:at*ch+hi])
		}
		quant.MulF32(out, p.u[(t*3+1)*ch+lo:(t*3+1)*ch+hi])
	}
}
