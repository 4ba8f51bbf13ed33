package engine

import "math"

// pieceModel says how long a device takes for a piece of a prompt, in the time of
// one token beside others: what a piece costs whatever its length, since weights
// are read once for each and products of few columns leave units idle, and what a
// token takes more for each position before it.
type pieceModel struct {
	fixed   float64 // tokens
	deep    float64 // tokens a token and position
	quantum int     // lengths are multiples of it: whole tiles of products
	span    int     // tokens of which the narrowest products keep the card busy once; 0: not known
}

// A H200 takes 31, 44, 67, 84, 101 and 124 ms for pieces of 256, 512, 1024, 1152,
// 1536 and 2048 tokens of an 8B model: as if each had 500 tokens more, and 280 more
// once the tiles of the products with the model's width are more than two for each
// of its 132 units, which is at 1056. Of a 1.5B model each is as if it had 340 more.
// Smaller cards are busy with less.
const (
	pieceCost     = 64
	widePieceCost = 450
	spanCost      = 0.27 // of the tokens of a span
	leastPiece    = 128
)

// cost is the time of k tokens from position pos on.
func (p pieceModel) cost(pos, k float64) float64 {
	t := p.fixed + k*(1+p.deep*(pos+k/2))
	if p.span > 0 && k > 0 {
		t += spanCost * float64(p.span) * math.Floor((k-1)/float64(p.span))
	}
	return t
}

// fits is how many tokens from pos on take the time t, at most most; spans left
// aside.
func (p pieceModel) fits(pos, t, most float64) float64 {
	k := t - p.fixed
	if k <= 0 {
		return 0
	}
	if p.deep > 0 { // k + deep (pos k + k k / 2) = t - fixed
		b := 1 + p.deep*pos
		k = (math.Sqrt(b*b+2*p.deep*k) - b) / p.deep
	}
	return min(k, most)
}

// pieces cuts n tokens from position pos on into pieces of at most most tokens
// with which they are through so many stages soonest. Stages alike take the time
// of all pieces, and once more that of the longest one for each stage but one, in
// whatever order they come. So pieces take equal times, which makes later ones
// shorter, or are equally long where that keeps them within a span, and there are
// as many as make the sum least. Nothing needs none.
func (p pieceModel) pieces(n, pos, stages, most int) []int {
	if n < 1 {
		return nil
	}
	var best []int
	least := math.Inf(1)
	for count := (n + most - 1) / most; count <= n/leastPiece+1; count++ {
		quickest := math.Inf(1)
		for _, list := range [][]int{p.even(n, pos, count, most), p.alike(n, count, most)} {
			t := p.through(list, pos, stages)
			if quickest = min(quickest, t); t < least*(1-1e-9) {
				least, best = t, list
			}
		}
		if quickest > 1.5*least {
			break
		}
	}
	return best
}

// alike cuts n tokens into count pieces of one length, the last of what is left.
func (p pieceModel) alike(n, count, most int) (list []int) {
	k := (n + count - 1) / count
	k = min((k+p.quantum-1)/p.quantum*p.quantum, most)
	for ; n > 0; n -= k {
		list = append(list, min(k, n))
	}
	return list
}

// through is the time of pieces on their way through stages.
func (p pieceModel) through(list []int, pos, stages int) float64 {
	sum, longest := 0.0, 0.0
	for _, k := range list {
		t := p.cost(float64(pos), float64(k))
		sum, longest, pos = sum+t, max(longest, t), pos+k
	}
	return sum + float64(stages-1)*longest
}

// even cuts n tokens into about count pieces of equal times.
func (p pieceModel) even(n, pos, count, most int) []int {
	lo, hi := 0.0, p.cost(float64(pos), float64(n))
	for range 50 { // the time of one
		t, at := (lo+hi)/2, 0.0
		for range count {
			at += p.fits(float64(pos)+at, t, float64(most))
		}
		if at < float64(n) {
			lo = t
		} else {
			hi = t
		}
	}
	var list []int
	at, exact := 0, 0.0
	for at < n {
		exact += p.fits(float64(pos)+exact, hi, float64(most))
		// To the nearest whole tiles, without leaving a crumb for the last one.
		end := int(math.Round(exact/float64(p.quantum))) * p.quantum
		end = min(max(end, at+p.quantum), at+most, n)
		if n-end < p.quantum/2 && n-at <= most {
			end = n
		}
		list, at = append(list, end-at), end
	}
	return list
}

// pieceModel is that of the slowest of the devices.
func (c *cards) pieceModel() pieceModel {
	p := pieceModel{fixed: pieceCost, quantum: 64, deep: c.m.deepCost()}
	if c.m.chunk > defaultChunk {
		p.fixed, p.quantum = widePieceCost, wideTile
		tiles, units := (c.m.spec.dim+wideTile-1)/wideTile, math.MaxInt
		for _, r := range c.runs {
			units = min(units, r.dev.Info().Units)
		}
		p.span = 2 * units / tiles * wideTile // 0 of a model wider than that, or where nobody tells
	}
	return p
}

// wideTile is the rows and columns of results that a work-group makes on matrix
// units; a compute unit has two at once.
const wideTile = 128

// deepPart is how much slower attention multiplies than products do: a H200 took
// 66.5 ms for the first 1024 tokens of an 8B model and 72.2 for the fourth.
const deepPart = 1.1

// deepCost is what a position in context adds to the time of a token, as a part
// of it: the products of attention beside those of weights.
func (m *Model) deepCost() float64 {
	var weights, deep float64
	for i := range m.layers {
		l := &m.layers[i]
		for _, w := range []*matrix{&l.q, &l.k, &l.v, &l.o, &l.qkv, &l.z, &l.deltaOut, &l.gate, &l.up, &l.down, &l.shGate, &l.shUp, &l.shDown} {
			if !w.none() {
				weights += float64(w.rows) * float64(w.cols)
			}
		}
		for _, b := range l.banks() {
			if !b.none() {
				weights += float64(b.rows) * float64(b.cols) * float64(l.expert.used)
			}
		}
		if a := &l.attn; l.mixer == attention && a.window == 0 {
			deep += float64(a.heads * (a.keyDim + a.valDim))
		}
	}
	if weights == 0 {
		return 0
	}
	return deepPart * deep / weights
}

// pieces are the lengths in which a prompt of n tokens from pos on flows; nil: it
// is run by passes of its own, one after the other. A chunk that was asked for
// stays.
func (c *cards) pieces(n, pos int) []int {
	if c == nil || !c.piped() || n < 1 {
		return nil
	}
	var list []int
	switch {
	case c.cutBy != nil:
		list = c.cutBy(n)
	case c.m.chunkAsked:
		for at := 0; at < n; at += c.m.chunk {
			list = append(list, min(c.m.chunk, n-at))
		}
	default:
		list = c.pieceModel().pieces(n, pos, c.stages(), c.m.chunk)
	}
	if len(list) < 2 {
		return nil
	}
	return list
}
