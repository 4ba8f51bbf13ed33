package quant

import "unsafe"

// quantizePlainRecords fills groups records from x in plain Go: the oracle of
// the kernels.
func quantizePlainRecords(r *record, x *float32, groups int) {
	rs, xs := unsafe.Slice(r, groups), unsafe.Slice(x, groups*256)
	for g := range rs {
		r := &rs[g]
		for b := range 8 {
			q := r.q[32*b : 32*b+32]
			d := quantize32(q, xs[256*g+32*b:256*g+32*b+32])
			lo, hi := int32(sum16(q[:16])), int32(sum16(q[16:]))
			p := order32(b)
			r.d[p], r.neg[p], r.dsum[p] = d, -128*(lo+hi), d*float32(lo+hi)
			r.neg16[order16(2*b)], r.neg16[order16(2*b+1)] = -128*lo, -128*hi
			r.negW[lane16(2*b)], r.negW[lane16(2*b+1)] = -128*lo, -128*hi
		}
		for v, q := range r.q {
			r.woven[wovenPlace[v]] = q
		}
	}
}
