package engine

import (
	"slices"
	"testing"
)

// TestPieces: pieces add up to the prompt and keep within the chunk; small cards
// get many small ones, large ones fewer; no number of pieces of one length is
// quicker, and where later tokens take longer, later pieces are shorter.
func TestPieces(t *testing.T) {
	small, wide := pieceModel{fixed: pieceCost, quantum: 64}, pieceModel{fixed: widePieceCost, quantum: 128}
	deep, h200 := wide, wide
	deep.deep = 1e-4
	h200.deep, h200.span = 4e-5, 1024
	for _, x := range []struct {
		n, pos, stages, most int
		p                    pieceModel
		want                 []int // nil: not looked at
	}{
		{4096, 0, 2, 512, small, []int{512, 512, 512, 512, 512, 512, 512, 512}},
		{1024, 0, 2, 512, small, []int{256, 256, 256, 256}},
		{300, 0, 2, 512, small, nil},
		{100, 0, 2, 512, small, []int{100}},
		{1, 0, 2, 512, small, []int{1}},
		{4096, 0, 2, 2048, wide, nil},
		{8192, 0, 2, 2048, wide, nil},
		{4096, 0, 4, 2048, wide, nil},
		{4097, 0, 2, 2048, wide, nil},
		{4096, 0, 2, 2048, deep, nil},
		{30000, 2000, 3, 2048, deep, nil},
		{4096, 0, 2, 2048, h200, []int{1024, 1024, 1024, 1024}}, // the quickest of nine ways there
		{2048, 0, 2, 2048, h200, []int{1024, 1024}},
		{16384, 0, 2, 2048, h200, nil},
		{2049, 0, 1, 2048, wide, nil},
		{513, 0, 2, 512, small, nil},
	} {
		list := x.p.pieces(x.n, x.pos, x.stages, x.most)
		sum := 0
		for i, k := range list {
			sum += k
			if k < 1 || k > x.most {
				t.Errorf("%+v: pieces %v", x, list)
			}
			if i > 0 && i < len(list)-1 && x.p.deep > 0 && k > list[i-1]+x.p.quantum && x.p.span == 0 {
				t.Errorf("%+v: pieces grow: %v", x, list)
			}
		}
		if sum != x.n || x.want != nil && !slices.Equal(list, x.want) {
			t.Errorf("%+v: pieces %v of %d tokens", x, list, sum)
		}
		got := x.p.through(list, x.pos, x.stages)
		for k := 64; k <= x.most; k += 64 {
			var even []int
			for at := 0; at < x.n; at += k {
				even = append(even, min(k, x.n-at))
			}
			if t1 := x.p.through(even, x.pos, x.stages); x.n > leastPiece && k >= leastPiece && got > 1.04*t1 {
				t.Errorf("%+v: pieces %v take %.0f, of %d %.0f", x, list, got, k, t1)
			}
		}
		if testing.Verbose() {
			t.Logf("%d tokens at %d, %d stages, deep %g: %v", x.n, x.pos, x.stages, x.p.deep, list)
		}
	}
	if list := small.pieces(0, 0, 2, 512); list != nil {
		t.Errorf("no tokens: %v", list)
	}
	// Four pieces one after the other, by hand.
	// What was measured on the H200, in ms, to 4 %: a token is 0.0435 ms.
	for k, ms := range map[float64]float64{512: 44.2, 768: 55.5, 1024: 66.5, 1152: 83.7, 1280: 89.2, 1536: 100.9, 2048: 124.4} {
		if got := 0.0435 * h200.cost(0, k); got < 0.94*ms || got > 1.04*ms {
			t.Errorf("a piece of %v takes %.1f ms, measured %.1f", k, got, ms)
		}
	}
	if got := (pieceModel{fixed: 10}).through([]int{20, 30, 30, 10}, 5, 3); got != 40+90+2*40 {
		t.Errorf("through three stages: %v", got)
	}
}
