package ops_test

import (
	"math"
	"slices"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
)

func rms(x, w []float32, eps float32) []float32 {
	var s float64
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	f := 1 / math.Sqrt(s/float64(len(x))+float64(eps))
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(float64(v) * f)
		if w != nil {
			y[i] *= w[i]
		}
	}
	return y
}

func TestNorm(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		rows, err := b.set.Rows()
		b.ok(err)
		for _, n := range []int{32, 96, 4096, 8224} {
			const T, eps = 3, 1e-5
			x, add, w, post := b.normal(T*n, 1), b.normal(T*n, 2), b.normal(n, 1), b.normal(n, 1)
			to, err := ops.NewActs(b.arena, T, n, true, true)
			b.ok(err)
			dw, dp, da := b.floats(w), b.floats(post), b.floats(add)
			for _, c := range []struct {
				name string
				n    ops.Norm
				sum  func(x, a []float32) []float32
			}{
				{"plain", ops.Norm{}, func(x, _ []float32) []float32 { return x }},
				{"no weights", ops.Norm{W: nil}, func(x, _ []float32) []float32 { return x }},
				{"add", ops.Norm{Add: da, Scale: 0.25}, func(x, a []float32) []float32 {
					y := slices.Clone(x)
					for i := range y {
						y[i] += 0.25 * a[i]
					}
					return y
				}},
				{"sandwich", ops.Norm{Add: da, Post: dp}, func(x, a []float32) []float32 {
					y := slices.Clone(x)
					for i, v := range rms(a, post, eps) {
						y[i] += v
					}
					return y
				}},
			} {
				var want, sum []float32
				weights := w
				if c.name == "no weights" {
					weights = nil
				}
				for r := range T {
					s := c.sum(x[r*n:(r+1)*n], add[r*n:(r+1)*n])
					sum = append(sum, s...)
					want = append(want, rms(s, weights, eps)...)
				}
				dx := b.floats(x)
				c.n.X, c.n.N, c.n.Eps, c.n.To = dx, n, eps, to
				if weights != nil {
					c.n.W = dw
				}
				b.poison(to.X)
				b.poison(to.Q)
				b.do(func(q *compute.Queue) error { return rows.Norm(q, T, c.n) })
				near(t, c.name+" residual", b.read(dx, T*n), sum, 1e-6)
				near(t, c.name, b.read(to.X, T*n), want, 2e-6)
				b.rounded(c.name, to, T, b.read(to.X, T*n))
			}
		}
	})
}

// TestNotFinite: a broken number anywhere is still there after rounding.
func TestNotFinite(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			x := b.normal(128, 1)
			x[70] = bad
			v := b.dequant(b.acts(x, 1, 128), 1)
			for i, y := range v {
				if isNaN := y != y; isNaN != (i/32 == 2) {
					t.Fatalf("value %d after rounding a block with %v: %v", i, bad, y)
				}
			}
		}
	})
}

func TestSmallRows(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		r, err := b.set.Rows()
		b.ok(err)
		const T, n = 5, 1000
		x, y := b.normal(T*n, 3), b.normal(T*n, 1)
		scaled, capped, added := make([]float32, T*n), make([]float32, T*n), make([]float32, T*n)
		for i := range x {
			scaled[i] = x[i] * 0.3
			capped[i] = float32(5 * math.Tanh(float64(x[i]*2)/5))
			added[i] = x[i] + 0.5*y[i]
		}
		dx, dy := b.floats(x), b.floats(y)
		check := func(what string, want []float32, fn func(q *compute.Queue) error) {
			t.Helper()
			b.do(fn)
			near(t, what, b.read(dx, T*n), want, 1e-6)
			b.do(func(q *compute.Queue) error { return q.Write(dx, 0, bytesOf(x)) })
		}
		check("scale", scaled, func(q *compute.Queue) error { return r.Scale(q, dx, T*n, 0.3, 0) })
		check("cap", capped, func(q *compute.Queue) error { return r.Scale(q, dx, T*n, 2, 5) })
		check("add", added, func(q *compute.Queue) error { return r.Add(q, dx, dy, T*n, 0.5) })
		idx := []int32{4, 0, 2, 4}
		di, out := b.ints(idx), b.alloc(4*n*4)
		b.do(func(q *compute.Queue) error { return r.Gather(q, out, dx, di, 4, n) })
		var want []float32
		for _, i := range idx {
			want = append(want, x[i*n:(i+1)*n]...)
		}
		near(t, "gather", b.read(out, 4*n), want, 0)

		// rows of 40 values: 4 heads of 5, each with a gate behind it
		gate := b.normal(T*80, 1)
		z := b.normal(T*40, 1)
		gated := make([]float32, T*40)
		for i, v := range z {
			row, c := i/40, i%40
			g := gate[row*80+c/10*20+c%10]
			gated[i] = float32(float64(v) / (1 + math.Exp(-float64(g))))
		}
		dz, dg := b.floats(z), b.floats(gate)
		b.do(func(q *compute.Queue) error { return r.Gate(q, dz, T, 40, 10, dg, 80, 20) })
		near(t, "gate", b.read(dz, T*40), gated, 1e-6)

		const ff = 96
		gu := b.normal(T*2*ff, 2)
		h := make([]float32, T*ff)
		for i := range h {
			h[i] = act(ops.GELU, gu[i/ff*2*ff+i%ff], gu[i/ff*2*ff+ff+i%ff])
		}
		to, err := ops.NewActs(b.arena, T, ff, true, true)
		b.ok(err)
		dgu := b.floats(gu)
		du := b.floats(gu[ff:])
		b.do(func(q *compute.Queue) error { return r.GLU(q, to, T-1, dgu, 2*ff, du, 2*ff, ops.GELU) })
		near(t, "glu", b.read(to.X, (T-1)*ff), h[:(T-1)*ff], 2e-6)
	})
}

