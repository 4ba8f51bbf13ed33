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
		lanes, d, s := a.row(t)
		var w tile
		var acc float32
		for b := 0; b < len(d)*32; b += n {
			unpack(&w, row[b/n*size:][:size])
			for k := range n / 16 {
				i := b/16 + k
				sum := bytes16(w.word(2*k)^flip, w.word(2*k+1)^flip, (*[4]uint64)(lanes[4*i:])) - 128*int32(s[i])
				acc += (w.scale[k&15]*float32(sum) - w.min[k&15]*float32(s[i])) * d[i/2]
			}
		}
		return acc
	}
}
