package quant

import "math"

// Vector operations of the forward pass. Every function here is the plain loop;
// where a processor level has a faster one, vecTable (level.go) holds it and
// the exported name picks it. Slices that take part in one call have the length
// of the first one (longer is fine, shorter panics); dst may be the same slice
// as an input, but may not overlap it otherwise.

// DotF32 is the sum of a[i]*b[i].
func DotF32(a, b []float32) float32 { return vec.dotF32(a, b[:len(a)]) }

// AxpyF32 adds s*x to dst.
func AxpyF32(dst []float32, s float32, x []float32) { vec.axpyF32(dst, s, x[:len(dst)]) }

// ScaleF32 multiplies dst by s.
func ScaleF32(dst []float32, s float32) { vec.scaleF32(dst, s) }

// AddF32 adds x to dst.
func AddF32(dst, x []float32) { vec.addF32(dst, x[:len(dst)]) }

// MulF32 multiplies dst by x, element by element.
func MulF32(dst, x []float32) { vec.mulF32(dst, x[:len(dst)]) }

// SumSquares is the sum of x[i]*x[i].
func SumSquares(x []float32) float32 { return vec.dotF32(x, x) }

// RMSNorm writes x[i] * w[i] / sqrt(mean(x*x) + eps). A nil w stands for ones.
func RMSNorm(dst, x, w []float32, eps float32) {
	if len(x) == 0 {
		return
	}
	s := float32(1 / math.Sqrt(float64(SumSquares(x))/float64(len(x))+float64(eps)))
	dst = dst[:len(x)]
	if w == nil {
		copy(dst, x)
		vec.scaleF32(dst, s)
		return
	}
	vec.scaleMulF32(dst, x, s, w[:len(x)])
}

// Exp writes e^x[i], within 2e-7 of the exact value relative to it. Below -87.3
// the result is 0, above 88.7 it is +Inf; NaN stays NaN.
func Exp(dst, x []float32) { vec.exp(dst, x[:len(dst)]) }

// Sigmoid writes 1/(1+e^-x[i]).
func Sigmoid(dst, x []float32) { vec.sigmoid(dst, x[:len(dst)]) }

// SiLU writes x[i]/(1+e^-x[i]).
func SiLU(dst, x []float32) { vec.silu(dst, x[:len(dst)]) }

// SwiGLU writes gate[i]/(1+e^-gate[i]) * up[i].
func SwiGLU(dst, gate, up []float32) { vec.swiGLU(dst, gate[:len(dst)], up[:len(dst)]) }

// GeGLU writes gelu(gate[i])*up[i] with the tanh form of GELU:
// g/2 * (1 + tanh(sqrt(2/pi) * (g + 0.044715 g^3))), which is g times the
// sigmoid of twice the argument of tanh.
func GeGLU(dst, gate, up []float32) { vec.geGLU(dst, gate[:len(dst)], up[:len(dst)]) }

// Max is the largest of x; -Inf for an empty slice. NaN anywhere gives NaN or
// the largest of the others.
func Max(x []float32) float32 { return vec.max(x) }

// ExpSum replaces x[i] by e^(x[i]-top) and gives back the sum of the results.
func ExpSum(x []float32, top float32) float32 { return vec.expSum(x, top) }

// Softmax replaces x by e^x[i] over the sum of all e^x[i].
func Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	vec.scaleF32(x, 1/vec.expSum(x, vec.max(x)))
}

// ToF16 rounds x to halves, to nearest, ties to even.
func ToF16(dst []uint16, x []float32) { vec.toF16(dst[:len(x)], x) }

// DotF16 is the product of q with one row of halves.
func DotF16(q []float32, k []uint16) float32 {
	var s [1]float32
	ScoresF16(s[:], q, k, len(q))
	return s[0]
}

// AxpyF16 adds s times a row of halves to dst.
func AxpyF16(dst []float32, s float32, v []uint16) {
	p := [1]float32{s}
	MixF16(dst, p[:], v, len(dst))
}

// ScoresF16 writes the products of q with len(dst) rows of halves: row i is
// k[i*stride:][:len(q)]. One call for many keys costs little more than one
// product; heads that share keys should walk the keys in pieces that stay in
// cache (256 rows), all heads over one piece before the next.
func ScoresF16(dst, q []float32, k []uint16, stride int) {
	if len(dst) == 0 {
		return
	}
	vec.scoresF16(dst, q, k[:(len(dst)-1)*stride+len(q)], stride)
}

// MixF16 adds the sum of p[i] times row i of v to dst: row i is
// v[i*stride:][:len(dst)].
func MixF16(dst, p []float32, v []uint16, stride int) {
	if len(p) == 0 {
		return
	}
	vec.mixF16(dst, p, v[:(len(p)-1)*stride+len(dst)], stride)
}

