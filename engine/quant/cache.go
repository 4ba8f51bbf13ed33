package quant

import (
	"fmt"
	"math"
)

// CacheKind is how rows of the key and value cache are kept in a few bits. A row
// of n values, n a multiple of 64, is n/64 groups, and 16 rows that follow each
// other are a slab, in which they lie as products of bytes want them:
//
//	Cache8: value = d*q. A slab is n/64 times 16 halves d, one for each row, and
//	        then for each group 16 times 64 bytes: number j holds values 4j to
//	        4j+3 of all rows, row by row, as signed bytes
//	Cache4: value = d*q + m. A slab is n/64 times 16 halves d, as many m, and then
//	        for each group 8 times 64 bytes: number j holds values 8j to 8j+3 of
//	        all rows in the low halves of its bytes, and 8j+4 to 8j+7 in the high
//	        ones
//
// An 8-bit cache takes 52 %, a 4-bit cache 28 % of the memory of halves.
type CacheKind int

const (
	Cache8 CacheKind = iota
	Cache4
)

// CacheRows is how many rows a slab has.
const CacheRows = 16

// cacheBlock is how many values of a row are a group.
const cacheBlock = 64

// RowBytes is a row's part of its slab.
func (c CacheKind) RowBytes(n int) int {
	if c == Cache8 {
		return n / cacheBlock * 66
	}
	return n / cacheBlock * 36
}

// CacheFits says whether rows of n values can be kept in 8 or 4 bits.
func CacheFits(n int) error {
	if n <= 0 || n%cacheBlock != 0 {
		return fmt.Errorf("keep a cache row of %d values in 8 or 4 bits: want a multiple of %d; use f16", n, cacheBlock)
	}
	return nil
}

// Put rounds x to row number row of the slabs.
func (c CacheKind) Put(slabs []byte, row int, x []float32) {
	size, groups := CacheRows*c.RowBytes(len(x)), len(x)/cacheBlock
	slab, r := slabs[row/CacheRows*size:][:size], row%CacheRows
	for g := range groups {
		at := 2 * (g*CacheRows + r)
		if c == Cache8 {
			put8(slab[at:], slab[2*CacheRows*groups+1024*g+4*r:], x[g*cacheBlock:])
		} else {
			put4(slab[at:], slab[at+2*CacheRows*groups:], slab[4*CacheRows*groups+512*g+4*r:], x[g*cacheBlock:])
		}
	}
}

// put8 rounds 64 values; fours of them go 64 bytes apart.
func put8(scale, to []byte, x []float32) {
	var most float32
	for _, v := range x[:cacheBlock] {
		most = max(most, float32(math.Abs(float64(v))))
	}
	inv := inverse(putHalf(scale, most/127))
	for i, v := range x[:cacheBlock] {
		to[i/4*64+i%4] = byte(toInt(v*inv, -127, 127))
	}
}

func put4(scale, offset, to []byte, x []float32) {
	lo, hi := x[0], x[0]
	for _, v := range x[1:cacheBlock] {
		lo, hi = min(lo, v), max(hi, v)
	}
	inv := inverse(putHalf(scale, (hi-lo)/15))
	m := putHalf(offset, lo)
	for i := 0; i < cacheBlock; i += 8 {
		for k := range 4 {
			a := toInt((x[i+k]-m)*inv, 0, 15)
			b := toInt((x[i+k+4]-m)*inv, 0, 15)
			to[8*i+k] = byte(a | b<<4)
		}
	}
}

// toInt rounds to the nearest whole number within lo..hi; NaN becomes lo. The
// scale beside it is NaN or infinite then, so that the row still reads as such.
func toInt(v float32, lo, hi int32) int32 {
	if !(v > float32(lo)) {
		return lo
	}
	if v > float32(hi) {
		return hi
	}
	return int32(math.RoundToEven(float64(v)))
}

// Get writes the values of row number row of the slabs.
func (c CacheKind) Get(dst []float32, slabs []byte, row int) {
	size, groups := CacheRows*c.RowBytes(len(dst)), len(dst)/cacheBlock
	slab, r := slabs[row/CacheRows*size:][:size], row%CacheRows
	for g := range groups {
		at, to := 2*(g*CacheRows+r), dst[g*cacheBlock:][:cacheBlock]
		d := half(slab[at:])
		if c == Cache8 {
			from := slab[2*CacheRows*groups+1024*g+4*r:]
			for i := range to {
				to[i] = d * float32(int8(from[i/4*64+i%4]))
			}
			continue
		}
		// A number of four bits times a half is exact, so that nothing depends on
		// whether the sum is fused.
		m, from := half(slab[at+2*CacheRows*groups:]), slab[4*CacheRows*groups+512*g+4*r:]
		for i := range to {
			to[i] = d*float32(from[i/8*64+i%4]>>(i&4)&15) + m
		}
	}
}
