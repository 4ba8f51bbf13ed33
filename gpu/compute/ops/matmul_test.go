package ops_test

import (
	"testing"

	"outcrop/engine/quant"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
	"outcrop/gpu/kernels"
)

// TestMMA is TestMatMul with the kernels for matrix units, emulated where the
// device has none.
func TestMMA(t *testing.T) {
	whole(t, "the emulation of matrix units")
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		b.set.UseMatrixUnits()
		rows, err := b.set.Rows()
		b.ok(err)
		eachFormat(t, b, func(b *bench, l kernels.Layout, f *quant.Format) {
			if l.Float() {
				return // float weights have no such kernel
			}
			b.testMatMul(l, f)
			b.testMatMulExperts(rows, l, f)
		})
	})
}

// TestMatMul: many columns, and columns of experts, in every format.
func TestMatMul(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		rows, err := b.set.Rows()
		b.ok(err)
		eachFormat(t, b, func(b *bench, l kernels.Layout, f *quant.Format) {
			b.testMatMul(l, f)
			b.testMatMulExperts(rows, l, f)
		})
	})
}

func (b *bench) testMatMul(l kernels.Layout, f *quant.Format) {
	const rows, cols, n = 150, 67, 256
	raw, x := randomRows(b.rng, f, rows*n), b.normal(cols*n, 1)
	want := product(b.t, f, raw, rows, x, cols, n)
	bias, before := b.normal(rows, 1), b.normal(cols*rows, 1)
	for i := range want {
		want[i] = before[i] + 0.5*(want[i]+bias[i%rows])
	}
	w, a := b.weight(l.Type, rows, n, 1, raw), b.acts(x, cols, n)
	mul, err := b.set.MatMul(w)
	b.ok(err)
	y, db := b.floats(before), b.floats(bias)
	b.do(func(q *compute.Queue) error {
		return mul.Run(q, a, cols, nil, ops.Out{Y: y, Ld: rows, Flags: ops.Bias | ops.Add, Extra: db, Scale: 0.5})
	})
	near(b.t, "many columns", b.read(y, cols*rows), want, 2e-5)
}

func (b *bench) testMatMulExperts(r *ops.Rows, l kernels.Layout, f *quant.Format) {
	const count, used, tokens, rows, n = 5, 2, 90, 40, 256
	raw, x := randomRows(b.rng, f, count*rows*n), b.normal(tokens*n, 1)
	var ids []int32
	for range tokens { // expert 3 gets none
		e := int32(b.rng.IntN(2))
		ids = append(ids, e, 2+2*int32(b.rng.IntN(2)))
	}
	bias := b.normal(count*rows, 1)
	var all [][]float32
	for e := range count {
		all = append(all, product(b.t, f, raw[e*len(raw)/count:][:len(raw)/count], rows, x, tokens, n))
	}
	want := make([]float32, tokens*used*rows)
	for i := range want {
		slot, row := i/rows, i%rows
		want[i] = all[ids[slot]][slot/used*rows+row] + bias[int(ids[slot])*rows+row]
	}
	w, a := b.weight(l.Type, rows, n, count, raw), b.acts(x, tokens, n)
	mul, err := b.set.MatMul(w)
	b.ok(err)
	di, db := b.ints(ids), b.floats(bias)
	start, order, y := b.alloc(4*(count+1)), b.alloc(4*tokens*used), b.alloc(4*tokens*used*rows)
	b.poison(y)
	b.do(func(q *compute.Queue) error {
		if err := r.Sort(q, di, tokens*used, count, start, order); err != nil {
			return err
		}
		return mul.Run(q, a, tokens, &ops.Slots{Experts: count, Order: order, Start: start, Div: used, Most: tokens},
			ops.Out{Y: y, Ld: rows, Flags: ops.Bias, Extra: db})
	})
	near(b.t, "experts", b.read(y, tokens*used*rows), want, 2e-5)
}
