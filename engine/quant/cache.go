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

// FromCache8 writes the len(dst) values of an 8-bit row.
func FromCache8(dst []float32, row []byte) {
	for len(dst) >= cacheBlock {
		d := half(row)
		for i := range cacheBlock {
			dst[i] = d * float32(int8(row[2+i]))
		}
		dst, row = dst[cacheBlock:], row[cache8Bytes:]
	}
}

// FromCache4 writes the len(dst) values of a 4-bit row.
func FromCache4(dst []float32, row []byte) {
	for len(dst) >= cacheBlock {
		d, m := half(row), half(row[2:])
		for i := range cacheBlock / 2 {
			dst[i] = d*float32(row[4+i]&15) + m
			dst[i+32] = d*float32(row[4+i]>>4) + m
		}
		dst, row = dst[cacheBlock:], row[cache4Bytes:]
	}
}

// ScoresQ8 writes the products of q with len(dst) 8-bit rows that start stride
// bytes apart. len(q) is a multiple of 64.
func ScoresQ8(dst, q []float32, k []byte, stride int) {
	if len(dst) > 0 {
		vec.scoresQ8(dst, q, k[:(len(dst)-1)*stride+Cache8Bytes(len(q))], stride)
	}
}

// MixQ8 adds the sum of p[i] times 8-bit row i to dst.
func MixQ8(dst, p []float32, v []byte, stride int) {
	if len(p) > 0 {
		vec.mixQ8(dst, p, v[:(len(p)-1)*stride+Cache8Bytes(len(dst))], stride)
	}
}

// ScoresQ4 is ScoresQ8 for 4-bit rows.
func ScoresQ4(dst, q []float32, k []byte, stride int) {
	if len(dst) > 0 {
		vec.scoresQ4(dst, q, k[:(len(dst)-1)*stride+Cache4Bytes(len(q))], stride)
	}
}

// MixQ4 is MixQ8 for 4-bit rows.
func MixQ4(dst, p []float32, v []byte, stride int) {
	if len(p) > 0 {
		vec.mixQ4(dst, p, v[:(len(p)-1)*stride+Cache4Bytes(len(dst))], stride)
	}
}

func plainScoresQ8(dst, q []float32, k []byte, stride int) {
	for r := range dst {
		row := k[r*stride:]
		var s float32
		for b := 0; b+cacheBlock <= len(q); b += cacheBlock {
			var t float32
			for i, v := range q[b : b+cacheBlock] {
				t += v * float32(int8(row[2+i]))
			}
			s += t * half(row)
			row = row[cache8Bytes:]
		}
		dst[r] = s
	}
}

func plainMixQ8(dst, p []float32, v []byte, stride int) {
	for r, s := range p {
		row := v[r*stride:]
		for b := 0; b+cacheBlock <= len(dst); b += cacheBlock {
			d := s * half(row)
			y := dst[b : b+cacheBlock]
			for i := range y {
				y[i] += d * float32(int8(row[2+i]))
			}
			row = row[cache8Bytes:]
		}
	}
}

func plainScoresQ4(dst, q []float32, k []byte, stride int) {
	for r := range dst {
		row := k[r*stride:]
		var s float32
		for b := 0; b+cacheBlock <= len(q); b += cacheBlock {
			var t, u float32
			x := q[b : b+cacheBlock]
			for i, c := range row[4:cache4Bytes] {
				t += x[i]*float32(c&15) + x[i+32]*float32(c>>4)
				u += x[i] + x[i+32]
			}
			s += t*half(row) + u*half(row[2:])
			row = row[cache4Bytes:]
		}
		dst[r] = s
	}
}

func plainMixQ4(dst, p []float32, v []byte, stride int) {
	for r, s := range p {
		row := v[r*stride:]
		for b := 0; b+cacheBlock <= len(dst); b += cacheBlock {
			d, m := s*half(row), s*half(row[2:])
			y := dst[b : b+cacheBlock]
			for i, c := range row[4:cache4Bytes] {
				y[i] += d*float32(c&15) + m
				y[i+32] += d*float32(c>>4) + m
			}
			row = row[cache4Bytes:]
		}
	}
}