// routeInGo is models.md 1.4.
func routeInGo(l []float32, r ops.Route, bias []float32) ([]int32, []float32) {
	n := len(l)
	prob := make([]float64, n)
	var sum float64
	for i, v := range l {
		x := float64(v)
		switch r.Kind {
		case ops.Softmax:
			prob[i] = math.Exp(x)
			sum += prob[i]
		case ops.Sigmoid:
			prob[i] = 1 / (1 + math.Exp(-x))
		case ops.SqrtSoftplus:
			prob[i] = math.Sqrt(math.Log1p(math.Exp(x)))
		default:
			prob[i] = x
		}
	}
	score := make([]float64, n)
	for i := range prob {
		if r.Kind == ops.Softmax {
			prob[i] /= sum
		}
		score[i] = prob[i]
		if bias != nil {
			score[i] += float64(bias[i])
		}
	}
	if r.Groups > 1 {
		size := n / r.Groups
		gs := make([]float64, r.Groups)
		for g := range gs {
			s := slices.Clone(score[g*size : (g+1)*size])
			slices.Sort(s)
			gs[g] = s[size-1] + s[size-2]
		}
		order := slices.Clone(gs)
		slices.Sort(order)
		least := order[r.Groups-r.Kept]
		for i := range score {
			if gs[i/size] < least {
				score[i] = math.Inf(-1)
			}
		}
	}
	ids, w := make([]int32, r.Used), make([]float64, r.Used)
	var total float64
	for k := range ids {
		best := 0
		for i, v := range score {
			if v > score[best] {
				best = i
			}
		}
		score[best] = math.Inf(-1)
		ids[k], w[k] = int32(best), prob[best]
		if r.Kind == ops.SoftmaxPicked {
			w[k] = math.Exp(prob[best] - prob[ids[0]])
		}
		total += w[k]
	}
	out := make([]float32, r.Used)
	for k := range w {
		if r.Kind == ops.SoftmaxPicked || r.Norm {
			w[k] /= max(total, math.Ldexp(1, -14))
		}
		if r.Scale != 0 {
			w[k] *= float64(r.Scale)
		}
		out[k] = float32(w[k])
	}
	return ids, out
}

