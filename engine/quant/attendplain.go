package quant

import (
	"math"
	"unsafe"
)

// The plain loops over slabs. Sums of products are whole numbers and exact;
// where floats are added, every step is rounded.

var plainSlabs = [2]slabOps{
	Cache8: {plainQuery8, plainScores8, plainScales8, plainWeights8, plainMix8},
	Cache4: {plainQuery4, plainScores4, plainScales4, plainWeights4, plainMix4},
}

// The largest numbers of queries and weights: 127*256 + 127 is the largest of two
// signed bytes; weights of 8 bits leave room for half of one that is carried on.
const (
	most16   = 32639
	most15   = 32767
	most8    = 127
	mostByte = 254

	// Numbers that are too small to divide by count as zero.
	leastMost = 1e-34

	// Sums with these have the whole number in their lowest bits.
	whole15 = 3 << 51 // of 64 bits
	whole8  = 3 << 22

	whole8Bits = 0x4b400000
)

// factor is what brings numbers up to top to whole ones up to most.
func factor(top, most float32) float32 {
	if top > leastMost {
		return most / top
	}
	return 0
}

func plainQuery8(a *slabCall) { plainQuery(a, most16) }
func plainQuery4(a *slabCall) { plainQuery(a, most8) }

func plainQuery(a *slabCall, most float32) {
	to := unsafe.Slice((*slabQuery)(a.x), a.nq)
	for i := range to {
		q, x := unsafe.Slice((*float32)(unsafe.Add(a.p, uintptr(i)*a.ldp)), cacheBlock), &to[i]
		var bits uint32 // as numbers without sign: infinity, and no number, are larger than others
		for _, v := range q {
			bits = max(bits, math.Float32bits(v)&0x7fffffff)
		}
		top := math.Float32frombits(bits)
		f, sum := factor(top, most), int32(0)
		for j, v := range q {
			w := int32(0)
			if t := float32(v*f) + whole8; t == t {
				w = int32(math.Float32bits(t)) - whole8Bits
			}
			sum += w
			x.high[j], x.low[j] = int8(w), 0
			if most == most16 {
				high := (w + 128) >> 8
				x.high[j], x.low[j] = int8(high), int8(w-high<<8)
			}
		}
		x.scale = top / most
		x.offset, x.less = x.scale*float32(sum), -128*sum
	}
}

// slab is slab s of a call.
func (a *slabCall) slab(s int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(a.slabs, uintptr(s)*a.size)), a.size)
}

func plainScores8(a *slabCall) { a.plainScores((*slabCall).rows8, 8) }
func plainScores4(a *slabCall) { a.plainScores((*slabCall).rows4, 0) }

// slabGroup is the numbers of 64 values of 16 rows.
type slabGroup [CacheRows][cacheBlock]int32

func (a *slabCall) rows8(to *slabGroup, s, g int) {
	b := a.slab(s)[2*CacheRows*a.groups+1024*g:]
	for i, v := range b[:1024] {
		to[i/4%CacheRows][i/64*4+i%4] = int32(int8(v))
	}
}

func (a *slabCall) rows4(to *slabGroup, s, g int) {
	b := a.slab(s)[4*CacheRows*a.groups+512*g:]
	for i, v := range b[:512] {
		r, j := i/4%CacheRows, i/64*8+i%4
		to[r][j], to[r][j+4] = int32(v&15), int32(v>>4)
	}
}

// plainScores multiplies rows with queries of which high counts 1<<shift times.
func (a *slabCall) plainScores(unpack func(a *slabCall, to *slabGroup, s, g int), shift int) {
	queries := unsafe.Slice((*slabQuery)(a.x), a.nq*a.groups)
	var q [cacheBlock]int32
	var rows slabGroup
	for s := range a.count {
		slab := a.slab(s)
		for g := range a.groups {
			unpack(a, &rows, s, g)
			for i := range a.nq {
				x := &queries[g*a.nq+i]
				for j := range q {
					q[j] = int32(x.high[j])<<shift + int32(x.low[j])
				}
				dst := a.scoresOf(i, s, g)
				for r := range dst {
					sum, row := int32(0), &rows[r]
					for j := 0; j < cacheBlock; j += 8 {
						a, b := (*[8]int32)(q[j:]), (*[8]int32)(row[j:])
						sum += a[0]*b[0] + a[1]*b[1] + a[2]*b[2] + a[3]*b[3] + a[4]*b[4] + a[5]*b[5] + a[6]*b[6] + a[7]*b[7]
					}
					t := half(slab[2*(g*CacheRows+r):]) * x.scale
					v := float32(float32(sum) * t)
					if shift == 0 {
						v += float32(half(slab[2*((a.groups+g)*CacheRows+r):]) * x.offset)
					}
					dst[r] += v
				}
			}
		}
	}
}

