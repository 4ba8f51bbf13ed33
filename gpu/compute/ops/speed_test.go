package ops

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// speed measures on a card. It is not a test: OUTCROP_GPU_SPEED=1, or the
// names of the parts wanted, turns it on.
type speed struct {
	t   *testing.T
	dev *compute.Device
	set *Set
}

func TestSpeed(t *testing.T) {
	want := os.Getenv("OUTCROP_GPU_SPEED")
	if want == "" {
		t.Skip("measures on a card: set OUTCROP_GPU_SPEED=1")
	}
	only := os.Getenv("OUTCROP_TEST_GPU")
	for _, drv := range compute.Drivers() {
		infos, err := drv.Devices()
		if err != nil {
			t.Log(err)
			continue
		}
		for _, i := range infos {
			if i.CPU && os.Getenv("OUTCROP_GPU_CPU") == "" || only != "" && only != "1" && !strings.Contains(only, drv.Name()) {
				continue
			}
			d, err := compute.Open(drv, i, compute.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := &speed{t: t, dev: d}
			if s.set, err = New(d); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("== %s, %s, driver %s\n", i, i.API, i.Version)
			for _, p := range []struct {
				name string
				fn   func()
			}{{"link", s.link}, {"launch", s.launch}, {"vec", s.vec}, {"rows", s.rowsSweep}, {"columns", s.columns}, {"glu", s.glu}, {"experts", s.experts}, {"attend", s.attend}, {"small", s.small}, {"mat", s.mat}, {"flash", s.flashes}} {
				if want == "1" || strings.Contains(want, p.name) {
					p.fn()
				}
			}
			d.Close()
		}
	}
}

func (s *speed) ok(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
}

func (s *speed) buf(n int64) *compute.Buffer {
	b, err := s.dev.Alloc(n)
	s.ok(err)
	return b
}

// random fills a buffer with words that look random.
func (s *speed) random(b *compute.Buffer) {
	k, err := s.set.load(kernels.Light(), "light_write")
	s.ok(err)
	s.ok(s.dev.Do(func(q *compute.Queue) error {
		return q.Launch(k, compute.Dim{X: 1024}, compute.Dim{X: 256}, compute.Mem(b), compute.Long(b.Len()/4), compute.Long(0), compute.Int(7))
	}))
}

// median runs fn (which waits) and gives the median time of n runs.
func median(n int, fn func()) time.Duration {
	fn()
	var all []time.Duration
	for range n {
		t := time.Now()
		fn()
		all = append(all, time.Since(t))
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all[n/2]
}

// graph records fn and gives the median time of a replay.
func (s *speed) graph(n int, fn func(q *compute.Queue) error) time.Duration {
	seq, err := s.dev.Record(fn)
	s.ok(err)
	defer seq.Free()
	run := func() { s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Replay(seq) })) }
	for t := time.Now(); time.Since(t) < 60*time.Millisecond; {
		run() // an idle card clocks down
	}
	return median(n, run)
}

func gbs(bytes int64, d time.Duration) float64 { return float64(bytes) / d.Seconds() / 1e9 }

