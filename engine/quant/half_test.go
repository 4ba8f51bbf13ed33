package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

// halfValue is the definition of a half in float64.
func halfValue(h uint16) float64 {
	sign, e, m := 1.0, int(h>>10&31), float64(h&0x3ff)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch {
	case e == 31 && m != 0:
		return math.NaN()
	case e == 31:
		return math.Inf(int(sign))
	case e == 0:
		return sign * math.Ldexp(m, -24)
	}
	return sign * math.Ldexp(1024+m, e-25)
}

func TestHalvesAreExact(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got, want := float64(F16ToF32(h)), halfValue(h)
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != (h&0x8000 != 0) {
			t.Fatalf("half %#04x is %g, want %g", h, got, want)
		}
		back := F32ToF16(F16ToF32(h))
		if math.IsNaN(want) {
			if halfValue(back) == halfValue(back) {
				t.Fatalf("NaN %#04x came back as %#04x", h, back)
			}
		} else if back != h {
			t.Fatalf("half %#04x came back as %#04x", h, back)
		}
	}
}

func TestF32ToF16RoundsToNearestEven(t *testing.T) {
	check := func(f float32) {
		t.Helper()
		h := F32ToF16(f)
		got := halfValue(h)
		if f != f {
			if got == got {
				t.Fatalf("NaN became %#04x", h)
			}
			return
		}
		if math.Abs(float64(f)) >= 65520 {
			if !math.IsInf(got, 0) || math.Signbit(got) != (f < 0) {
				t.Fatalf("%g became %g, want infinity", f, got)
			}
			return
		}
		dist := math.Abs(float64(f) - got)
		for _, n := range []uint16{h - 1, h + 1} { // the neighbours in magnitude
			if n&0x7fff > 0x7c00 || n&0x8000 != h&0x8000 {
				continue
			}
			v := halfValue(n)
			if math.IsInf(v, 0) {
				v = math.Copysign(65536, v)
			}
			d := math.Abs(float64(f) - v)
			if d < dist || d == dist && h&1 == 1 {
				t.Fatalf("%g became %#04x (%g), but %#04x (%g) is nearer or even", f, h, got, n, v)
			}
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		check(math.Float32frombits(rng.Uint32()))
		check(float32(math.Ldexp(rng.Float64()*2-1, int(rng.Int32N(45))-28)))
	}
	for h := range uint16(0x7c00) { // ties between neighbours, and one step beside them
		mid := float32((halfValue(h) + min(halfValue(h+1), 65536)) / 2)
		for _, f := range []float32{mid, math.Nextafter32(mid, 0), math.Nextafter32(mid, 1e9)} {
			check(f)
			check(-f)
		}
	}
}

func TestBF16(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := BF16ToF32(h)
		if back := F32ToBF16(f); back != h && !(f != f && BF16ToF32(back) != BF16ToF32(back)) {
			t.Fatalf("bfloat16 %#04x came back as %#04x", h, back)
		}
	}
	for _, c := range []struct {
		f    float32
		want uint16
	}{
		{1, 0x3f80},
		{math.Float32frombits(0x3f808000), 0x3f80}, // tie, down to even
		{math.Float32frombits(0x3f818000), 0x3f82}, // tie, up to even
		{math.Float32frombits(0x3f808001), 0x3f81},
		{math.MaxFloat32, 0x7f80},
		{math.Float32frombits(0x7f800001), 0x7fc0}, // a NaN whose upper half would be infinity
	} {
		if got := F32ToBF16(c.f); got != c.want {
			t.Errorf("%g became %#04x, want %#04x", c.f, got, c.want)
		}
	}
}
