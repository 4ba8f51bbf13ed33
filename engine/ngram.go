package engine

import (
	"math"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// The hashed n-gram table (qwen4exp; models.md 3.2 of the references): the
// last two and three tokens pick rows of a very large table by hashing. The
// rows, joined, say what to add to the streams before one layer:
//
//	key = RMS(K e), query = RMS(R), s_h = key_h . query_h / sqrt(dim)
//	G_h = sigmoid(sign(s) sqrt|s|) * (V e)
//	R += G + silu(conv(RMS(G)))      conv: per channel, steps of ngram tokens
//
// The table is only read where it is hit, so it can stay in the file.
type ngramWeights struct {
	table                        matrix // one row per hash value
	key, value                   matrix
	keyNorm, queryNorm, convNorm []float32 // (H*dim)
	taps                         []float32 // (taps, H*dim): tap 0 is the oldest
}

func (b *binder) ngram(s *spec, blk string) *ngramWeights {
	wide, e := s.streams*s.dim, s.ple.width()
	g := &ngramWeights{
		key:       b.mat(blk+"ple_key", e, wide),
		value:     b.mat(blk+"ple_value", e, s.dim),
		keyNorm:   b.vec(blk+"ple_norm_key.weight", wide),
		queryNorm: b.vec(blk+"ple_norm_query.weight", wide),
		convNorm:  b.vec(blk+"ple_norm_conv.weight", wide),
		taps:      transposed(b.vec(blk+"ple_conv1d.weight", s.ple.taps, wide), s.ple.taps, wide),
	}
	g.table = b.mat("per_layer_token_embd", s.ple.dim, int(s.ple.rows))
	return g
}

// transposed turns (channels, taps) into (taps, channels).
func transposed(x []float32, taps, channels int) []float32 {
	if x == nil {
		return nil
	}
	y := make([]float32, len(x))
	for c := range channels {
		for k := range taps {
			y[k*channels+c] = x[c*taps+k]
		}
	}
	return y
}

// width is the length of the joined rows.
func (s *pleSpec) width() int { return (s.ngram - 1) * s.headsPerN * s.dim }

// back is how many tokens of history the convolution needs.
func (s *pleSpec) back() int { return (s.taps - 1) * s.ngram }

// rowIDs writes the table rows of the token at ids[len-1]. Everything at or
// before an end token reads as one, but for the token itself; all arithmetic
// wraps at 64 bits.
func (s *pleSpec) rowIDs(dst []int64, ids []token.ID) {
	cur := len(ids) - 1
	h := uint64(ids[cur]) * s.multipliers[0]
	ended := false
	for n := 2; n <= s.ngram; n++ {
		c := s.eos
		if at := cur - (n - 1); at >= 0 && !ended {
			c = int64(ids[at])
		}
		ended = ended || c == s.eos
		h ^= uint64(c) * s.multipliers[n-1]
		for j := range s.headsPerN {
			i := (n-2)*s.headsPerN + j
			dst[i] = int64(h%s.sizes[i] + s.offsets[i])
		}
	}
}

// ngramPass holds the buffers of the table in one pass.
type ngramPass struct {
	rows   []int64
	e      []float32 // (T, width)
	k, val []float32 // (T, H*dim), (T, dim)
	g, n   []float32 // (T, H*dim): gated values, and normed
}

// ngram adds what the table says to the streams.
func (m *Model) ngram(p *pass, l *layer) {
	s, dim := m.spec.ple, m.spec.dim
	H, e, wide := m.spec.streams, s.width(), m.spec.streams*dim
	x := &p.gram
	heads := (s.ngram - 1) * s.headsPerN
	if len(x.rows) < heads {
		x.rows = make([]int64, heads)
	}
	grow(&x.e, p.t*e)
	grow(&x.g, p.t*wide)
	grow(&x.n, p.t*wide)
	w := &l.gram.table
	for t := range p.t {
		s.rowIDs(x.rows, p.text[:p.pos+t+1])
		for i := range heads {
			row := int(x.rows[i])
			w.f.Decode(x.e[t*e+i*s.dim:t*e+(i+1)*s.dim], w.data[row*w.rowBytes:(row+1)*w.rowBytes])
		}
	}
	p.acts(&p.in, x.e, p.t, e, l.gram.key.f.Float && l.gram.value.f.Float)
	p.begin()
	p.want(grow(&x.k, p.t*wide), wide, &l.gram.key, &p.in)
	p.want(grow(&x.val, p.t*dim), dim, &l.gram.value, &p.in)
	p.run()
	p.tokens(l, gateGram)
	p.each((wide+convChunk-1)/convChunk, l, convolveGram)

	mem := &p.st.layers[l.index]
	if p.tentative {
		log := &mem.log[p.st.book^1]
		copy(grow(&log.gram, maxWindow*wide), x.n[:p.t*wide])
	} else {
		shiftInputs(mem.gram, x.n, p.t, s.back(), H*dim)
	}
}

func gateGram(p *pass, l *layer, t int, w *worker) {
	H, dim, eps := p.m.spec.streams, p.m.spec.dim, p.m.spec.eps
	x, g := &p.gram, l.gram
	w.row = room(w.row, dim)
	val := x.val[t*dim : (t+1)*dim]
	for h := range H {
		at, c := (t*H+h)*dim, h*dim
		k := x.k[at : at+dim]
		quant.RMSNorm(k, k, g.keyNorm[c:c+dim], eps)
		quant.RMSNorm(w.row, p.x[at:at+dim], g.queryNorm[c:c+dim], eps)
		s := quant.DotF32(k, w.row) / float32(math.Sqrt(float64(dim)))
		out := x.g[at : at+dim]
		copy(out, val)
		quant.ScaleF32(out, sigmoid(signRoot(s)))
		quant.RMSNorm(x.n[at:at+dim], out, g.convNorm[c:c+dim], eps)
	}
}

// convolveGram adds the gated values and their convolution to a part of the
// channels of all tokens.
func convolveGram(p *pass, l *layer, i int, w *worker) {
	s := p.m.spec.ple
	wide, back := p.m.spec.streams*p.m.spec.dim, s.back()
	lo, hi := i*convChunk, min((i+1)*convChunk, wide)
	hist := p.st.layers[l.index].gram
	w.row = room(w.row, hi-lo)
	for t := range p.t {
		clear(w.row)
		for k := range s.taps {
			at := t - (s.taps-1-k)*s.ngram
			src := p.gram.n
			if at < 0 {
				src, at = hist, at+back
			}
			mulAdd(w.row, l.gram.taps[k*wide+lo:k*wide+hi], src[at*wide+lo:at*wide+hi])
		}
		quant.SiLU(w.row, w.row)
		x := p.x[t*wide+lo : t*wide+hi]
		quant.AddF32(x, p.gram.g[t*wide+lo:t*wide+hi])
		quant.AddF32(x, w.row)
	}
}
