package ops_test

import (
	"testing"

	"outcrop/engine/quant"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
	"outcrop/gpu/kernels"
)

// TestHalf is TestMatMul with the kernels for matrix units over halves, emulated
// where the device has none: every format, every tile.
func TestHalf(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		b.set.UseMatrixUnits()
		rows, err := b.set.Rows()
		b.ok(err)
		eachFormat(t, b, func(b *bench, l kernels.Layout, f *quant.Format) {
			if l.Name == "F32" {
				return // has no such kernel
			}
			for i, tile := range kernels.FittingTiles(l, kernels.HalfTiles) {
				if i > 0 && !everyTile {
					break
				}
				b.set.UseTiles(tile)
				b.testMatMul(l, f, halfBound)
				b.testMatMulExperts(rows, l, f, halfBound)
			}
		})
	})
}

// TestDPAS is TestHalf with the kernels for Intel's matrix units, whose product
// is emulated in subgroups of 8 on devices that have none.
func TestDPAS(t *testing.T) {
	whole(t, "the emulation of Intel's matrix units")
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		if d.Info().Features.Nvidia > 0 {
			t.Skip("this card has other units")
		}
		b.set.UseDPAS()
		rows, err := b.set.Rows()
		b.ok(err)
		for _, tile := range kernels.DPASTiles(8) {
			b.set.UseTiles(tile)
			eachFormat(t, b, func(b *bench, l kernels.Layout, f *quant.Format) {
				if l.Name == "F32" || l.Name != "Q4_K" && l.Name != "Q6_K" && l.Name != "Q8_0" && l.Name != "F16" && l.Name != "IQ4_XS" {
					return // the way from a format to halves is TestHalf's
				}
				b.testMatMul(l, f, halfBound)
				b.testMatMulExperts(rows, l, f, halfBound)
			})
		}
	})
}

// TestUnitsProve: right units are found right, and units whose operands lie
// otherwise than the kernel believes are found out.
func TestUnitsProve(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		if d.Info().Features.Nvidia > 0 {
			t.Skip("this card has other units")
		}
		b := newBench(t, d)
		b.set.UseDPAS()
		if !b.set.UnitsRight() {
			t.Error("emulated units are found wrong")
		}
		b = newBench(t, d)
		b.set.Define("DPAS_SWAPPED=1")
		b.set.UseDPAS()
		if b.set.UnitsRight() {
			t.Error("units that take the halves of a pair the other way round are found right")
		}
	})
}

// halfBound is the relative RMS that products of halves may be off: weights and
// activations are rounded to 11 bits, a scale and an offset of a block as well.
const halfBound = 6e-4

// TestMMA is TestMatMul with the kernels for matrix units over 8-bit numbers.
func TestMMA(t *testing.T) {
	whole(t, "the emulation of matrix units")
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		b.set.UseByteUnits()
		rows, err := b.set.Rows()
		b.ok(err)
		eachFormat(t, b, func(b *bench, l kernels.Layout, f *quant.Format) {
			if l.Float() {
				return // float weights have no such kernel
			}
			b.testMatMul(l, f, 2e-5)
			b.testMatMulExperts(rows, l, f, 2e-5)
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
			b.testMatMul(l, f, 2e-5)
			b.testMatMulExperts(rows, l, f, 2e-5)
		})
	})
}

// TestSWAR: the dot product of devices without dp4a and without vectors of bytes,
// by shifts and multiplications of 24 bits, gives the same bits.
func TestSWAR(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		if d.Info().Features.Nvidia > 0 {
			t.Skip("this card has dp4a")
		}
		b := newBench(t, d)
		eachFormat(t, b, func(b *bench, l kernels.Layout, f *quant.Format) {
			if l.Float() {
				return
			}
			const rows, cols, n = 70, 66, 512
			w, a := b.weight(l.Type, rows, n, 1, randomRows(b.rng, f, rows*n)), b.acts(b.normal(cols*n, 1), cols, n)
			var got [2][2][]float32
			for i := range got {
				set, err := ops.New(d)
				b.ok(err)
				if i == 1 {
					set.Define("DOT_SWAR=1")
				}
				many, err := set.MatMul(w)
				b.ok(err)
				one, err := set.Mul(w, 1)
				b.ok(err)
				y, z := b.alloc(4*rows*cols), b.alloc(4*rows)
				b.do(func(q *compute.Queue) error {
					if err := many.Run(q, a, cols, nil, ops.Out{Y: y, Ld: rows}); err != nil {
						return err
					}
					return one.Run(q, a, 1, ops.Out{Y: z, Ld: rows})
				})
				got[i] = [2][]float32{b.read(y, rows*cols), b.read(z, rows)}
			}
			for k, what := range []string{"many columns", "one column"} {
				for i, v := range got[0][k] {
					if v != got[1][k][i] || v == 0 {
						b.t.Fatalf("%s: value %d is %v, by shifts %v", what, i, v, got[1][k][i])
					}
				}
			}
		})
	})
}

func (b *bench) testMatMul(l kernels.Layout, f *quant.Format, bound float64) {
	b.testMatMulOf(l, f, bound, 150, 67, 256)
	if l.Float() {
		b.testMatMulOf(l, f, bound, 450, 80, 96) // 150 rows are few, these are not
		b.testMatMulOf(l, f, bound, 33, 40, 288)
	}
}

func (b *bench) testMatMulOf(l kernels.Layout, f *quant.Format, bound float64, rows, cols, n int) {
	raw, x := randomRows(b.rng, f, rows*n), b.normal(cols*n, 1)
	want := product(b.t, f, raw, rows, x, cols, n)
	bias, before := b.normal(rows, 1), b.normal(cols*rows, 1)
	for i := range want {
		want[i] = before[i] + 0.5*(want[i]+bias[i%rows])
	}
	w, a := b.weight(l.Type, rows, n, 1, raw), b.manyActs(x, cols, n)
	mul, err := b.set.MatMul(w)
	b.ok(err)
	y, db := b.floats(before), b.floats(bias)
	b.do(func(q *compute.Queue) error {
		return mul.Run(q, a, cols, nil, ops.Out{Y: y, Ld: rows, Flags: ops.Bias | ops.Add, Extra: db, Scale: 0.5})
	})
	near(b.t, "many columns", b.read(y, cols*rows), want, bound)
}

func (b *bench) testMatMulExperts(r *ops.Rows, l kernels.Layout, f *quant.Format, bound float64) {
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
	w, a := b.weight(l.Type, rows, n, count, raw), b.manyActs(x, tokens, n)
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
	near(b.t, "experts", b.read(y, tokens*used*rows), want, bound)
}

// manyActs is acts with room for halves.
func (b *bench) manyActs(x []float32, rows, n int) *ops.Acts {
	a := b.acts(x, rows, n)
	if a.H == nil {
		b.ok(a.AddHalves(b.arena))
	}
	b.poison(a.H)
	b.poison(a.HS)
	return a
}
