package quant

import (
	"fmt"
	"math"
)

// Rows of the key and value cache in 8 and 4 bits. A row of n values (n a
// multiple of 64) is n/64 blocks:
//
//	Cache8: half d, 64 signed bytes q; value = d*q       (66 bytes)
//	Cache4: half d, half m, 32 bytes of nibbles; value = d*q + m  (36 bytes);
//	        value i is in the low half of byte i, value 32+i in its high half
//
// An 8-bit cache takes 52 %, a 4-bit cache 28 % of the memory of halves.

const (
	cacheBlock  = 64
	cache8Bytes = 66
	cache4Bytes = 36
)

// Cache8Bytes is the length of an 8-bit row of n values.
func Cache8Bytes(n int) int { return n / cacheBlock * cache8Bytes }

// Cache4Bytes is the length of a 4-bit row of n values.
func Cache4Bytes(n int) int { return n / cacheBlock * cache4Bytes }

// CacheFits says whether rows of n values can be kept in 8 or 4 bits.
func CacheFits(n int) error {
	if n <= 0 || n%cacheBlock != 0 {
		return fmt.Errorf("keep a cache row of %d values in 8 or 4 bits: want a multiple of %d; use f16", n, cacheBlock)
	}
	return nil
}

// ToCache8 rounds x to an 8-bit row.
func ToCache8(dst []byte, x []float32) {
	for len(x) >= cacheBlock {
		var most float32
		for _, v := range x[:cacheBlock] {
			most = max(most, float32(math.Abs(float64(v))))
		}
		d := putHalf(dst, most/127)
		inv := float32(0)
		if d > 0 {
			inv = 1 / d
		}
		for i, v := range x[:cacheBlock] {
			dst[2+i] = byte(toInt(v*inv, -127, 127))
		}
		dst, x = dst[cache8Bytes:], x[cacheBlock:]
	}
}

// ToCache4 rounds x to a 4-bit row.
func ToCache4(dst []byte, x []float32) {
	for len(x) >= cacheBlock {
		lo, hi := x[0], x[0]
		for _, v := range x[1:cacheBlock] {
			lo, hi = min(lo, v), max(hi, v)
		}
		d := putHalf(dst, (hi-lo)/15)
		m := putHalf(dst[2:], lo)
		inv := float32(0)
		if d > 0 {
			inv = 1 / d
		}
		for i := range cacheBlock / 2 {
			a := toInt((x[i]-m)*inv, 0, 15)
			b := toInt((x[i+32]-m)*inv, 0, 15)
			dst[4+i] = byte(a | b<<4)
		}
		dst, x = dst[cache4Bytes:], x[cacheBlock:]
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

// FromCache8 writes the len(dst) values of an 8-bit row, or of several that
// follow each other.
func FromCache8(dst []float32, row []byte) {
	if n := len(dst) / cacheBlock; n > 0 {
		vec.fromCache8(dst[:n*cacheBlock], row[:n*cache8Bytes], 0)
	}
}

// FromCache4 is FromCache8 for 4-bit rows.
func FromCache4(dst []float32, row []byte) {
	if n := len(dst) / cacheBlock; n > 0 {
		vec.fromCache4(dst[:n*cacheBlock], row[:n*cache4Bytes], 0)
	}
}

func plainFromCache8(dst []float32, row []byte, _ uintptr) {
	for len(dst) >= cacheBlock {
		d := half(row)
		for i := range cacheBlock {
			dst[i] = d * float32(int8(row[2+i]))
		}
		dst, row = dst[cacheBlock:], row[cache8Bytes:]
	}
}

// A nibble times a half is exact in float32, so that nothing depends on whether
// the sum is fused.
func plainFromCache4(dst []float32, row []byte, _ uintptr) {
	for len(dst) >= cacheBlock {
		d, m := half(row), half(row[2:])
		for i := range cacheBlock / 2 {
			dst[i] = d*float32(row[4+i]&15) + m
			dst[i+32] = d*float32(row[4+i]>>4) + m
		}
		dst, row = dst[cacheBlock:], row[cache4Bytes:]
	}
}