// scoresOf is where the scores of query i over slab s go; for the first group
// they begin with zero.
func (a *slabCall) scoresOf(i, s, g int) []float32 {
	dst := unsafe.Slice((*float32)(unsafe.Add(a.dst, uintptr(i)*a.ldd+uintptr(4*CacheRows*s))), CacheRows)
	if g == 0 {
		clear(dst)
	}
	return dst
}

func plainScales8(a *slabCall) { plainHalves(a, a.d, a.group) }
func plainScales4(a *slabCall) {
	plainHalves(a, a.d, a.group)
	plainHalves(a, a.m, a.groups+a.group)
}

func plainHalves(a *slabCall, to unsafe.Pointer, at int) {
	dst := unsafe.Slice((*float32)(to), sumRows)
	for s := range a.count {
		b := a.slab(s)[2*CacheRows*at:]
		for r := range CacheRows {
			dst[s*CacheRows+r] = half(b[2*r:])
		}
	}
}

// products writes the weights of query i times the scales of rows, and gives back
// the largest.
func (a *slabCall) products(i int, w *[sumRows]float32) float32 {
	p, d := (*[sumRows]float32)(unsafe.Add(a.p, uintptr(i)*a.ldp)), (*[sumRows]float32)(a.d)
	var top uint32 // as a number without sign: infinity, and no number, are larger than others
	for r := range w {
		w[r] = p[r] * d[r]
		top = max(top, math.Float32bits(w[r]))
	}
	return math.Float32frombits(top)
}

// numbers of the plain loops: 256 of 16 bits.
func (x *slabWeights) plain() *[sumRows]uint16 { return (*[sumRows]uint16)(unsafe.Pointer(x)) }

func plainWeights8(a *slabCall) {
	var w [sumRows]float32
	for i := range a.nq {
		x := a.weightsOf(i)
		to, top := x.plain(), a.products(i, &w)
		f := factor(top, most15)
		for r, v := range w {
			t := float64(v)*float64(f) + whole15 // the product is exact, and rounded once
			to[r] = uint16(math.Float64bits(t))
		}
		x.scale, x.offset = top/most15, 0
	}
}

// plainWeights4 rounds to 8 bits. What a weight loses goes to a row 64 further
// on, so that many small weights beside a large one are not lost.
func plainWeights4(a *slabCall) {
	var w [sumRows]float32
	for i := range a.nq {
		x := a.weightsOf(i)
		to, top := x.plain(), a.products(i, &w)
		f := factor(top, mostByte)
		var over [4 * CacheRows]float32
		for r, v := range w {
			t := float32(v*f) + over[r%len(over)]
			u := t + whole8
			over[r%len(over)] = t - (u - whole8)
			to[r] = uint16(math.Float32bits(u) & 255)
		}
		p, m := (*[sumRows]float32)(unsafe.Add(a.p, uintptr(i)*a.ldp)), (*[sumRows]float32)(a.m)
		var sums [CacheRows]float32
		for r := range p {
			sums[r%CacheRows] += float32(p[r] * m[r])
		}
		for n := CacheRows / 2; n > 0; n /= 2 {
			for l := range n {
				sums[l] += sums[l+n]
			}
		}
		x.scale, x.offset = top/mostByte, sums[0]
	}
}

func (a *slabCall) weightsOf(i int) *slabWeights {
	return (*slabWeights)(unsafe.Add(a.x, uintptr(i)*unsafe.Sizeof(slabWeights{})))
}

func plainMix8(a *slabCall) { a.plainMix((*slabCall).rows8) }
func plainMix4(a *slabCall) { a.plainMix((*slabCall).rows4) }

func (a *slabCall) plainMix(unpack func(a *slabCall, to *slabGroup, s, g int)) {
	var rows slabGroup
	var sums [8][cacheBlock]int32
	for first := 0; first < a.nq; first += len(sums) {
		clear(sums[:])
		some := sums[:min(len(sums), a.nq-first)]
		for s := range a.count {
			unpack(a, &rows, s, a.group)
			for i := range some {
				w, sum := a.weightsOf(first+i).plain(), &some[i]
				for r := range rows {
					if p, row := int32(w[s*CacheRows+r]), &rows[r]; p != 0 {
						for j, v := range row {
							sum[j] += p * v
						}
					}
				}
			}
		}
		for i := range some {
			x := a.weightsOf(first + i)
			dst := unsafe.Slice((*float32)(unsafe.Add(a.dst, uintptr(first+i)*a.ldd)), 16*a.columns)
			for j := range dst {
				v := float32(float32(some[i][j])*x.scale) + x.offset
				dst[j] += v
			}
		}
	}
}