func (s *speed) link() {
	const n = 2 << 30
	a, b := s.buf(n), s.buf(n)
	defer a.Free()
	defer b.Free()
	s.random(a)
	d := median(5, func() { s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Copy(b, 0, a, 0, n) })) })
	fmt.Printf("copy on the device            %8.0f GB/s (read + written)\n", gbs(2*n, d))
	k, err := s.set.load(kernels.Light(), "light_copy")
	s.ok(err)
	d = median(5, func() {
		s.ok(s.dev.Do(func(q *compute.Queue) error {
			return q.Launch(k, compute.Dim{X: 132 * 16}, compute.Dim{X: 256}, compute.Mem(a), compute.Mem(b), compute.Long(n/16))
		}))
	})
	fmt.Printf("copy by a kernel              %8.0f GB/s\n", gbs(2*n, d))
	k, err = s.set.load(kernels.Light(), "light_read")
	s.ok(err)
	for _, groups := range []int{132 * 4, 132 * 8, 132 * 32} {
		d = median(5, func() {
			s.ok(s.dev.Do(func(q *compute.Queue) error {
				return q.Launch(k, compute.Dim{X: groups}, compute.Dim{X: 256}, compute.Mem(a), compute.Long(n/16), compute.Mem(b))
			}))
		})
		fmt.Printf("read by a kernel, %4d groups %8.0f GB/s\n", groups, gbs(n, d))
	}
	h, err := s.dev.Host(256 << 20)
	s.ok(err)
	defer h.Free()
	d = median(5, func() {
		s.ok(s.dev.Do(func(q *compute.Queue) error { return q.WriteHost(a, 0, h, 0, 256<<20) }))
	})
	fmt.Printf("pinned to device              %8.1f GB/s\n", gbs(256<<20, d))
	d = median(5, func() {
		s.ok(s.dev.Do(func(q *compute.Queue) error { return q.ReadHost(h, 0, a, 0, 256<<20) }))
	})
	fmt.Printf("device to pinned              %8.1f GB/s\n", gbs(256<<20, d))
	mem := make([]byte, 256<<20)
	d = median(3, func() { s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Write(a, 0, mem) })) })
	fmt.Printf("ordinary memory to device     %8.1f GB/s\n", gbs(256<<20, d))
}

func (s *speed) launch() {
	k, err := s.set.load(kernels.Light(), "light_touch")
	s.ok(err)
	b := s.buf(4096)
	defer b.Free()
	many := func(q *compute.Queue) error {
		for range 1000 {
			if err := q.Launch(k, compute.Dim{X: 4}, compute.Dim{X: 256}, compute.Mem(b), compute.Int(1)); err != nil {
				return err
			}
		}
		return nil
	}
	d := median(9, func() { s.ok(s.dev.Do(many)) })
	fmt.Printf("launch                        %8.2f us\n", d.Seconds()*1e3)
	d = s.graph(9, many)
	fmt.Printf("launch in a sequence          %8.2f us\n", d.Seconds()*1e3)
	h, err := s.dev.Host(4096)
	s.ok(err)
	d = median(99, func() {
		s.ok(s.dev.Do(func(q *compute.Queue) error {
			if err := q.Launch(k, compute.Dim{X: 4}, compute.Dim{X: 256}, compute.Mem(b), compute.Int(1)); err != nil {
				return err
			}
			return q.ReadHost(h, 0, b, 0, 256)
		}))
	})
	fmt.Printf("launch, read 256 bytes, wait  %8.2f us\n", d.Seconds()*1e6)
	d = median(99, func() { s.ok(s.dev.Do(func(q *compute.Queue) error { return nil })) })
	fmt.Printf("empty Do                      %8.2f us\n", d.Seconds()*1e6)
}

// many makes n matrices with contents that look random, so that one after the
// other does not come from the cache.
func (s *speed) many(typ uint32, rows, cols, n int) ([]*Weight, func()) {
	size, err := WeightSize(typ, rows, cols)
	s.ok(err)
	per := int(min(int64(n), s.dev.MaxBuffer()/size))
	var list []*Weight
	var bufs []*compute.Buffer
	for len(list) < n {
		b := s.buf(size * int64(per))
		s.random(b)
		bufs = append(bufs, b)
		for i := 0; i < per && len(list) < n; i++ {
			v, err := b.Slice(int64(i)*size, size)
			s.ok(err)
			w, err := NewWeight(typ, rows, cols, 1, v)
			s.ok(err)
			list = append(list, w)
		}
	}
	return list, func() {
		for _, b := range bufs {
			b.Free()
		}
	}
}

func (s *speed) acts(rows, cols int) (*Acts, func()) {
	a := s.dev.Arena(64 << 20)
	x, err := NewActs(a, rows, cols, true, true)
	s.ok(err)
	s.random(x.Q)
	s.random(x.X)
	return x, a.Free
}

