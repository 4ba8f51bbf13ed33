package quant

// The formats with one scale per 32 values (llama.cpp pull request 1405 and
// before). Nibble j of the 16 bytes is value j in its low half and value 16+j
// in its high half; the fifth bits of Q5_0 and Q5_1 are bit i of a 32-bit word.

func (t *tile) nibbles(qs []byte, offset int8) {
	for j, b := range qs[:16] {
		t.q[j] = int8(b&15) - offset
		t.q[j+16] = int8(b>>4) - offset
	}
}

func (t *tile) fifthBits(qh []byte) {
	h := uint32(qh[0]) | uint32(qh[1])<<8 | uint32(qh[2])<<16 | uint32(qh[3])<<24
	for i := range 32 {
		t.q[i] += int8(h >> i & 1 << 4)
	}
}

// all32 sets one scale and one offset for the 32 values.
func (t *tile) all32(scale, min float32) {
	t.scale[0], t.scale[1] = scale, scale
	t.min[0], t.min[1] = min, min
}

func unpackQ4_0(t *tile, src []byte) {
	t.all32(half(src), 0)
	t.nibbles(src[2:], 8)
}

func unpackQ4_1(t *tile, src []byte) {
	t.all32(half(src), -half(src[2:]))
	t.nibbles(src[4:], 0)
}

func unpackQ5_0(t *tile, src []byte) {
	t.all32(half(src), 0)
	t.nibbles(src[6:], 16)
	t.fifthBits(src[2:])
}

func unpackQ5_1(t *tile, src []byte) {
	t.all32(half(src), -half(src[2:]))
	t.nibbles(src[8:], 0)
	t.fifthBits(src[4:])
}

func unpackQ8_0(t *tile, src []byte) {
	t.all32(half(src), 0)
	for i, b := range src[2:34] {
		t.q[i] = int8(b)
	}
}