func TestRoute(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		r, err := b.set.Rows()
		b.ok(err)
		for _, c := range []struct {
			r    ops.Route
			bias bool
		}{
			{ops.Route{Experts: 8, Used: 2, Kind: ops.Softmax, Norm: true}, false},
			{ops.Route{Experts: 128, Used: 8, Kind: ops.Softmax, Norm: true}, false},
			{ops.Route{Experts: 64, Used: 6, Kind: ops.Softmax}, true},
			{ops.Route{Experts: 256, Used: 8, Kind: ops.Sigmoid, Norm: true, Scale: 2.5, Groups: 8, Kept: 4}, true},
			{ops.Route{Experts: 32, Used: 4, Kind: ops.SoftmaxPicked}, false},
			{ops.Route{Experts: 512, Used: 10, Kind: ops.Softmax, Norm: true}, false},
			{ops.Route{Experts: 100, Used: 7, Kind: ops.SqrtSoftplus, Norm: true, Scale: 1.5}, true},
		} {
			const T = 6
			logits := b.normal(T*(c.r.Experts+1), 1)
			var bias []float32
			if c.bias {
				bias = b.normal(c.r.Experts, 0.1)
				c.r.Bias = b.floats(bias)
			}
			dl := b.floats(logits)
			ids, w := b.alloc(int64(4*T*c.r.Used)), b.alloc(int64(4*T*c.r.Used))
			start, order := b.alloc(int64(4*(c.r.Experts+1))), b.alloc(int64(4*T*c.r.Used))
			b.do(func(q *compute.Queue) error {
				if err := r.Route(q, dl, c.r.Experts+1, T, c.r, ids, w); err != nil {
					return err
				}
				return r.Sort(q, ids, T*c.r.Used, c.r.Experts, start, order)
			})
			got := b.readInts(ids, T*c.r.Used)
			gotW := b.read(w, T*c.r.Used)
			for i := range T {
				want, wantW := routeInGo(logits[i*(c.r.Experts+1):][:c.r.Experts], c.r, bias)
				if g := got[i*c.r.Used:][:c.r.Used]; !slices.Equal(g, want) {
					t.Fatalf("%d of %d, kind %d: experts %v, want %v", c.r.Used, c.r.Experts, c.r.Kind, g, want)
				}
				near(t, "weights", gotW[i*c.r.Used:][:c.r.Used], wantW, 1e-5)
			}
			s, o := b.readInts(start, c.r.Experts+1), b.readInts(order, T*c.r.Used)
			var wantOrder []int32
			for e := range c.r.Experts {
				if int(s[e]) != len(wantOrder) {
					t.Fatalf("expert %d starts at %d, want %d", e, s[e], len(wantOrder))
				}
				for slot, id := range got {
					if int(id) == e {
						wantOrder = append(wantOrder, int32(slot))
					}
				}
				slices.Sort(o[s[e]:s[e+1]]) // no order within an expert is promised
			}
			if !slices.Equal(o, wantOrder) {
				t.Errorf("order %v, want %v", o, wantOrder)
			}
		}
		// Broken logits: the choice stays inside, the weights show it.
		bad := make([]float32, 64)
		for i := range bad {
			bad[i] = float32(math.NaN())
		}
		db, di, dwt := b.floats(bad), b.alloc(4*4), b.alloc(4*4)
		b.do(func(q *compute.Queue) error {
			return r.Route(q, db, 64, 1, ops.Route{Experts: 64, Used: 4, Kind: ops.Softmax, Norm: true}, di, dwt)
		})
		for i, e := range b.readInts(di, 4) {
			if w := b.read(dwt, 4)[i]; e < 0 || e >= 64 || w == w {
				t.Errorf("choice %d of broken logits: expert %d with weight %v, want one of 64 with NaN", i, e, w)
			}
		}
		// joining
		const T, used, n = 3, 4, 200
		s, w, y := b.normal(T*used*n, 1), b.normal(T*used, 1), b.normal(T*n, 1)
		want := slices.Clone(y)
		for i := range want {
			for j := range used {
				want[i] += 2 * w[i/n*used+j] * s[(i/n*used+j)*n+i%n]
			}
		}
		ds, dw, dy := b.floats(s), b.floats(w), b.floats(y)
		b.do(func(q *compute.Queue) error { return r.Slots(q, dy, ds, dw, T, used, n, 2, true) })
		near(t, "slots", b.read(dy, T*n), want, 1e-6)
	})
}

func TestPick(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		r, err := b.set.Rows()
		b.ok(err)
		const T, n, k = 3, 10_007, 40
		x := b.normal(T*n, 3)
		x[n+5000], x[n+77] = 50, 50 // a tie: the lower place wins
		dx := b.floats(x)
		tv, ti := b.alloc(ops.BestScratch(T, n)), b.alloc(ops.BestScratch(T, n))
		v, p := b.alloc(4*T), b.alloc(4*T)
		best := func() ([]float32, []int32) {
			b.do(func(q *compute.Queue) error { return r.Best(q, dx, T, n, tv, ti, v, p) })
			return b.read(v, T), b.readInts(p, T)
		}
		val, idx := best()
		for row := range T {
			want := 0
			for i, f := range x[row*n : (row+1)*n] {
				if f > x[row*n+want] {
					want = i
				}
			}
			if int(idx[row]) != want || val[row] != x[row*n+want] {
				t.Errorf("best of row %d: %v at %d, want %v at %d", row, val[row], idx[row], x[row*n+want], want)
			}
		}
		if idx[1] != 77 {
			t.Errorf("tie went to %d, want 77", idx[1])
		}

		// the k best of the first row
		type pair struct {
			v float32
			i int32
		}
		all := make([]pair, n)
		for i := range all {
			all[i] = pair{x[i], int32(i)}
		}
		slices.SortFunc(all, func(a, b pair) int {
			if a.v != b.v {
				if a.v > b.v {
					return -1
				}
				return 1
			}
			return int(a.i - b.i)
		})
		var scratch [4]*compute.Buffer
		for i := range scratch {
			scratch[i] = b.alloc(ops.TopScratch(n, k))
		}
		out := b.alloc(4)
		var dv, di *compute.Buffer
		b.do(func(q *compute.Queue) error {
			var err error
			dv, di, err = r.Top(q, dx, n, k, scratch)
			return err
		})
		gv, gi := b.read(dv, k), b.readInts(di, k)
		for i := range k {
			if gi[i] != all[i].i || gv[i] != all[i].v {
				t.Fatalf("candidate %d: %v at %d, want %v at %d", i, gv[i], gi[i], all[i].v, all[i].i)
			}
		}
		// drawing: u walks through the distribution of temperature 2, top-p 0.9
		var sum float64
		for i := range k {
			sum += math.Exp(float64(all[i].v-all[0].v) / 2)
		}
		var kept float64
		m := 0
		for m == 0 || kept < 0.9*sum {
			kept += math.Exp(float64(all[m].v-all[0].v) / 2)
			m++
		}
		at := 0.0
		for i := range m {
			e := math.Exp(float64(all[i].v-all[0].v)/2) / kept
			b.do(func(q *compute.Queue) error { return r.Draw(q, dv, di, k, 2, 0.9, 0, float32(at+e/2), out) })
			if got := b.readInts(out, 1)[0]; got != all[i].i {
				t.Errorf("u = %v drew %d, want candidate %d, which is %d", at+e/2, got, i, all[i].i)
			}
			at += e
		}

		// a broken number shows
		x[2*n+9000] = float32(math.NaN())
		b.do(func(q *compute.Queue) error { return q.Write(dx, 0, bytesOf(x)) })
		if _, idx := best(); idx[2] != -1 || idx[0] < 0 {
			t.Errorf("a NaN in row 2: places %v, want -1 there only", idx)
		}
	})
}

