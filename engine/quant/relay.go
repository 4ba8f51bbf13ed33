package quant

import (
	"encoding/binary"
	"math"
)

// IQ3_S and IQ3_XXS look up vectors of four in a grid. All their values are one of
// 16 with a sign, so that a nibble says as much; what remains is a table of 16
// levels, which fits a register. Woven (woven.go), a block takes 136 bytes instead
// of 110 or 98:
//
//	4 bytes: float32 d
//	4 bytes: a nibble s for each lane, low halves first; scale = d*(2*s+1)
//	128 bytes of nibbles: the numbers of the levels

var levelsRelaid = func() (l [2][16]int8) {
	for i := range 8 {
		l[0][i], l[0][i+8] = int8(2*i-15), int8(2*i+1)
		l[1][i], l[1][i+8] = levels3[i], -levels3[i]
	}
	return l
}()

func unpackWoven3S(t *tile, src []byte)   { unpackGrid3(t, src, &levelsRelaid[0]) }
func unpackWoven3XXS(t *tile, src []byte) { unpackGrid3(t, src, &levelsRelaid[1]) }

func unpackGrid3(t *tile, src []byte, table *[16]int8) {
	d := math.Float32frombits(binary.LittleEndian.Uint32(src))
	for b := range 8 {
		l := order32(b)
		t.scale32(b, d*float32(1+2*(src[4+l/2]>>(4*(l%2))&15)), 0)
	}
	t.byPlace(func(p int) int8 { return table[nibbleAt(src[8:], p)] })
}

func relay3S(dst, src []byte) {
	var t tile
	unpackIQ3_S(&t, src)
	relayGrid3(dst, &t, half(src), [8]byte{
		src[106] & 15, src[106] >> 4, src[107] & 15, src[107] >> 4,
		src[108] & 15, src[108] >> 4, src[109] & 15, src[109] >> 4,
	}, &numbersRelaid[0])
}

func relay3XXS(dst, src []byte) {
	var t tile
	unpackIQ3_XXS(&t, src)
	var s [8]byte
	for b := range s {
		s[b] = src[66+4*b+3] >> 4
	}
	relayGrid3(dst, &t, half(src)*0.25, s, &numbersRelaid[1]) // d*(0.5+s)*0.5
}

// relayGrid3 lays out the values of t with the scales s of 32 values each.
func relayGrid3(dst []byte, t *tile, d float32, s [8]byte, numbers *[256]byte) {
	binary.LittleEndian.PutUint32(dst, math.Float32bits(d))
	var lanes uint32
	for b, v := range s {
		lanes |= uint32(v) << (4 * order32(b))
	}
	binary.LittleEndian.PutUint32(dst[4:], lanes)
	q := t.bytes()
	for i, v := range q {
		q[i] = numbers[v]
	}
	w := t.lay()
	w.nibbles(dst[8:], 0)
}

// numbersRelaid finds the number of a level.
var numbersRelaid = func() (n [2][256]byte) {
	for k := range levelsRelaid {
		for i, l := range levelsRelaid[k] {
			n[k][uint8(l)] = byte(i)
		}
	}
	return n
}()