func (s *speed) vecTime(typ uint32, rows, cols, columns, nr int) (float64, time.Duration) {
	size, err := WeightSize(typ, rows, cols)
	s.ok(err)
	n := int(min(64, (1<<30)/size+1))
	ws, free := s.many(typ, rows, cols, n)
	defer free()
	a, freeA := s.acts(columns, cols)
	defer freeA()
	y := s.buf(int64(4 * rows * columns))
	defer y.Free()
	var muls []*Mul
	for _, w := range ws {
		if nr > 0 {
			w.layout.Rows = nr
		}
		m, err := s.set.Mul(w, columns)
		s.ok(err)
		muls = append(muls, m)
	}
	d := s.graph(7, func(q *compute.Queue) error {
		for _, m := range muls {
			if err := m.Run(q, a, columns, Out{Y: y, Ld: rows}); err != nil {
				return err
			}
		}
		return nil
	})
	return gbs(size*int64(n), d), d / time.Duration(n)
}

func (s *speed) vec() {
	fmt.Printf("one column            14336 x 4096          4096 x 14336\n")
	for _, list := range [][]kernels.Layout{kernels.Floats(), kernels.Layouts()} {
		for _, l := range list {
			a, ad := s.vecTime(l.Type, 14336, 4096, 1, 0)
			b, bd := s.vecTime(l.Type, 4096, 14336, 1, 0)
			fmt.Printf("  %-8s %6.0f GB/s %8.2f us   %6.0f GB/s %8.2f us\n", l.Name, a, us(ad), b, us(bd))
		}
	}
}

func us(d time.Duration) float64 { return d.Seconds() * 1e6 }

func (s *speed) rowsSweep() {
	for _, nr := range []int{1, 2, 4} {
		for _, defines := range [][]string{nil, {"UNROLL=2"}, {"STREAM=1"}} {
			s.set.extra = defines
			for _, t := range []uint32{12, 14, 8, 16, 1} {
				if t == 1 && nr == 4 {
					continue
				}
				l, _ := kernels.LayoutOf(t)
				a, ad := s.vecTime(t, 14336, 4096, 1, nr)
				b, bd := s.vecTime(t, 4096, 14336, 1, nr)
				c, cd := s.vecTime(t, 4096, 4096, 1, nr)
				fmt.Printf("  %d rows a wave %-18v %-8s %6.0f GB/s %7.2f us  %6.0f GB/s %7.2f us  4096x4096 %6.0f GB/s %7.2f us\n", nr, defines, l.Name, a, us(ad), b, us(bd), c, us(cd))
			}
		}
	}
	s.set.extra = nil
}

func (s *speed) columns() {
	for _, t := range []uint32{12, 8, 14} {
		l, _ := kernels.LayoutOf(t)
		for _, c := range []int{1, 2, 4, 8} {
			g, d := s.vecTime(t, 14336, 4096, c, 0)
			fmt.Printf("%d columns, %-6s 14336 x 4096 %6.0f GB/s %8.2f us\n", c, l.Name, g, us(d))
		}
	}
}