// TestSort: more slots than a turn of the kernel takes, experts without any.
func TestSort(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		r, err := b.set.Rows()
		b.ok(err)
		for _, c := range []struct{ slots, experts int }{{1, 8}, {5000, 300}, {4096, 3}} {
			ids := make([]int32, c.slots)
			for i := range ids {
				ids[i] = int32(b.rng.IntN(c.experts) / 2 * 2)
			}
			start, order := b.alloc(int64(4*(c.experts+1))), b.alloc(int64(4*c.slots))
			dids := b.ints(ids)
			b.do(func(q *compute.Queue) error { return r.Sort(q, dids, c.slots, c.experts, start, order) })
			s, o := b.readInts(start, c.experts+1), b.readInts(order, c.slots)
			seen, last := make([]bool, c.slots), int32(0)
			for e := range c.experts {
				if s[e] != last || s[e+1] < s[e] || int(s[e+1]) > c.slots {
					t.Fatalf("%d slots: expert %d from %d to %d, want from %d", c.slots, e, s[e], s[e+1], last)
				}
				for _, slot := range o[s[e]:s[e+1]] {
					if ids[slot] != int32(e) || seen[slot] {
						t.Fatalf("%d slots: slot %d of expert %d is with expert %d, or twice", c.slots, slot, ids[slot], e)
					}
					seen[slot] = true
				}
				last = s[e+1]
			}
			if int(last) != c.slots {
				t.Errorf("%d slots: %d placed", c.slots, last)
			}
		}
	})
}

// TestGLUMany: gates of many rows, in floats and rounded, with a row that is
// broken and a unit of zeroes.
func TestGLUMany(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		r, err := b.set.Rows()
		b.ok(err)
		const rows, ff, ld = 19, 1120, 2*1120 + 8
		gu := b.normal(rows*ld, 2)
		clear(gu[3*ld+64 : 3*ld+96])
		want := make([]float32, rows*ff)
		for i := range want {
			want[i] = act(ops.SiLU, gu[i/ff*ld+i%ff], gu[i/ff*ld+ff+i%ff])
		}
		to, err := ops.NewActs(b.arena, rows, ff, true, true)
		b.ok(err)
		g, u := b.floats(gu), b.floats(gu[ff:])
		b.do(func(q *compute.Queue) error { return r.GLU(q, to, rows, g, ld, u, ld, ops.SiLU) })
		near(t, "glu of many rows", b.read(to.X, rows*ff), want, 2e-6)
		b.rounded("glu of many rows", to, rows, b.read(to.X, rows*ff))

		gu[5*ld+40] = float32(math.NaN())
		bad := b.floats(gu)
		b.do(func(q *compute.Queue) error { return r.GLU(q, to, rows, bad, ld, u, ld, ops.SiLU) })
		scales := b.read(to.M, 2*rows*ff/32)
		for i := range rows * ff / 32 {
			if broken := scales[2*i] != scales[2*i]; broken != (i == 5*ff/32+1) {
				t.Errorf("scale of unit %d is %v after a NaN in row 5, unit 1", i, scales[2*i])
			}
		}
	})
}
