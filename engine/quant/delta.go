package quant

// Delta takes tokens through rows of the state of one gated delta net head. A
// row of the state is n floats; for row r and each token in turn
//
//	s *= decay;  d = beta (v_r - s.k);  s += d k;  o_r = s.q
//
// Slices with a stride hold one entry per token, that many floats apart. What
// happens to a row does not depend on the other rows or on how the tokens are
// cut into calls, bit for bit.
type Delta struct {
	N, Tokens int

	K, Q        []float32 // n floats per token
	KQStride    int
	V           []float32 // one float per row and token
	VStride     int
	Decay, Beta []float32 // one float per token
	GStride     int
	O           []float32 // result: one float per row and token
	OStride     int
	D           []float32 // d: one float per row and token
	DStride     int
}

// deltaTile is how many tokens go through all rows before the next ones: their
// keys and queries stay in the first cache then.
const deltaTile = 16

// Rows takes rows lo to hi-1 of the state s, n floats each, through all tokens.
func (d *Delta) Rows(s []float32, lo, hi int) {
	run := active.Load().delta
	if run == nil || d.N%16 != 0 {
		run = plainDelta
	}
	for t := 0; t < d.Tokens; t += deltaTile {
		run(d, s, lo, hi, t, min(t+deltaTile, d.Tokens))
	}
}

func plainDelta(d *Delta, s []float32, lo, hi, t0, t1 int) {
	for r := lo; r < hi; r++ {
		row := s[r*d.N : (r+1)*d.N]
		for t := t0; t < t1; t++ {
			k := d.K[t*d.KQStride : t*d.KQStride+d.N]
			q := d.Q[t*d.KQStride : t*d.KQStride+d.N]
			vec.scaleF32(row, d.Decay[t*d.GStride])
			x := d.Beta[t*d.GStride] * (d.V[t*d.VStride+r] - vec.dotF32(row, k))
			vec.axpyF32(row, x, k)
			d.O[t*d.OStride+r] = vec.dotF32(row, q)
			d.D[t*d.DStride+r] = x
		}
	}
}
