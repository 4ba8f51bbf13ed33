package ops_test

import (
	"math"
	"slices"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
)

// choose is what engine/sampler.go does, in float64: the token, its log
// probability, how near u was to another choice, and how many tokens the filters
// kept.
func choose(x []float32, c ops.Choice, u float64) (id int, logProb, margin float64, kept int) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	best, all := float64(slices.Max(x)), 0.0
	p := func(i int) float64 { return math.Exp(float64(x[i]) - best) }
	for i := range x {
		all += p(i)
	}
	topK, topP := c.TopK > 0 && c.TopK < len(x), c.TopP > 0 && c.TopP < 1
	if topK || topP || c.MinP > 0 { // else in the order of the vocabulary
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case x[a] > x[b]:
				return -1
			case x[a] < x[b]:
				return 1
			}
			return a - b
		})
	}
	n := len(order)
	margin = math.Inf(1)
	if c.MinP > 0 {
		for n > 1 && p(order[n-1]) < float64(c.MinP) {
			n--
		}
		margin = min(margin, math.Abs(p(order[n-1])-float64(c.MinP)))
		if n < len(order) {
			margin = min(margin, math.Abs(p(order[n])-float64(c.MinP)))
		}
	}
	if topK {
		n = min(n, c.TopK)
	}
	if topP {
		sum := all
		if topK {
			sum = 0
			for _, i := range order[:n] {
				sum += p(i)
			}
		}
		acc := 0.0
		for k, i := range order[:n] {
			acc += p(i)
			margin = min(margin, math.Abs(acc/sum-float64(c.TopP)))
			if acc >= float64(c.TopP)*sum {
				n = k + 1
				break
			}
		}
	}
	hot := func(i int) float64 { return math.Exp((float64(x[i]) - best) / float64(c.Temperature)) }
	sum := 0.0
	for _, i := range order[:n] {
		sum += hot(i)
	}
	at := u * sum
	id = order[n-1]
	for _, i := range order[:n] {
		margin = min(margin, math.Abs(at)/sum)
		if at -= hot(i); at < 0 {
			id = i
			break
		}
	}
	margin = min(margin, math.Abs(at)/sum)
	return id, float64(x[id]) - best - math.Log(all), margin, n
}

// TestSample: every filter, one and several rows, a list that is too short, and
// rows that are broken. Numbers u within 2e-5 of another choice are left out, as
// the device adds in float32.
func TestSample(t *testing.T) { testSample(t, 10_000, 12) }

// TestSampleSmall is for Oclgrind.
func TestSampleSmall(t *testing.T) { testSample(t, 1500, 1) }

// testSample draws `draws` times of n tokens with every setting.
func testSample(t *testing.T, n, draws int) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		r, err := b.set.Rows()
		b.ok(err)
		s, err := b.set.Sample(r)
		b.ok(err)
		const rows = 3
		room, err := ops.NewSampleRoom(b.arena, rows, n)
		b.ok(err)
		x := b.normal(rows*n, 2.5)
		for i := range n { // the middle row is flat: no 1024 of it decide anything
			x[n+i] *= 0.01
		}
		x[17], x[1400] = 9, 9 // equal bests: the lower number first
		dx, du, out := b.floats(x), b.floats(make([]float32, rows)), b.alloc(8*rows)
		decided, looked := 0, 0
		choices := []ops.Choice{
			{Temperature: 0.3}, {Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05},
			{Temperature: 1}, {Temperature: 0.8, TopK: 40}, {Temperature: 0.8, TopP: 0.8}, {Temperature: 1.5, MinP: 0.05}, {Temperature: 3, TopK: 5, TopP: 0.3}, {Temperature: 2, TopK: 700}, {Temperature: 1, TopK: 2, MinP: 0.9},
			{Temperature: 1, TopP: 0.2, MinP: 0.5}, {Temperature: 1, TopK: n, TopP: 1, MinP: 0.001},
		}
		if draws == 1 {
			choices = choices[:2]
		}
		for _, c := range choices {
			for range draws {
				u := make([]float32, rows)
				for i := range u {
					u[i] = b.rng.Float32()
				}
				b.poison(out)
				b.do(func(q *compute.Queue) error {
					if err := q.Write(du, 0, bytesOf(u)); err != nil {
						return err
					}
					return s.Draw(q, dx, rows, n, c, du, room, out)
				})
				ids, probs := b.readInts(out, 2*rows), b.read(out, 2*rows)
				for row := range rows {
					id, lp, margin, kept := choose(x[row*n:(row+1)*n], c, float64(u[row]))
					if looked++; ids[2*row] == -1 {
						if row != 1 && kept <= 700 {
							t.Errorf("%+v, row %d: not decided, though only %d are kept", c, row, kept)
						}
						continue
					}
					decided++
					if margin < 2e-5 {
						continue
					}
					if int(ids[2*row]) != id || math.Abs(float64(probs[2*row+1])-lp) > 1e-4 {
						t.Errorf("%+v, row %d, u %v: token %d with %v, want %d with %v (margin %g, %d kept)", c, row, u[row], ids[2*row], probs[2*row+1], id, lp, margin, kept)
					}
				}
			}
		}
		if decided < looked/2 {
			t.Errorf("%d of %d draws decided", decided, looked)
		}

		// a NaN and an infinity show, the other row does not mind
		x[100], x[2*n+n-1] = float32(math.NaN()), float32(math.Inf(1))
		for _, c := range []ops.Choice{{Temperature: 1}, {Temperature: 1, TopK: 40}} {
			b.do(func(q *compute.Queue) error {
				if err := q.Write(dx, 0, bytesOf(x)); err != nil {
					return err
				}
				return s.Draw(q, dx, rows, n, c, du, room, out)
			})
			if ids := b.readInts(out, 2*rows); ids[0] != -1 || ids[4] != -1 || c.TopK == 0 && ids[2] < 0 {
				t.Errorf("%+v with broken rows 0 and 2: %v", c, ids)
			}
		}

		// penalties
		l, ids := b.normal(50, 3), []int32{3, 49, 0, 7, 1000, -1}
		count, bias := []int32{2, 1, 0, 5, 1, 1}, []float32{0, 1, -2, 0.5, 9, 9}
		want := slices.Clone(l)
		for i, id := range ids[:4] {
			v := want[id] + bias[i]
			if count[i] > 0 {
				if v > 0 {
					v /= 1.2
				} else {
					v *= 1.2
				}
				v -= 0.3 + float32(count[i])*0.1
			}
			want[id] = v
		}
		dl := b.floats(l)
		p := ops.Penalties{IDs: b.ints(ids), Count: b.ints(count), Bias: b.floats(bias), N: len(ids), Repeat: 1.2, Presence: 0.3, Frequency: 0.1}
		b.do(func(q *compute.Queue) error { return s.Adjust(q, dl, len(l), p) })
		near(t, "penalties", b.read(dl, len(l)), want, 1e-6)
	})
}