func (s *speed) glu() {
	const ff, dim = 14336, 4096
	for _, t := range []uint32{12, 8} {
		l, _ := kernels.LayoutOf(t)
		ws, free := s.many(t, 2*ff, dim, 16)
		a, freeA := s.acts(1, dim)
		to, freeTo := s.acts(1, ff)
		var muls []*Mul
		for _, w := range ws {
			m, err := s.set.Mul(w, 1)
			s.ok(err)
			muls = append(muls, m)
		}
		d := s.graph(7, func(q *compute.Queue) error {
			for _, m := range muls {
				if err := m.RunGLU(q, a, 1, GLU{To: &Acts{Cols: ff, Rows: 1, Q: to.Q, M: to.M}}); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Printf("gate and up %-6s 2 x %d x %d %6.0f GB/s %8.2f us\n", l.Name, ff, dim, gbs(16*ws[0].Stride, d), us(d/16))
		free()
		freeA()
		freeTo()
	}
}

// experts: one token of a 30B-A3B like model, 8 of 128 experts of 768.
func (s *speed) experts() {
	const count, used, ff, dim, n = 128, 8, 768, 2048, 8
	for _, t := range []uint32{12, 14} {
		l, _ := kernels.LayoutOf(t)
		if l.Block > 256 {
			continue
		}
		var ups, downs []*Mul
		var bufs []*compute.Buffer
		bank := func(rows, cols int) *Mul {
			size, err := WeightSize(t, rows, cols)
			s.ok(err)
			b := s.buf(size * count)
			s.random(b)
			bufs = append(bufs, b)
			w, err := NewWeight(t, rows, cols, count, b)
			s.ok(err)
			m, err := s.set.Mul(w, 1)
			s.ok(err)
			return m
		}
		for range n {
			ups, downs = append(ups, bank(2*ff, dim)), append(downs, bank(dim, ff))
		}
		a, freeA := s.acts(1, dim)
		to, freeTo := s.acts(used, ff)
		to = &Acts{Cols: ff, Rows: used, Q: to.Q, M: to.M}
		ids := s.buf(4 * used * n)
		raw := make([]byte, 4*used*n)
		for i := range used * n {
			raw[4*i] = byte(i * 37 % count)
		}
		s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Write(ids, 0, raw) }))
		weight := s.buf(4 * used)
		y := s.buf(4 * dim)
		first := s.graph(7, func(q *compute.Queue) error {
			for _, m := range ups {
				if err := m.RunExperts(q, a, 1, used, ids, GLU{To: to}); err != nil {
					return err
				}
			}
			return nil
		})
		second := s.graph(7, func(q *compute.Queue) error {
			for _, m := range downs {
				if err := m.RunDown(q, to, 1, used, ids, weight, Out{Y: y, Ld: dim}); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Printf("8 of 128 experts %-6s gate and up %6.0f GB/s %8.2f us   down %6.0f GB/s %8.2f us\n", l.Name,
			gbs(n*used*ups[0].w.Stride, first), us(first/n), gbs(n*used*downs[0].w.Stride, second), us(second/n))
		freeA()
		freeTo()
		for _, b := range append(bufs, ids, weight, y) {
			b.Free()
		}
	}
}

func (s *speed) attention(h Heads, ctx, tokens int) (*Attention, *Step, *Rows, *Acts, func()) {
	att, err := s.set.Attention(h)
	s.ok(err)
	rows, err := s.set.Rows()
	s.ok(err)
	a := s.dev.Arena(256 << 20)
	get := func(n int64) *compute.Buffer {
		b, err := a.Alloc(n)
		s.ok(err)
		s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Fill(b, 0, n, 0) }))
		return b
	}
	k, v := CacheBytes(h.KV, h.Key, h.Value, ctx+tokens, h.Q8)
	st := &Step{Tokens: tokens, LdQ: h.Query * h.Key, LdK: h.KV * h.Key, LdV: h.KV * h.Value, Splits: att.Splits(ctx, tokens),
		Cache: &Cache{Heads: h.KV, Key: h.Key, Value: h.Value, Context: ctx + tokens, Q8: h.Q8, K: get(k), V: get(v)}}
	st.Q, st.K, st.V = get(int64(4*tokens*st.LdQ)), get(int64(4*tokens*st.LdK)), get(int64(4*tokens*st.LdV))
	st.CS, st.State, st.Parts = get(int64(4*tokens*h.Rot)), get(8), get(att.PartsBytes(tokens, st.Splits))
	s.ok(s.dev.Do(func(q *compute.Queue) error {
		return q.Write(st.State, 0, []byte{byte(ctx), byte(ctx >> 8), byte(ctx >> 16), 0})
	}))
	to, err := NewActs(a, tokens, h.Query*h.Value, false, true)
	s.ok(err)
	return att, st, rows, to, a.Free
}

func (s *speed) attend() {
	for _, h := range []Heads{
		{Query: 32, KV: 8, Key: 128, Value: 128, Rot: 128, Neox: true, Scale: 0.1},
		{Query: 32, KV: 4, Key: 128, Value: 128, Rot: 128, Neox: true, Scale: 0.1},
		{Query: 32, KV: 8, Key: 128, Value: 128, Rot: 128, Neox: true, Scale: 0.1, Q8: true},
		{Query: 16, KV: 2, Key: 256, Value: 256, Rot: 64, Neox: true, Scale: 0.1},
	} {
		for _, ctx := range []int{128, 1024, 4096, 32768} {
			att, st, rows, to, free := s.attention(h, ctx, 1)
			one := s.graph(7, func(q *compute.Queue) error {
				for range 16 {
					if err := att.Run(q, st); err != nil {
						return err
					}
				}
				return nil
			})
			both := s.graph(7, func(q *compute.Queue) error {
				for range 16 {
					if err := att.Run(q, st); err != nil {
						return err
					}
					if err := att.Join(q, rows, st, nil, to); err != nil {
						return err
					}
				}
				return nil
			})
			k, v := CacheBytes(h.KV, h.Key, h.Value, ctx, h.Q8)
			fmt.Printf("attention %2d/%d x %d q8=%-5v at %6d: %2d parts %7.2f us, with join %7.2f us (%.0f GB/s)\n", h.Query, h.KV, h.Key, h.Q8, ctx, st.Splits, us(one/16), us(both/16), gbs(k+v, both/16))
			free()
		}
	}
}

