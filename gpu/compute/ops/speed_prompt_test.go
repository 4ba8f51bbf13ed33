//go:build slow

package ops

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

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
					if err := att.Run(q, rows, st); err != nil {
						return err
					}
				}
				return nil
			})
			st.To = to
			both := s.graph(7, func(q *compute.Queue) error {
				for range 16 {
					if err := att.Run(q, rows, st); err != nil {
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

	s.deltas()
}

// deltas is the delta net of qwen3-next's shape, token by token and in chunks.
func (s *speed) deltas() {
	sh := DeltaShape{Keys: 16, Values: 32, Dim: 128, Taps: 4, ByMod: true, Eps: 1e-6}
	op, err := s.set.Delta(sh)
	s.ok(err)
	for _, c := range []struct {
		T      int
		chunks bool
	}{{1, false}, {4, false}, {512, false}, {64, true}, {512, true}, {2048, true}} {
		T := c.T
		ar := s.dev.Arena(256 << 20)
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
		if c.chunks {
			st.Scratch = get(int(op.ScratchBytes(T) / 4))
		}
		d := s.graph(7, func(q *compute.Queue) error {
			for range 10 {
				if err := op.Run(q, st); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Printf("delta net 16/32 x 128, %4d tokens, chunks %-5v %8.2f us\n", T, c.chunks, us(d/10))
		ar.Free()
	}
}

// routers multiplies the floats of a router, in small work-groups and in others.
func (s *speed) routers() {
	for _, n := range []int{512, 2048} {
		ws, free := s.many(0, 128, 2048, 4)
		a, freeA := s.promptActs(n, 2048)
		y := s.buf(int64(4 * 128 * n))
		for _, few := range []bool{true, false} {
			var muls []*MatMul
			for _, w := range ws {
				m, err := s.set.MatMul(w)
				s.ok(err)
				if !few {
					m.few = nil
				}
				muls = append(muls, m)
			}
			d := s.graph(5, func(q *compute.Queue) error {
				for _, m := range muls {
					if err := m.Run(q, a, n, nil, Out{Y: y, Ld: 128}); err != nil {
						return err
					}
				}
				return nil
			})
			fmt.Printf("router 128 x 2048 x %4d, small work-groups %-5v %8.2f us\n", n, few, us(d/4))
		}
		y.Free()
		freeA()
		free()
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
	for _, units := range []bool{true} {
		keep := s.set.flashUnits
		s.set.flashUnits = units
		for _, c := range []struct{ ctx, tokens, kv, size int }{{0, 512, 8, 128}, {1536, 512, 8, 128}, {0, 2048, 8, 128}, {8192, 512, 4, 128}, {1536, 512, 2, 256}} {
			ctx, T, query := c.ctx/shrink(), c.tokens/shrink(), 32*128/c.size
			att, st, rows, to, free := s.attention(Heads{Query: query, KV: c.kv, Key: c.size, Value: c.size, Rot: 64, Neox: true, Scale: 0.1}, ctx, T)
			alone := s.graph(5, func(q *compute.Queue) error { return att.Run(q, rows, st) })
			st.To = to
			d := s.graph(5, func(q *compute.Queue) error { return att.Run(q, rows, st) })
			flops := 4.0 * 32 * 128 * float64(T) * (float64(ctx) + float64(T)/2)
			fmt.Printf("attention of %d tokens at %5d, %d/%d x %d, matrix units %-5v %9.2f us %6.1f TFLOPS, without join %.2f us\n", T, ctx, query, c.kv, c.size, units, us(d), flops/d.Seconds()/1e12, us(alone))
			free()
		}
		s.set.flashUnits = keep
	}
}

// shrink divides sizes where the program itself is tried on a processor.
func shrink() int {
	if os.Getenv("OUTCROP_GPU_CPU") != "" {
		return 16
	}
	return 1
}

// tileSweep multiplies with one tile after the other.
func (s *speed) tileSweep() {
	all := map[string]kernels.TileHalf{
		"A": {Name: "tile", WM: 2, WN: 2, MT: 4, NT: 8, Stages: 3},
		"B": {Name: "tile", WM: 2, WN: 2, MT: 4, NT: 8, Stages: 3, Ahead: 2},
		"E": {Name: "tile", WM: 2, WN: 2, MT: 4, NT: 4, Stages: 3},
		"F": {Name: "tile", WM: 2, WN: 2, MT: 4, NT: 4, Stages: 3, Ahead: 2},
		"H": {Name: "tile", WM: 2, WN: 2, MT: 4, NT: 4, Stages: 3, Ahead: 4},
		"I": {Name: "tile", WM: 2, WN: 2, MT: 4, NT: 4, Stages: 4, Ahead: 4},
		"G": {Name: "tile", WM: 4, WN: 1, MT: 2, NT: 4, Stages: 3},
		"J": {Name: "tile", WM: 4, WN: 1, MT: 2, NT: 4, Stages: 3, Ahead: 4},
		"S": {Name: "tile", WM: 4, WN: 1, MT: 2, NT: 6, Stages: 3, Ahead: 4},
		"V": {Name: "tile", WM: 2, WN: 1, MT: 4, NT: 4, Stages: 3, Ahead: 4},
		"W": {Name: "tile", WM: 4, WN: 1, MT: 4, NT: 4, Stages: 3, Ahead: 2},
		"Y": {Name: "tile", WM: 2, WN: 1, MT: 4, NT: 6, Stages: 3, Ahead: 2},
	}
	s.set.matrixUnits, s.set.byteUnits = true, false
	for _, c := range []struct {
		typ   uint32
		tiles string
	}{{12, "ABEFHIGJSVWY"}, {14, "AE"}, {8, "A"}, {1, "A"}} {
		for _, letter := range c.tiles {
			if only := os.Getenv("OUTCROP_TILES"); only != "" && !strings.Contains(only, fmt.Sprint(c.typ, string(letter))) {
				continue
			}
			tile := all[string(letter)]
			s.set.halfTiles, s.set.programs = []kernels.TileHalf{tile}, map[string]*compute.Program{}
			l, _ := kernels.LayoutOf(c.typ)
			fmt.Printf("tile %c %-5s %3dx%3d", letter, l.Name, tile.Rows(), tile.Cols())
			began := time.Now()
			for _, shape := range [][2]int{{4096, 4096}, {14336, 4096}} {
				s.tileTime(c.typ, shape[0]/shrink(), shape[1]/shrink(), 512/shrink(), 2048/shrink())
			}
			if c.typ == 12 {
				s.expertTime(c.typ, 768, max(256, 2048/shrink()), 512/shrink(), 8)
				s.expertTime(c.typ, 768, max(256, 2048/shrink()), 2048/shrink(), 8)
				s.expertTime(c.typ, max(128, 2048/shrink()), 768, 512/shrink(), 8)
			}
			fmt.Printf("  (%.1f s)\n", time.Since(began).Seconds())
		}
	}
	s.set.halfTiles = kernels.HalfTiles
}

func (s *speed) tileTime(typ uint32, rows, cols int, columns ...int) {
	ws, free := s.many(typ, rows, cols, 2)
	defer free()
	var muls []*MatMul
	for _, w := range ws {
		m, err := s.set.MatMul(w)
		s.ok(err)
		muls = append(muls, m)
	}
	for _, n := range columns {
		a, freeA := s.promptActs(n, cols)
		y := s.buf(int64(4 * rows * n))
		d := s.graph(5, func(q *compute.Queue) error {
			for _, m := range muls {
				if err := m.Run(q, a, n, nil, Out{Y: y, Ld: rows}); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Printf("  %dx%dx%d %.1f us %.0f T", rows, cols, n, us(d/2), 2*float64(rows)*float64(cols)*float64(n)*2/d.Seconds()/1e12)
		freeA()
		y.Free()
	}
}

// promptActs are rows of ordinary numbers with room for halves: what is easy to
// multiply lets the card clock higher.
func (s *speed) promptActs(rows, cols int) (*Acts, func()) {
	arena := s.dev.Arena(64 << 20)
	a, err := NewActs(arena, rows, cols, true, true)
	s.ok(err)
	if a.H == nil {
		s.ok(a.AddHalves(arena))
	}
	raw := make([]byte, 4*rows*cols)
	seed := uint32(1)
	for i := 0; i < len(raw); i += 4 {
		seed = seed*1664525 + 1013904223
		binary.LittleEndian.PutUint32(raw[i:], math.Float32bits(float32(int32(seed))/(1<<30)))
	}
	k, err := s.set.Quantize()
	s.ok(err)
	s.ok(s.dev.Do(func(q *compute.Queue) error {
		if err := q.Write(a.X, 0, raw); err != nil {
			return err
		}
		return k.Run(q, a, a.X, rows, cols)
	}))
	return a, arena.Free
}

// expertTime is for tokens columns of `used` of 128 experts.
func (s *speed) expertTime(typ uint32, ff, dim, tokens, used int) {
	const count = 128
	size, err := WeightSize(typ, ff, dim)
	s.ok(err)
	b := s.buf(size * count)
	s.random(b)
	w, err := NewWeight(typ, ff, dim, count, b)
	s.ok(err)
	m, err := s.set.MatMul(w)
	s.ok(err)
	r, err := s.set.Rows()
	s.ok(err)
	a, free := s.promptActs(tokens, dim)
	raw := make([]byte, 4*tokens*used)
	seed := uint32(1)
	for i := range tokens * used {
		seed = seed*1664525 + 1013904223
		raw[4*i] = byte(seed >> 25)
	}
	ids, start, order, y := s.buf(int64(len(raw))), s.buf(4*(count+1)), s.buf(int64(len(raw))), s.buf(int64(4*tokens*used*ff))
	s.ok(s.dev.Do(func(q *compute.Queue) error { return q.Write(ids, 0, raw) }))
	sorted := s.graph(3, func(q *compute.Queue) error { return r.Sort(q, ids, tokens*used, count, start, order) })
	d := s.graph(5, func(q *compute.Queue) error {
		return m.Run(q, a, tokens, &Slots{Experts: count, Order: order, Start: start, Div: used, Most: tokens}, Out{Y: y, Ld: ff})
	})
	fmt.Printf("  experts %dx%d %d: sort %.1f, %.1f us %.0f T", ff, dim, tokens, us(sorted), us(d), 2*float64(ff*dim)*float64(tokens*used)/d.Seconds()/1e12)
	free()
	for _, b := range []*compute.Buffer{b, ids, start, order, y} {
		b.Free()
	}
}
