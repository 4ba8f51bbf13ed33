package quant

// Formats of one, two or three values per weight.

// unpackTQ1_0 (llama.cpp pull request 8151): bytes that hold five digits of
// base 3 as a fraction of 256, so that the first digit is the integer part of
// 3/256 of the byte. 32 bytes hold values 0..159, 32 for each digit; 16 bytes
// values 160..239; 4 bytes with four digits the rest; then the half.
func unpackTQ1_0(t *tile, src []byte) {
	t.scaleAll(half(src[52:]))
	q := t.q[:0]
	for _, part := range [3]struct{ lo, hi, digits int }{{0, 32, 5}, {32, 48, 5}, {48, 52, 4}} {
		power := byte(1)
		for range part.digits {
			for _, b := range src[part.lo:part.hi] {
				q = append(q, int8(uint16(b*power)*3>>8)-1)
			}
			power *= 3
		}
	}
}

// unpackTQ2_0 (llama.cpp pull request 8151): 64 bytes of pairs of bits in the
// order of Q2_K with bias 1, then the half.
func unpackTQ2_0(t *tile, src []byte) {
	t.scaleAll(half(src[64:]))
	for i := range 8 {
		w, at := word64(src, i), i/4*16+i%4
		for k := range 4 {
			t.putLess(at+4*k, w>>(2*k)&low2, 1)
		}
	}
}

// unpackQ2_0: the half, 16 bytes of pairs of bits with bias 1, value i in pair
// i%4 (from the lowest) of byte i/4.
func unpackQ2_0(t *tile, src []byte) {
	t.scaleAll(half(src))
	for i, b := range src[2:18] {
		for k := range 4 {
			t.q[4*i+k] = int8(b>>(2*k)&3) - 1
		}
	}
}

// unpackQ1_0: the half, 16 bytes of bits, value i in bit i%8 of byte i/8: +1
// where it is set, -1 where not.
func unpackQ1_0(t *tile, src []byte) {
	t.scaleAll(half(src))
	for i, b := range src[2:18] {
		t.putLess(i, bits8(b)<<1, 1)
	}
}