func (s *speed) small() {
	rows, err := s.set.Rows()
	s.ok(err)
	a, free := s.acts(1, 4096)
	defer free()
	x, w := s.buf(4*4096), s.buf(4*4096)
	defer x.Free()
	defer w.Free()
	d := s.graph(7, func(q *compute.Queue) error {
		for range 100 {
			if err := rows.Norm(q, 1, Norm{X: x, N: 4096, W: w, Eps: 1e-5, To: &Acts{Cols: 4096, Rows: 1, Q: a.Q, M: a.M}}); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Printf("norm of 4096                  %8.2f us\n", us(d/100))
	logits, ids, wt := s.buf(4*256), s.buf(4*16), s.buf(4*16)
	d = s.graph(7, func(q *compute.Queue) error {
		for range 100 {
			if err := rows.Route(q, logits, 128, 1, Route{Experts: 128, Used: 8, Kind: Softmax, Norm: true}, ids, wt); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Printf("8 of 128 experts chosen       %8.2f us\n", us(d/100))
	big := s.buf(4 * 152_000)
	tv, ti, v, p := s.buf(BestScratch(1, 152_000)), s.buf(BestScratch(1, 152_000)), s.buf(4), s.buf(4)
	d = s.graph(7, func(q *compute.Queue) error {
		for range 20 {
			if err := rows.Best(q, big, 1, 152_000, tv, ti, v, p); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Printf("best of 152000                %8.2f us\n", us(d/20))
	var scratch [4]*compute.Buffer
	for i := range scratch {
		scratch[i] = s.buf(TopScratch(152_000, 64))
	}
	d = s.graph(7, func(q *compute.Queue) error {
		for range 20 {
			if _, _, err := rows.Top(q, big, 152_000, 64, scratch); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Printf("64 best of 152000             %8.2f us\n", us(d/20))
	router, freeR := s.many(0, 128, 2048, 16)
	defer freeR()
	xa, freeX := s.acts(1, 2048)
	defer freeX()
	var routers []*Mul
	for _, w := range router {
		m, err := s.set.Mul(w, 1)
		s.ok(err)
		routers = append(routers, m)
	}
	d = s.graph(7, func(q *compute.Queue) error {
		for _, m := range routers {
			if err := m.Run(q, xa, 1, Out{Y: logits, Ld: 128}); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Printf("router 128 x 2048 F32         %8.2f us\n", us(d/16))

	sh := DeltaShape{Keys: 16, Values: 32, Dim: 128, Taps: 4, ByMod: true, Eps: 1e-6}
	op, err := s.set.Delta(sh)
	s.ok(err)
	for _, T := range []int{1, 4, 512} {
		ar := s.dev.Arena(64 << 20)
		get := func(n int) *compute.Buffer {
			b, err := ar.Alloc(int64(n) * 4)
			s.ok(err)
			s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Fill(b, 0, b.Len(), 0) }))
			return b
		}
		ch, inner := sh.Channels(), sh.Values*sh.Dim
		to, err := NewActs(ar, T, inner, false, true)
		s.ok(err)
		st := &DeltaStep{Tokens: T, U: get(T * ch), LdU: ch, Raw: get(T * 64), LdRaw: 64, Z: get(T * inner), LdZ: inner, Taps: get(4 * ch), A: get(32), DT: get(32),
			Norm: get(128), NormEps: 1e-6, State: DeltaState{S: get(32 * 128 * 128), Hist: get(3 * ch)}, Keep: true, Pos: get(2), Conv: get(T * ch), Attn: get(T * inner), To: to}
		d := s.graph(7, func(q *compute.Queue) error {
			for range 10 {
				if err := op.Run(q, st); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Printf("delta net 16/32 x 128, %3d tokens (3 launches) %8.2f us\n", T, us(d/10))
		ar.Free()
	}
}

func (s *speed) mat() {
	const rows, cols = 4096, 4096
	for _, units := range []bool{true, false} {
		if !s.set.matrixUnits && units {
			continue
		}
		keep := s.set.matrixUnits
		s.set.matrixUnits = units
		for _, t := range []uint32{12, 14, 8, 2, 11, 23, 16} {
			l, _ := kernels.LayoutOf(t)
			ws, free := s.many(t, rows, cols, 4)
			var muls []*MatMul
			for _, w := range ws {
				m, err := s.set.MatMul(w)
				s.ok(err)
				muls = append(muls, m)
			}
			for _, n := range []int{16, 64, 512, 2048} {
				if !units && n != 512 {
					continue
				}
				a, freeA := s.acts(n, cols)
				y := s.buf(int64(4 * rows * n))
				d := s.graph(5, func(q *compute.Queue) error {
					for _, m := range muls {
						if err := m.Run(q, a, n, nil, Out{Y: y, Ld: rows}); err != nil {
							return err
						}
					}
					return nil
				})
				fmt.Printf("matrix units %-5v %-8s 4096 x 4096 x %4d %8.2f us %7.1f TOPS\n", units, l.Name, n, us(d/4), 2*rows*cols*float64(n)*4/d.Seconds()/1e12)
				freeA()
				y.Free()
			}
			free()
		}
		s.set.matrixUnits = keep
	}
	// experts: 512 tokens, 8 of 128
	const count, used, ff, dim, tokens = 128, 8, 768, 2048, 512
	size, err := WeightSize(12, 2*ff, dim)
	s.ok(err)
	b := s.buf(size * count)
	s.random(b)
	w, err := NewWeight(12, 2*ff, dim, count, b)
	s.ok(err)
	m, err := s.set.MatMul(w)
	s.ok(err)
	r, err := s.set.Rows()
	s.ok(err)
	a, free := s.acts(tokens, dim)
	raw := make([]byte, 4*tokens*used)
	for i := range tokens * used {
		raw[4*i] = byte(i * 37 % count)
	}
	ids, start, order, y := s.buf(int64(len(raw))), s.buf(4*(count+1)), s.buf(int64(len(raw))), s.buf(4*tokens*used*2*ff)
	s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Write(ids, 0, raw) }))
	d := s.graph(5, func(q *compute.Queue) error { return r.Sort(q, ids, tokens*used, count, start, order) })
	fmt.Printf("sort 4096 slots               %8.2f us\n", us(d))
	d = s.graph(5, func(q *compute.Queue) error {
		return m.Run(q, a, tokens, &Slots{Experts: count, Order: order, Start: start, Div: used, Most: tokens}, Out{Y: y, Ld: 2 * ff})
	})
	fmt.Printf("experts Q4_K 8 of 128, 512 tokens, gate and up %8.2f us %7.1f TOPS\n", us(d), 2*2*ff*dim*tokens*used/d.Seconds()/1e12)
	free()
	for _, b := range []*compute.Buffer{b, ids, start, order, y} {
		b.Free()
	}
}

func (s *speed) flashes() {
	for _, units := range []bool{true, false} {
		if !s.set.matrixUnits && units {
			continue
		}
		keep := s.set.matrixUnits
		s.set.matrixUnits = units
		for _, ctx := range []int{0, 1536, 8192} {
			att, st, rows, to, free := s.attention(Heads{Query: 32, KV: 8, Key: 128, Value: 128, Rot: 128, Neox: true, Scale: 0.1}, ctx, 512)
			d := s.graph(5, func(q *compute.Queue) error {
				if err := att.Run(q, st); err != nil {
					return err
				}
				return att.Join(q, rows, st, nil, to)
			})
			flops := 4.0 * 32 * 128 * 512 * (float64(ctx) + 256)
			fmt.Printf("attention of 512 tokens at %5d, matrix units %-5v %9.2f us %6.1f TFLOPS\n", ctx, units, us(d), flops/d.Seconds()/1e12)
			free()
		}
		s.set.matrixUnits = keep
	}
}
