package engine

import "math"

// ropeKind is which dimensions of a head turn together.
type ropeKind int

const (
	ropeNone ropeKind = iota
	ropeNorm          // pairs (2i, 2i+1)
	ropeNeox          // pairs (i, i+n/2); also IMROPE on text, where all its axes are equal
)

// ropeSpec is a rotary position embedding: angle_i = pos * freq_i with
// freq_i = scale * base^(-2i/dims) / factor_i, bent by YaRN when yarn is set.
// Only the first dims values of a head turn.
type ropeSpec struct {
	kind ropeKind
	dims int
	base float64
	freq float64 // frequency scale, 1 / linear factor
	mag  float64 // cosine and sine are multiplied by it
	yarn yarnSpec
	// noFactors: rope_freqs.weight is not for these layers (Gemma 4's windows).
	noFactors bool
}

// yarnSpec is YaRN (Peng et al. 2023, arXiv 2309.00071): low frequencies are
// interpolated, high ones kept, with a ramp between.
type yarnSpec struct {
	factor     float64 // 0: off
	original   float64 // context the frequencies were trained for
	fast, slow float64 // turns over that context where the ramp begins and ends
}

// readRope reads the rope keys; suffix is "" or "_swa".
func readRope(k *keys, kind ropeKind, headDim int, suffix string) ropeSpec {
	r := ropeSpec{
		kind: kind,
		dims: k.intOr("rope.dimension_count"+suffix, headDim, 0, maxHeadDim),
		base: k.float("rope.freq_base"+suffix, 10000),
		freq: 1,
		mag:  1,
	}
	if r.dims > headDim || r.dims%2 != 0 {
		k.fail("key %q is %d, want an even number up to the head size %d", k.name("rope.dimension_count"+suffix), r.dims, headDim)
	}
	if r.base <= 0 {
		k.fail("key %q is %v, want a positive number", k.name("rope.freq_base"+suffix), r.base)
	}
	if r.dims == 0 {
		r.kind = ropeNone
	}
	factor := k.float("rope.scaling.factor", 0)
	if factor == 0 {
		factor = k.float("rope.scale_linear", 0)
	}
	attn := k.float("rope.scaling.attn_factor", 1)
	switch t := k.string("rope.scaling.type"); t {
	case "", "none":
	case "linear":
		if factor > 0 {
			r.freq = 1 / factor
		}
	case "yarn":
		r.yarn = yarnSpec{
			factor:   factor,
			original: float64(k.intOr("rope.scaling.original_context_length", k.intOr("context_length", 1, 1, maxContext), 1, maxContext)),
			fast:     k.float("rope.scaling.yarn_beta_fast", 32),
			slow:     k.float("rope.scaling.yarn_beta_slow", 1),
		}
		if factor <= 0 || r.base <= 1 || r.yarn.fast <= 0 || r.yarn.slow <= 0 {
			k.fail("yarn scaling with factor %v, base %v and betas %v, %v is not possible", factor, r.base, r.yarn.fast, r.yarn.slow)
			r.yarn = yarnSpec{}
			break
		}
		r.mag = attn * (1 + 0.1*math.Log(factor))
	case "longrope", "su":
		// The factors come as tensors (rope_factors_long); families that use
		// them say so.
	default:
		k.fail("key %q is %q, known are linear and yarn", k.name("rope.scaling.type"), t)
	}
	return r
}

// frequencies gives the dims/2 angular frequencies. factors divides them
// (rope_freqs.weight), nil is all ones.
func (r ropeSpec) frequencies(factors []float32) []float64 {
	n := r.dims / 2
	f := make([]float64, n)
	lo, hi := 0.0, 0.0
	if r.yarn.factor > 0 {
		// Dimension at which a frequency makes b turns over the original context.
		corr := func(b float64) float64 {
			return float64(r.dims) * math.Log(r.yarn.original/(b*2*math.Pi)) / (2 * math.Log(r.base))
		}
		top := float64(r.dims - 1)
		lo = min(max(math.Floor(corr(r.yarn.fast)), 0), top)
		hi = min(max(math.Ceil(corr(r.yarn.slow)), 0), top)
	}
	for i := range f {
		f[i] = math.Pow(r.base, -2*float64(i)/float64(r.dims))
		if factors != nil {
			f[i] /= float64(factors[i])
		}
		if r.yarn.factor > 0 {
			ramp := min(max((float64(i)-lo)/max(0.001, hi-lo), 0), 1)
			keep := 1 - ramp
			f[i] = f[i]/r.yarn.factor*(1-keep) + f[i]*keep
		} else {
			f[i] *= r.freq
		}
	}
	return f
}

// rope is a rotation ready to use: frequencies, and the cosines and sines of
// the positions of the current pass. Layers with equal settings share one.
type rope struct {
	spec ropeSpec
	freq []float64
}

// fill computes cos and sin for n positions from pos on: cs holds per position
// dims/2 cosines, then dims/2 sines.
func (r *rope) fill(cs []float32, pos, n int) {
	half := len(r.freq)
	for t := range n {
		row := cs[t*2*half : (t+1)*2*half]
		for i, f := range r.freq {
			sin, cos := math.Sincos(float64(pos+t) * f)
			row[i] = float32(cos * r.spec.mag)
			row[half+i] = float32(sin * r.spec.mag)
		}
	}
}

// turn rotates one head x in place with the row cs of its position.
func (r *rope) turn(x, cs []float32) {
	half := len(r.freq)
	cos, sin := cs[:half], cs[half:2*half]
	switch r.spec.kind {
	case ropeNorm:
		x = x[:2*half]
		for i, c := range cos {
			a, b, s := x[2*i], x[2*i+1], sin[i]
			x[2*i], x[2*i+1] = a*c-b*s, a*s+b*c
		}
	case ropeNeox:
		lo, hi := x[:half], x[half:2*half]
		for i, c := range cos {
			a, b, s := lo[i], hi[i], sin[i]
			lo[i], hi[i] = a*c-b*s, a*s+b*c
		}
	}
}
