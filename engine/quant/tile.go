package quant

// tile is one block of a quantised format as integers: value i is
// scale[i/16]*q[i] - min[i/16]. It holds blocks of up to 256 values; only the
// entries that a block covers are set. min stays zero for formats without
// offsets.
type tile struct {
	q     [256]int8
	scale [16]float32
	min   [16]float32
}

// decode makes the decoder of a format of blocks of n values in size bytes.
// The products are rounded to float32 before the offset is taken off (the
// conversion forbids a fused multiply-add): the published values are defined
// by that order of operations.
func decode(n, size int, unpack func(*tile, []byte)) func([]float32, []byte) {
	return func(dst []float32, src []byte) {
		var t tile
		for len(dst) >= n {
			unpack(&t, src[:size])
			for i := range n {
				dst[i] = float32(t.scale[i>>4&15]*float32(t.q[i&255])) - t.min[i>>4&15]
			}
			dst, src = dst[n:], src[size:]
		}
	}
}

// dot makes the plain product loop of a format of blocks of n values in size
// bytes: whole numbers within 16 values, floats between them.
func dot(n, size int, unpack func(*tile, []byte)) func([]byte, *Acts, int) float32 {
	return func(row []byte, a *Acts, t int) float32 {
		q := a.q[t*a.stride : (t+1)*a.stride]
		d := a.d[t*a.stride/32 : (t+1)*a.stride/32]
		s := a.s[t*a.stride/16 : (t+1)*a.stride/16]
		var w tile
		var acc float32
		for b := 0; b < a.n/16; b++ {
			k := b * 16 % n
			if k == 0 {
				unpack(&w, row[:size])
				row = row[size:]
			}
			var sum int32
			x, y := w.q[k:k+16], q[b*16:b*16+16]
			for i, v := range x {
				sum += int32(v) * int32(y[i])
			}
			v := w.scale[k/16]*float32(sum) - w.min[k/16]*float32(s[b])
			acc += v * d[b/2]
		}
		return acc
	}
}