// vecOps is one set of vector operations: the bodies behind the exported
// functions above, called with lengths already checked.
type vecOps struct {
	dotF32      func(a, b []float32) float32
	axpyF32     func(dst []float32, s float32, x []float32)
	scaleF32    func(dst []float32, s float32)
	scaleMulF32 func(dst, x []float32, s float32, w []float32) // dst = x*s*w
	addF32      func(dst, x []float32)
	mulF32      func(dst, x []float32)
	exp         func(dst, x []float32)
	sigmoid     func(dst, x []float32)
	silu        func(dst, x []float32)
	swiGLU      func(dst, gate, up []float32)
	geGLU       func(dst, gate, up []float32)
	max         func(x []float32) float32
	expSum      func(x []float32, top float32) float32
	toF16       func(dst []uint16, x []float32)
	scoresF16   func(dst, q []float32, k []uint16, stride int)
	mixF16      func(dst, p []float32, v []uint16, stride int)
	sweep       func(b []byte) uint64
}

// vec is the set in use.
var vec = plainVec

// plainVec is the set of plain loops.
var plainVec = vecOps{
	dotF32: plainDotF32, axpyF32: plainAxpyF32, scaleF32: plainScaleF32, scaleMulF32: plainScaleMulF32,
	addF32: plainAddF32, mulF32: plainMulF32,
	exp: plainExp, sigmoid: plainSigmoid, silu: plainSiLU, swiGLU: plainSwiGLU, geGLU: plainGeGLU,
	max: plainMax, expSum: plainExpSum,
	toF16: plainToF16, scoresF16: plainScoresF16, mixF16: plainMixF16,
	sweep: plainSweep,
}

func plainDotF32(a, b []float32) float32 {
	b = b[:len(a)]
	var s [8]float32
	for len(a) >= 8 {
		for i := range s {
			s[i] += a[i] * b[i]
		}
		a, b = a[8:], b[8:]
	}
	for i, v := range a {
		s[i&7] += v * b[i]
	}
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

func plainAxpyF32(dst []float32, s float32, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += s * x[i]
	}
}

func plainScaleF32(dst []float32, s float32) {
	for i := range dst {
		dst[i] *= s
	}
}

func plainScaleMulF32(dst, x []float32, s float32, w []float32) {
	x, w = x[:len(dst)], w[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * s * w[i]
	}
}

func plainAddF32(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += x[i]
	}
}

func plainMulF32(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] *= x[i]
	}
}

func plainExp(dst, x []float32) {
	for i, v := range x[:len(dst)] {
		dst[i] = exp32(v)
	}
}

func exp32(x float32) float32 {
	if x < expLow {
		return 0
	}
	return float32(math.Exp(float64(x)))
}

// expLow is where Exp drops to zero: the logarithm of the smallest normal number.
const expLow = -87.33654

func plainSigmoid(dst, x []float32) {
	for i, v := range x[:len(dst)] {
		dst[i] = 1 / (1 + exp32(-v))
	}
}

func plainSiLU(dst, x []float32) {
	for i, v := range x[:len(dst)] {
		dst[i] = v / (1 + exp32(-v))
	}
}

func plainSwiGLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i, v := range gate {
		dst[i] = v / (1 + exp32(-v)) * up[i]
	}
}

func plainGeGLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i, v := range gate {
		dst[i] = v / (1 + exp32(-gelu2*v*(1+geluCube*v*v))) * up[i]
	}
}

const (
	gelu2    = 1.5957691216057308 // 2*sqrt(2/pi)
	geluCube = 0.044715
)

func plainMax(x []float32) float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		if !(v <= top) {
			top = v
		}
	}
	return top
}

func plainExpSum(x []float32, top float32) float32 {
	var s float64
	for i, v := range x {
		e := exp32(v - top)
		x[i] = e
		s += float64(e)
	}
	return float32(s)
}

func plainToF16(dst []uint16, x []float32) {
	for i, v := range x {
		dst[i] = F32ToF16(v)
	}
}

func plainScoresF16(dst, q []float32, k []uint16, stride int) {
	for r := range dst {
		var s [4]float32
		row := k[r*stride:][:len(q)]
		for i, v := range q {
			s[i&3] += v * halves[row[i]]
		}
		dst[r] = (s[0] + s[2]) + (s[1] + s[3])
	}
}

func plainMixF16(dst, p []float32, v []uint16, stride int) {
	for r, s := range p {
		row := v[r*stride:][:len(dst)]
		for i := range dst {
			dst[i] += s * halves[row[i]]
		}
	}
}
