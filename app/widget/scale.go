package widget

import (
	"math"
	"time"
)

// NiceMax rounds a maximum up to 1, 2, 2.5, 4, 5 or 8 times a power of ten, so
// that a scale does not change with every sample.
func NiceMax(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 4, 5, 8, 10} {
		if v <= m*p*(1+1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// Ticks gives at most n marks on a time axis that ends now, as ages: 0 is now.
func Ticks(span time.Duration, n int) []time.Duration {
	if span <= 0 || n < 1 {
		return nil
	}
	for _, step := range []time.Duration{
		time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
	} {
		if int(span/step) <= n {
			var t []time.Duration
			for a := time.Duration(0); a <= span; a += step {
				t = append(t, a)
			}
			return t
		}
	}
	return []time.Duration{0, span}
}

// Columns reduces samples to one value a pixel column: the mean of what falls
// into it, or the biggest when peak is set. NaN stands for unknown and for
// columns without samples; a column between two samples of at most gap apart
// is filled on the line between them. times are seconds, ascending; the axis
// runs from begin to end.
func Columns(times, values []float64, begin, end float64, width int, gap float64, peak bool) []float64 {
	out := make([]float64, width)
	count := make([]int, width)
	for i := range out {
		out[i] = math.NaN()
	}
	if width == 0 || end <= begin {
		return out
	}
	scale := float64(width) / (end - begin)
	col := func(t float64) int { return int((t - begin) * scale) }
	last := -1 // index of the known sample before this one
	for i, t := range times {
		v := values[i]
		if math.IsNaN(v) {
			last = -1
			continue
		}
		if c := col(t); t >= begin && c >= 0 && c < width {
			switch {
			case count[c] == 0:
				out[c] = v
			case peak:
				out[c] = math.Max(out[c], v)
			default:
				out[c] += (v - out[c]) / float64(count[c]+1)
			}
			count[c]++
		}
		if last >= 0 && t-times[last] <= gap {
			a, b := col(times[last]), col(t)
			for c := max(a+1, 0); c < min(b, width); c++ {
				if count[c] == 0 {
					f := float64(c-a) / float64(b-a)
					out[c] = values[last] + f*(v-values[last])
				}
			}
		}
		last = i
	}
	return out
}

// Nearest gives the index of the sample closest to t, or -1 when none is
// within reach.
func Nearest(times []float64, t, reach float64) int {
	best, at := reach, -1
	for i, x := range times {
		if d := math.Abs(x - t); d <= best {
			best, at = d, i
		}
	}
	return at
}
