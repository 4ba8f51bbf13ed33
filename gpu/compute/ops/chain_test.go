package ops_test

import (
	"testing"

	"outcrop/engine/quant"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
)

// TestChain replays a sequence in which products read, over and over, the same
// place of memory that the kernel before them has just written: with
// overlapping launches (OUTCROP_TEST_OVERLAP) a product begins before that kernel
// has ended, and must not see what lay there before.
func TestChain(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		const n, steps = 1024, 24
		f, err := quant.Of(quant.Q4_K)
		b.ok(err)
		raw := randomRows(b.rng, f, n*n)
		w := b.weight(uint32(quant.Q4_K), n, n, 1, raw)
		mul, err := b.set.Mul(w, 1)
		b.ok(err)
		round, err := b.set.Quantize()
		b.ok(err)
		a, err := ops.NewActs(b.arena, 1, n, false, true)
		b.ok(err)
		x := b.normal(steps*n, 1)
		want := product(t, f, raw, n, x, steps, n)
		dx := b.floats(x)
		var ys [3]*compute.Buffer
		for i := range ys {
			ys[i] = b.alloc(4 * steps * n)
		}
		seq, err := d.Record(func(q *compute.Queue) error {
			for i := range steps {
				from, err := q.Slice(dx, int64(4*n*i), 4*n)
				b.ok(err)
				if err := round.Run(q, a, from, 1, n); err != nil {
					return err
				}
				for j, flags := range []int{ops.Hold, ops.Settled, ops.Settled} {
					to, err := q.Slice(ys[j], int64(4*n*i), 4*n)
					b.ok(err)
					if err := mul.Run(q, a, 1, ops.Out{Y: to, Ld: n, Flags: flags}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		b.ok(err)
		defer seq.Free()
		for range 5 {
			for _, y := range ys {
				b.poison(y)
			}
			b.do(func(q *compute.Queue) error { return q.Replay(seq) })
			for _, y := range ys {
				near(t, "chain", b.read(y, steps*n), want, 2e-5)
			}
		}
	})
}
