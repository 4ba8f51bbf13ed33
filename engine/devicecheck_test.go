package engine

import "testing"

// TestCheckLimits: halves on matrix units widen what products may differ by, and
// nothing that has more room already.
func TestCheckLimits(t *testing.T) {
	for _, x := range []struct {
		halves    bool
		own, want float64
	}{
		{false, checkLimit, checkLimit}, {false, opLimit, opLimit}, {false, coarseLimit, coarseLimit},
		{true, checkLimit, halvesLimit}, {true, opLimit, roundedLimit}, {true, coarseLimit, coarseLimit},
	} {
		c := checker{halves: x.halves}
		if got := c.limit(x.own); got != x.want {
			t.Errorf("halves %v: limit of %g is %g, want %g", x.halves, x.own, got, x.want)
		}
	}
}
