package quant

import "encoding/binary"

// Sweep reads b as fast as the active level can and gives back the exclusive or
// of its 64-bit words (a rest under 256 bytes is left out): the speed of memory,
// for comparison with the speed of products.
func Sweep(b []byte) uint64 {
	b = b[:len(b)&^255]
	if len(b) == 0 {
		return 0
	}
	return vec.sweep(b)
}

func plainSweep(b []byte) (x uint64) {
	for len(b) >= 32 {
		x ^= binary.LittleEndian.Uint64(b) ^ binary.LittleEndian.Uint64(b[8:]) ^
			binary.LittleEndian.Uint64(b[16:]) ^ binary.LittleEndian.Uint64(b[24:])
		b = b[32:]
	}
	return x
}
