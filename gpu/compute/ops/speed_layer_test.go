//go:build slow

package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// experts: one token of a 30B-A3B like model, 8 of 128 experts of 768.
func (u *tuning) experts(types []uint32, first, second, pairs []string) {
	count, used, ff, dim, n := 128, 8, 768, 2048, 8
	if u.small {
		count, ff, dim, n = 8, 256, 256, 1
	}
	for _, t := range types {
		l, _ := kernels.LayoutOf(t)
		for o, s := range u.s {
			if u.parts > 0 && o > 0 || u.late() {
				continue
			}
			var bufs []*compute.Buffer
			bank := func(rows, cols int) (list []*Weight) {
				size, err := WeightSize(t, rows, cols)
				s.ok(err)
				for range n {
					b := s.buf(size * int64(count))
					s.random(b)
					bufs = append(bufs, b)
					w, err := NewWeight(t, rows, cols, count, b)
					s.ok(err)
					list = append(list, w)
				}
				return list
			}
			ups, downs := bank(2*ff, dim), bank(dim, ff)
			a, freeA := s.acts(1, dim)
			to, freeTo := s.acts(used, ff)
			to = &Acts{Cols: ff, Rows: used, Q: to.Q, M: to.M}
			ids := s.buf(int64(4 * used * n))
			raw := make([]byte, 4*used*n)
			for i := range used * n {
				raw[4*i] = byte(i * 37 % count)
			}
			s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Write(ids, 0, raw) }))
			weight, y := s.buf(int64(4*used)), s.buf(int64(4*dim))
			measure := func(what, text string, ws []*Weight, run func(m *Mul, q *compute.Queue, ids *compute.Buffer) error) {
				if !u.mine() || u.late() {
					return
				}
				set := u.set(s, way(text), 1)
				var muls []*Mul
				for _, w := range ws {
					m, err := set.Mul(w, 1)
					s.ok(err)
					muls = append(muls, m)
				}
				if u.parts > 0 {
					return
				}
				d := u.quick(s, func(q *compute.Queue) error {
					for i, m := range muls {
						at, err := q.Slice(ids, 0, ids.Len())
						if err == nil && n > 1 && s.dev.Info().Align <= int64(4*used) {
							at, err = q.Slice(ids, int64(4*used*i), int64(4*used))
						}
						if err != nil {
							return err
						}
						if err := run(m, q, at); err != nil {
							return err
						}
					}
					return nil
				})
				g := gbs(int64(n*used)*ws[0].Stride, d)
				fmt.Printf("%s %-7s overlap %d %-16s %5.0f GB/s %3.0f %% %6.2f us\n", what, l.Name, o, text, g, 100*g/u.copied, us(d)/float64(n))
			}
			for _, text := range first {
				measure("experts gate", text, ups, func(m *Mul, q *compute.Queue, at *compute.Buffer) error {
					return m.RunExperts(q, a, 1, used, at, GLU{To: to})
				})
			}
			for _, text := range second {
				measure("experts down", text, downs, func(m *Mul, q *compute.Queue, at *compute.Buffer) error {
					return m.RunDown(q, to, 1, used, at, weight, Out{Y: y, Ld: dim})
				})
			}
			for _, text := range pairs {
				if !u.mine() || u.late() {
					continue
				}
				set := u.set(s, way(text), 1)
				var both [][2]*Mul
				for i := range ups {
					up, err := set.Mul(ups[i], 1)
					s.ok(err)
					down, err := set.Mul(downs[i], 1)
					s.ok(err)
					both = append(both, [2]*Mul{up, down})
				}
				if u.parts > 0 {
					continue
				}
				for _, settled := range []int{0, Settled} {
					d := u.quick(s, func(q *compute.Queue) error {
						for _, m := range both {
							if err := m[0].RunExperts(q, a, 1, used, ids, GLU{To: to}); err != nil {
								return err
							}
							if err := m[1].RunDown(q, to, 1, used, ids, weight, Out{Y: y, Ld: dim, Flags: settled}); err != nil {
								return err
							}
						}
						return nil
					})
					g := gbs(int64(n*used)*(ups[0].Stride+downs[0].Stride), d)
					fmt.Printf("experts both %-7s overlap %d settled %d %-24s %5.0f GB/s %3.0f %% %6.2f us\n", l.Name, o, settled, text, g, 100*g/u.copied, us(d)/float64(n))
				}
			}
			freeA()
			freeTo()
			for _, b := range append(bufs, ids, weight, y) {
				b.Free()
			}
		}
	}
}

// layer: the products of a dense layer of 8B size (4096, 32/8 heads of 128,
// 14336), Q4_K with v and the second half of the feed-forward in Q6_K, each
// after a rounding of what it reads.
func (u *tuning) layer(ways []string) {
	dim, kv, ff, n := 4096, 1024, 14336, 10
	if u.small {
		dim, kv, ff, n = 512, 256, 512, 1
	}
	if u.parts > 0 {
		n = 1
	}
	for o, s := range u.s {
		if u.parts > 0 && o > 0 || u.late() {
			continue
		}
		var bytes int64
		matrix := func(t uint32, rows, cols int) []*Weight {
			ws, free := s.many(t, rows, cols, n)
			bytes += int64(n) * ws[0].Stride
			u.frees = append(u.frees, free)
			return ws
		}
		all := [][]*Weight{matrix(12, dim, dim), matrix(12, kv, dim), matrix(14, kv, dim), matrix(12, dim, dim), matrix(12, 2*ff, dim), matrix(14, dim, ff)}
		x, f1 := s.acts(1, dim)
		h, f2 := s.acts(1, ff)
		h = &Acts{Cols: ff, Rows: 1, Q: h.Q, M: h.M}
		y := s.buf(int64(4 * dim))
		for _, text := range ways {
			if !u.mine() || u.late() {
				continue
			}
			set := u.set(s, way(text), 1)
			var muls [][]*Mul
			for _, ws := range all {
				var list []*Mul
				for _, w := range ws {
					m, err := set.Mul(w, 1)
					s.ok(err)
					list = append(list, m)
				}
				muls = append(muls, list)
			}
			if u.parts > 0 {
				continue
			}
			round, err := set.Quantize()
			s.ok(err)
			for _, flags := range [][3]int{{}, {Hold, Settled, Settled}} {
				d := u.quick(s, func(q *compute.Queue) error {
					for i := range n {
						err := round.Run(q, x, x.X, 1, dim)
						for j := 0; j < 3 && err == nil; j++ {
							err = muls[j][i].Run(q, x, 1, Out{Y: y, Ld: dim, Flags: flags[j]})
						}
						if err == nil {
							err = round.Run(q, x, x.X, 1, dim)
						}
						if err == nil {
							err = muls[3][i].Run(q, x, 1, Out{Y: y, Ld: dim})
						}
						if err == nil {
							err = round.Run(q, x, x.X, 1, dim)
						}
						if err == nil {
							err = muls[4][i].RunGLU(q, x, 1, GLU{To: h})
						}
						if err == nil {
							err = muls[5][i].Run(q, h, 1, Out{Y: y, Ld: dim})
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
				g := gbs(bytes, d)
				fmt.Printf("layer overlap %d settled %v %-24s %5.0f GB/s %3.0f %% %6.2f us\n", o, flags[1] > 0, text, g, 100*g/u.copied, us(d)/float64(n))
			}
		}
		f1()
		f2()
		y.Free()
		for _, free := range u.frees {
			free()
		}
		u.frees = nil
	}
}
