package quant

import (
	"encoding/binary"
	"unsafe"
)

// tile is one block of a quantised format as integers: value i is
// scale[i/16]*q[i] - min[i/16]. It holds blocks of up to 256 values; only the
// entries that a block covers are set. min stays zero for formats without
// offsets.
type tile struct {
	q     [256]int8
	scale [16]float32
	min   [16]float32
}

// The integers can be read and written eight at a time: byte k of a word is
// value 8*i+k. Words of small numbers are computed without carries between
// bytes.
const (
	ones = 0x0101010101010101 // 1 in each byte
	flip = 0x8080808080808080 // 128 in each byte: XOR moves -128..127 to 0..255 and back
)

func (t *tile) bytes() *[256]byte { return (*[256]byte)(unsafe.Pointer(&t.q)) }

// word is values 8*i to 8*i+7.
func (t *tile) word(i int) uint64 { return binary.LittleEndian.Uint64(t.bytes()[8*i&255:]) }

// put sets values 8*i to 8*i+7.
func (t *tile) put(i int, v uint64) { binary.LittleEndian.PutUint64(t.bytes()[8*i&255:], v) }

// putLess sets values 8*i to 8*i+7 to the numbers of v, each 0..127, less bias.
func (t *tile) putLess(i int, v uint64, bias uint64) { t.put(i, (v+(128-bias)*ones)^flip) }

// word64 is the i-th word of eight bytes of src.
func word64(src []byte, i int) uint64 { return binary.LittleEndian.Uint64(src[8*i:]) }

// scale32 sets the scale and the offset of group g of 32 values.
func (t *tile) scale32(g int, scale, min float32) {
	t.scale[2*g], t.scale[2*g+1] = scale, scale
	t.min[2*g], t.min[2*g+1] = min, min
}

// scaleAll sets one scale and no offset for the whole block.
func (t *tile) scaleAll(scale float32) {
	for j := range t.scale {
		t.scale[j], t.min[j] = scale, 0
	}
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
			for k := range n / 16 {
				scale, min, q, v := t.scale[k&15], t.min[k&15], (*[16]int8)(t.q[16*k:]), (*[16]float32)(dst[16*k:])
				for i := range v {
					v[i] = float32(scale*float32(q[i])) - min
				}
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
