//go:build slow

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
			d, err := compute.Open(drv, i, compute.Options{Overlap: os.Getenv("OUTCROP_TEST_OVERLAP") != "", Cache: os.Getenv("OUTCROP_TEST_CACHE")})
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
			}{{"link", s.link}, {"launch", s.launch}, {"vec", s.vec}, {"columns", s.columns}, {"glu", s.glu}, {"experts", s.experts}, {"attend", s.attend}, {"small", s.small}, {"mat", s.mat}, {"tiles", s.tileSweep}, {"flash", s.flashes}, {"delta", s.deltas}, {"router", s.routers}} {
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
	const times = 5 // in one Do, whose own time is 25 us
	run := func() {
		s.ok(s.dev.Do(func(q *compute.Queue) error {
			for range times {
				if err := q.Replay(seq); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for t := time.Now(); time.Since(t) < 60*time.Millisecond; {
		run() // an idle card clocks down
	}
	return median(n, run) / times
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

func (s *speed) vecTime(typ uint32, rows, cols, columns int) (float64, time.Duration) {
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
			a, ad := s.vecTime(l.Type, 14336, 4096, 1)
			b, bd := s.vecTime(l.Type, 4096, 14336, 1)
			fmt.Printf("  %-8s %6.0f GB/s %8.2f us   %6.0f GB/s %8.2f us\n", l.Name, a, us(ad), b, us(bd))
		}
	}
}

func us(d time.Duration) float64 { return d.Seconds() * 1e6 }

func (s *speed) columns() {
	for _, t := range []uint32{12, 8, 14} {
		l, _ := kernels.LayoutOf(t)
		for _, c := range []int{1, 2, 4, 8} {
			g, d := s.vecTime(t, 14336, 4096, c)
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
