package quant

// The chunked form of the delta net (Yang et al. 2024, arXiv 2412.06464, section
// 3.3) takes deltaChunk tokens at once through a whole head, as products of
// matrices. With g_t the product of the decays of the chunk up to token t and
// G_tj the product of those after j up to t:
//
//	d_t = beta_t (v_t - g_t S k_t - sum over j<t of G_tj (k_t.k_j) d_j)
//	o_t = g_t S q_t + sum over j<=t of G_tj (q_t.k_j) d_j
//	S   = g_end S + sum over j of G_end,j d_j k_j^T
//
// It adds in another order than the form token by token, so that results differ
// by rounding. Products of decays are made by multiplication alone: a decay of
// zero forgets, and nothing is ever divided by it.

const deltaChunk = 32

// DeltaWork is the memory of one call of Chunks.
type DeltaWork struct {
	kq      []float32 // keys, then queries
	dots    []float32 // of keys, then of queries, with keys
	read    []float32 // the state's answers to keys, then to queries
	weights []float32 // of earlier tokens: G times dots
	g       []float32 // G of one token, and of the chunk's start
	d       []float32 // d of the tokens, token by token
	turned  []float32 // and row by row, weighted
}

func (w *DeltaWork) room(n int) {
	size := 2*deltaChunk*n + 2*deltaChunk*deltaChunk + 2*deltaChunk*n + 2*deltaChunk*deltaChunk + deltaChunk + 2*deltaChunk*n
	if len(w.kq) == 2*deltaChunk*n {
		return
	}
	all := make([]float32, size)
	take := func(n int) []float32 {
		x := all[:n:n]
		all = all[n:]
		return x
	}
	w.kq, w.dots, w.read = take(2*deltaChunk*n), take(2*deltaChunk*deltaChunk), take(2*deltaChunk*n)
	w.weights, w.g = take(2*deltaChunk*deltaChunk), take(deltaChunk)
	w.d, w.turned = take(deltaChunk*n), take(deltaChunk*n)
}

// ChunksPay says whether heads of n values go faster by Chunks than by Rows at
// the active level: 1.9 times with AVX2, 1.1 to 1.3 times with AVX-512 (BENCH.md);
// not by plain loops.
func ChunksPay(n int) bool { return active.Load().scoresMany != nil && n%16 == 0 }

// Chunks takes all rows of the state s, n x n floats, through all tokens. D is
// not written.
func (d *Delta) Chunks(s []float32, w *DeltaWork) {
	w.room(d.N)
	for t := 0; t < d.Tokens; t += deltaChunk {
		d.chunk(s, w, t, min(deltaChunk, d.Tokens-t))
	}
}

// solveBlock is how many tokens of a chunk are solved one by one before what
// they add to the later ones is computed together.
const solveBlock = 8

func (d *Delta) chunk(s []float32, w *DeltaWork, t0, m int) {
	n := d.N
	for i := range m {
		at := (t0 + i) * d.KQStride
		copy(w.kq[i*n:(i+1)*n], d.K[at:at+n])
		copy(w.kq[(m+i)*n:(m+i+1)*n], d.Q[at:at+n])
	}
	ScoresManyF32(w.dots, m, w.kq, 2*m, n, w.kq, m, n)
	ScoresManyF32(w.read, n, w.kq, 2*m, n, s, n, n)

	g, start := w.g[:m], float32(1) // G of token i with those before, and with the state
	for i := range m {
		decay := d.Decay[(t0+i)*d.GStride]
		ScaleF32(g[:i], decay)
		g[i], start = 1, start*decay
		k, q := w.weights[i*m:(i+1)*m], w.weights[(m+i)*m:(m+i+1)*m]
		for j := range i {
			k[j] = -g[j] * w.dots[i*m+j]
			q[j] = g[j] * w.dots[(m+i)*m+j]
		}
		q[i] = w.dots[(m+i)*m+i]
		clear(q[i+1:])
		x := w.d[i*n : (i+1)*n]
		copy(x, d.V[(t0+i)*d.VStride:(t0+i)*d.VStride+n])
		AxpyF32(x, -start, w.read[i*n:(i+1)*n])
		o := d.O[(t0+i)*d.OStride : (t0+i)*d.OStride+n]
		copy(o, w.read[(m+i)*n:(m+i+1)*n])
		ScaleF32(o, start)
	}
	for b := 0; b < m; b += solveBlock {
		end := min(b+solveBlock, m)
		MixManyF32(w.d[b*n:], n, n, w.weights[b*m:], m, end-b, w.d, b, n)
		for i := b; i < end; i++ {
			x := w.d[i*n : (i+1)*n]
			MixManyF32(x, n, n, w.weights[i*m+b:], m, 1, w.d[b*n:], i-b, n)
			ScaleF32(x, d.Beta[(t0+i)*d.GStride])
		}
		MixManyF32(d.O[(t0+b)*d.OStride:], d.OStride, n, w.weights[(m+b)*m:], m, end-b, w.d, end, n)
	}
	for j := range m {
		ScaleF32(w.d[j*n:(j+1)*n], g[j])
	}
	for r := range n {
		turned := w.turned[r*m : (r+1)*m]
		for j := range turned {
			turned[j] = w.d[j*n+r]
		}
	}
	ScaleF32(s[:n*n], start)
	MixManyF32(s, n, n, w.turned, m, n, w.kq, m, n)
}
