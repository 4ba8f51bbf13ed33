package quant

import (
	"encoding/binary"
	"math"
)

// Formats of ours: rows in another layout, which is faster to multiply and gives
// the same results to the last bit. Nothing reads or writes them in files.
//
// IQ3_S and IQ3_XXS look up vectors of four in a grid. All their values are one of
// 16 with a sign, so that a nibble says as much; what remains is a table of 16
// levels, which fits a register. It takes 136 bytes instead of 110 or 98:
//
//	4 bytes: float32 d
//	4 bytes: a nibble s for each 32 values, low halves first; scale = d*(2*s+1)
//	8 times 16 bytes: the numbers of 32 values, low halves first, then high ones

const (
	relaid3S   = Q2_0 + 1 // IQ3_S: level 2*number-15
	relaid3XXS = Q2_0 + 2 // IQ3_XXS: the levels of the grid, negative ones from 8 on
	typeCount  = relaid3XXS + 1
)

var relaid = [2]Format{
	blocks(relaid3S, "IQ3_S relaid", 256, 136, func(t *tile, src []byte) { unpackRelaid(t, src, &levelsRelaid[0]) }),
	blocks(relaid3XXS, "IQ3_XXS relaid", 256, 136, func(t *tile, src []byte) { unpackRelaid(t, src, &levelsRelaid[1]) }),
}

var levelsRelaid = func() (l [2][16]int8) {
	for i := range 8 {
		l[0][i], l[0][i+8] = int8(2*i-15), int8(2*i+1)
		l[1][i], l[1][i+8] = levels3[i], -levels3[i]
	}
	return l
}()

func unpackRelaid(t *tile, src []byte, table *[16]int8) {
	d := math.Float32frombits(binary.LittleEndian.Uint32(src))
	for g := range 8 {
		s := d * float32(1+2*(src[4+g/2]>>(4*(g%2))&15))
		t.scale[2*g], t.scale[2*g+1] = s, s
		t.min[2*g], t.min[2*g+1] = 0, 0
		lookup(t.q[32*g:], src[8+16*g:24+16*g], table)
	}
}

// Faster is the format of ours in which rows of f are faster to multiply at the
// active level, or nil. Its rows are longer: compare RowBytes.
func (f *Format) Faster() *Format {
	if active.Load().records {
		switch f.Type {
		case IQ3_S:
			return &relaid[0]
		case IQ3_XXS:
			return &relaid[1]
		}
	}
	return nil
}

// Relay writes rows of f, whole ones, to dst in the format f.Faster().
// len(dst) is len(w)/f.Bytes*f.Faster().Bytes.
func Relay(dst []byte, f *Format, w []byte) {
	g := f.Faster()
	scale := float32(1)
	if f.Type == IQ3_XXS {
		scale = 0.25 // d*(0.5+s)*0.5
	}
	var t tile
	for ; len(w) >= f.Bytes; dst, w = dst[g.Bytes:], w[f.Bytes:] {
		f.unpack(&t, w[:f.Bytes])
		binary.LittleEndian.PutUint32(dst, math.Float32bits(half(w)*scale))
		if f.Type == IQ3_S {
			copy(dst[4:8], w[106:110])
		} else {
			for g := range 4 {
				dst[4+g] = w[66+8*g+3]>>4 | w[66+8*g+7]>>4<<4
			}
		}
		numbers := &numbersRelaid[g.Type-relaid3S]
		for i := range 128 {
			q := t.q[i/16*32+i%16:]
			dst[8+i] = numbers[uint8(q[0])] | numbers[uint8(q[16])]<<4
		}
	}
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
