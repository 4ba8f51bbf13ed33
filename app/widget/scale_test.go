package widget

import (
	"math"
	"testing"
	"time"
)

func TestNiceMax(t *testing.T) {
	for in, want := range map[float64]float64{
		0: 1, -3: 1, math.NaN(): 1, math.Inf(1): 1, 0.3: 0.4, 1: 1, 1.01: 2, 7: 8, 38.2: 40, 41: 50, 99: 100, 100: 100, 1234: 2000, 2400: 2500,
	} {
		if got := NiceMax(in); math.Abs(got-want) > 1e-9 {
			t.Errorf("NiceMax(%v): got %v, want %v", in, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		span time.Duration
		n    int
		want int
		last time.Duration
	}{
		{time.Minute, 6, 7, time.Minute}, {5 * time.Minute, 6, 6, 5 * time.Minute},
		{time.Hour, 6, 7, time.Hour}, {time.Minute, 4, 5, time.Minute}, {0, 5, 0, 0},
	} {
		got := Ticks(c.span, c.n)
		if len(got) != c.want || (c.want > 0 && got[len(got)-1] != c.last) {
			t.Errorf("Ticks(%v, %d): got %v", c.span, c.n, got)
		}
	}
}

func TestColumns(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name          string
		times, values []float64
		width         int
		peak          bool
		want          []float64
	}{
		{"one a column", []float64{0.5, 1.5, 2.5, 3.5}, []float64{1, 2, 3, 4}, 4, false, []float64{1, 2, 3, 4}},
		{"mean", []float64{0.1, 0.2, 2.1}, []float64{1, 3, 5}, 4, false, []float64{2, 4, 5, nan}},
		{"peak", []float64{0.1, 0.2, 2.1}, []float64{3, 1, 5}, 4, true, []float64{3, 3, 5, nan}},
		{"unknown is a gap", []float64{0.5, 1.5, 2.5, 3.5}, []float64{1, nan, 3, 4}, 4, false, []float64{1, nan, 3, 4}},
		{"long silence is a gap", []float64{0, 3.9}, []float64{1, 1}, 8, false, []float64{1, nan, nan, nan, nan, nan, nan, 1}},
		{"outside", []float64{-5, 9}, []float64{1, 2}, 4, false, []float64{nan, nan, nan, nan}},
		{"nothing", nil, nil, 2, false, []float64{nan, nan}},
		{"zero is known", []float64{0, 1, 2, 3}, []float64{0, 0, 0, 0}, 4, false, []float64{0, 0, 0, 0}},
	} {
		got := Columns(c.times, c.values, 0, 4, c.width, 2.5, c.peak)
		for i := range c.want {
			if got[i] != c.want[i] && !(math.IsNaN(got[i]) && math.IsNaN(c.want[i])) {
				t.Errorf("%s: got %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

func TestNearest(t *testing.T) {
	times := []float64{1, 2, 5}
	for at, want := range map[float64]int{0.5: 0, 1.9: 1, 3.9: -1, 4.2: 2, 100: -1} {
		if got := Nearest(times, at, 1); got != want {
			t.Errorf("Nearest(%v): got %d, want %d", at, got, want)
		}
	}
}
