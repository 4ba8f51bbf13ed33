package quant

// deltaArgs is what the assembly reads: strides in bytes, n a multiple of 16.
type deltaArgs struct {
	s, k, q, v, decay, beta, o, d *float32
	n, rows, tokens               int
	kqStride, vStride, gStride    int
	oStride, dStride              int
}

//go:noescape
func delta128x512(a *deltaArgs)

//go:noescape
func delta256(a *deltaArgs)

func (d *Delta) args(s []float32, lo, hi, t0, t1 int) deltaArgs {
	last := t1 - 1 // the bounds of all that the assembly touches
	_ = s[hi*d.N-1]
	_, _ = d.K[last*d.KQStride+d.N-1], d.Q[last*d.KQStride+d.N-1]
	_, _, _ = d.V[last*d.VStride+hi-1], d.O[last*d.OStride+hi-1], d.D[last*d.DStride+hi-1]
	_, _ = d.Decay[last*d.GStride], d.Beta[last*d.GStride]
	return deltaArgs{
		s: &s[lo*d.N], k: &d.K[t0*d.KQStride], q: &d.Q[t0*d.KQStride],
		v: &d.V[t0*d.VStride+lo], decay: &d.Decay[t0*d.GStride], beta: &d.Beta[t0*d.GStride],
		o: &d.O[t0*d.OStride+lo], d: &d.D[t0*d.DStride+lo],
		n: d.N, rows: hi - lo, tokens: t1 - t0,
		kqStride: 4 * d.KQStride, vStride: 4 * d.VStride, gStride: 4 * d.GStride,
		oStride: 4 * d.OStride, dStride: 4 * d.DStride,
	}
}

func deltaAVX2(d *Delta, s []float32, lo, hi, t0, t1 int) {
	if lo >= hi || t0 >= t1 {
		return
	}
	a := d.args(s, lo, hi, t0, t1)
	delta256(&a)
}

// deltaAVX512 keeps two rows of 128 floats in registers; other lengths take
// the AVX2 loop.
func deltaAVX512(d *Delta, s []float32, lo, hi, t0, t1 int) {
	if d.N != 128 || (hi-lo)%2 != 0 {
		deltaAVX2(d, s, lo, hi, t0, t1)
		return
	}
	if lo >= hi || t0 >= t1 {
		return
	}
	a := d.args(s, lo, hi, t0, t1)
	delta128x512(&a)
}
