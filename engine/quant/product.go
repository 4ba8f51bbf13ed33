package quant

import "math"

// The products of levels with records are defined to the last bit, so that
// every kernel can be checked for equality and a token comes out the same
// however rows and tokens are grouped.
//
// A row is cut into parts of 32 values, or of 16 where a format has scales for
// 16 (parts16). Within a part everything is whole numbers and exact: u is the
// sum of weight q times activation q. The parts of each 256 values go to 8 (or
// 16) chains of float32, part p of every 256 to chain p; a chain starts at 0
// and takes its parts in order:
//
//	chain = fma(float32(u), scale*d, chain)
//	chain = fma(-min, d*float32(sum of the activation q), chain)   formats with offsets only
//
// with the scale and offset of the weights' tile, the d of the activations, one
// rounding for scale*d and one for each fma. A row that ends within 256 values
// goes on with zeros. The chains are then added in pairs, the results in pairs,
// and so on.

// parts16 are the formats with a scale per 16 values.
var parts16 = [typeCount]bool{Q2_K: true, Q3_K: true, Q6_K: true, IQ2_XS: true, IQ2_S: true, IQ1_M: true, NVFP4: true,
	woven2_K: true, woven3_K: true, woven6_K: true}

// offsets are the formats whose tiles have offsets.
var offsets = [typeCount]bool{Q4_1: true, Q5_1: true, Q2_K: true, Q4_K: true, Q5_K: true,
	woven4_1: true, woven5_1: true, woven2_K: true, woven4_K: true, woven5_K: true}

// product is the definition above in plain Go, for one row and one activation
// row: the oracle of the kernels, and their stand-in for formats that a level
// lacks.
func (f *Format) product(row []byte, a *Acts, t int) float32 {
	var chains [16]float32
	var w tile
	parts, width := 8, 32
	if parts16[f.Type] {
		parts, width = 16, 16
	}
	for g, r := range a.recs[t*a.groups : (t+1)*a.groups] {
		f.tile256(&w, row, g*256, a.n)
		for p := range parts {
			var u int32
			k := p * width
			for i, v := range w.q[k : k+width] {
				u += int32(v) * int32(r.q[k+i])
			}
			d := r.d[order32(k/32)]
			chains[p] = fma32(float32(u), w.scale[k/16]*d, chains[p])
			if offsets[f.Type] {
				sum := float32(r.neg[order32(k/32)] / -128)
				if width == 16 {
					sum = float32(r.neg16[order16(k/16)] / -128)
				}
				chains[p] = fma32(-w.min[k/16], d*sum, chains[p])
			}
		}
	}
	for n := parts; n > 1; n /= 2 {
		for i := range n / 2 {
			chains[i] = chains[2*i] + chains[2*i+1]
		}
	}
	return chains[0]
}

// tile256 unpacks the 256 values of row from number k on; what lies past n is
// zero.
func (f *Format) tile256(w *tile, row []byte, k, n int) {
	var b tile
	for i := 0; i < 256; i += f.Block {
		if k+i >= n {
			clear(w.q[i:])
			clear(w.scale[i/16:])
			clear(w.min[i/16:])
			return
		}
		at := (k + i) / f.Block * f.Bytes
		f.unpack(&b, row[at:at+f.Bytes])
		copy(w.q[i:], b.q[:f.Block])
		copy(w.scale[i/16:], b.scale[:f.Block/16])
		copy(w.min[i/16:], b.min[:f.Block/16])
	}
}

// fma32 is a*b+c rounded once to float32. The product of two float32 is exact
// in float64. The sum may not be; where it is not, its last bit is set to odd
// in the direction of the exact value, which keeps the rounding to float32
// right (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums",
// 2008).
func fma32(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	t := s - p
	rest := (p - (s - t)) + (q - t)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 && rest == rest {
		if (rest > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}

// productFloat is the product of a row of floats at levels with records: value
// i goes to chain i%16 with one fma, the chains are added as i and i+8, then i
// and i+4, and so on.
func (f *Format) productFloat(row []byte, a *Acts, t int) float32 {
	var chains [16]float32
	var w [16]float32
	for i, x := range a.x[t*a.n : (t+1)*a.n] {
		if i%16 == 0 {
			n := min(16, a.n-i)
			f.Decode(w[:n], row[i*f.Bytes:])
		}
		chains[i%16] = fma32(w[i%16], x, chains[i%16])
	}
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			chains[i] += chains[i+n]
		}
	}
	return chains[0]
}
