//go:build slow

package ops

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// variant is one way to cut and build the products.
type variant struct {
	name  string
	shape func(s *kernels.Shape)
}

// way reads a variant of words. What a wave takes at once: R2 U1 D2 rows, units and
// depth of mulvec, r2 u1 d2 those of gates, x4 e2 rows and depth of the second half
// of experts. W8 and w4 are waves of a work-group of mulvec and of that half, I512
// the items of one of gates, G24 the waves that a compute unit is given, N72 the
// most registers of mulvec.
func way(text string) variant {
	v := variant{name: text}
	set := map[byte]int{}
	for _, w := range strings.Fields(text) {
		n, _ := strconv.Atoi(w[1:])
		set[w[0]] = n
	}
	v.shape = func(s *kernels.Shape) {
		if set['R'] > 0 {
			s.Registers = 0
		}
		for k, to := range map[byte][]*int{
			'R': {&s.Vec.Rows}, 'U': {&s.Vec.Units}, 'D': {&s.Vec.Depth}, 'W': {&s.Waves}, 'I': {&s.GLUItems}, 'N': {&s.Registers}, 'G': {&s.Given},
			'r': {&s.GLU.Rows, &s.Experts.Rows}, 'u': {&s.GLU.Units, &s.Experts.Units}, 'd': {&s.GLU.Depth, &s.Experts.Depth},
			'x': {&s.Down.Rows}, 'e': {&s.Down.Depth}, 'w': {&s.DownWaves},
		} {
			for _, at := range to {
				if n := set[k]; n > 0 {
					*at = n
				}
			}
		}
	}
	return v
}

// TestTune compares variants of the products on a card. OUTCROP_TUNE lists the
// parts (vec, glu, experts, columns, formats), OUTCROP_TUNE_SECONDS ends it;
// OUTCROP_TUNE_COMPILE=i/n compiles the i-th of n parts of the variants only.
// OUTCROP_TUNE_TYPES (numbers), _WAYS (apart by commas) and _SHAPES (14336x4096)
// narrow what is measured, OUTCROP_TUNE_OVERLAP=1 leaves out the one at a time.
func TestTune(t *testing.T) {
	want := os.Getenv("OUTCROP_TUNE")
	if want == "" {
		t.Skip("measures on a card: set OUTCROP_TUNE=1")
	}
	seconds, err := strconv.Atoi(os.Getenv("OUTCROP_TUNE_SECONDS"))
	if err != nil {
		seconds = 60
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	tu := &tuning{t: t, end: end, copied: 4037, sets: map[string]*Set{}}
	if c := os.Getenv("OUTCROP_TUNE_COMPILE"); c != "" {
		fmt.Sscanf(c, "%d/%d", &tu.part, &tu.parts)
	}
	only := os.Getenv("OUTCROP_TEST_GPU")
	for _, drv := range compute.Drivers() {
		infos, err := drv.Devices()
		if err != nil || only != "" && !strings.Contains(only, drv.Name()) {
			continue
		}
		for _, i := range infos {
			if i.CPU && os.Getenv("OUTCROP_GPU_CPU") == "" {
				continue
			}
			for _, overlap := range []bool{false, true} {
				d, err := compute.Open(drv, i, compute.Options{Overlap: overlap, Cache: os.Getenv("OUTCROP_TEST_CACHE"), Builders: b2i(tu.parts > 0)})
				if err != nil {
					t.Fatal(err)
				}
				s := &speed{t: t, dev: d}
				if s.set, err = New(d); err != nil {
					t.Fatal(err)
				}
				tu.s[b2i(overlap)] = s
			}
			fmt.Printf("== %s, %s, driver %s\n", i, i.API, i.Version)
			tu.small = i.CPU
			tu.run(want)
			if tu.parts > 0 {
				for _, set := range tu.sets {
					if err := set.Ready(t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
			}
			tu.s[0].dev.Close()
			tu.s[1].dev.Close()
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

type tuning struct {
	t           *testing.T
	s           [2]*speed // without and with overlap
	end         time.Time
	part, parts int // compile only
	count       int
	small       bool // a processor: tiny shapes, to see that it runs
	copied      float64
	sets        map[string]*Set
	frees       []func()
}

func (u *tuning) late() bool { return time.Now().After(u.end) }

// mine tells whether this process compiles the next variant.
func (u *tuning) mine() bool {
	u.count++
	return u.parts == 0 || u.count%u.parts == u.part
}

func (u *tuning) set(s *speed, v variant, columns int) *Set {
	key := fmt.Sprint(s == u.s[1], columns, v.name)
	if set := u.sets[key]; set != nil {
		return set
	}
	set, err := New(s.dev)
	s.ok(err)
	u.sets[key] = set
	set.tune.shape = func(s *kernels.Shape, n int) {
		if n == columns {
			v.shape(s)
		}
	}
	return set
}

// quick is the median of replays of a card that is busy anyway.
func (u *tuning) quick(s *speed, fn func(q *compute.Queue) error) time.Duration {
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
	for t := time.Now(); time.Since(t) < 8*time.Millisecond; {
		run()
	}
	var all []time.Duration
	for range 7 {
		t := time.Now()
		run()
		all = append(all, time.Since(t))
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all[3] / times
}

func (u *tuning) run(want string) {
	has := func(name string) bool { return want == "1" || slices.Contains(strings.Split(want, ","), name) }
	if u.parts == 0 && !u.small {
		u.s[0].link()
	}
	types := func(list ...uint32) []uint32 { return list }
	if has("vec") {
		u.vec(types(12, 14), []string{"", "R2 U1 D2", "R2 U1 D3", "R2 U2 D1", "R4 U1 D1", "R4 U1 D2", "R4 U2 D1", "R2 U1 D3 G48"},
			[][2]int{{14336, 4096}, {4096, 14336}, {4096, 4096}, {1536, 8960}}, true)
	}
	if has("glu") {
		u.glu(u.types(types(12, 14)), u.ways([]string{"", "r2 u1 d2", "r2 u1 d3", "r2 u2 d1", "r4 u1 d1", "r4 u2 d1", "r2 u1 d2 I512"}), [][2]int{{14336, 4096}, {8960, 1536}})
	}
	if has("experts") {
		u.experts(u.types(types(12, 14)), u.ways([]string{"", "r2 u1 d2", "r2 u1 d2 I512", "r2 u2 d1", "r4 u1 d1", "r4 u2 d1"}),
			u.ways([]string{"", "x2 w4 e2", "x4 w4 e2", "x4 w6 e1"}), u.ways([]string{"", "r2 u1 d2 I512 x4 w4 e2", "r2 u1 d2 x4 w4 e2"}))
	}
	if has("layer") {
		u.layer(u.ways([]string{"", "R2 U1 D2 r2 u1 d2", "R4 U1 D1 r4 u2 d1"}))
	}
	if has("formats") {
		var list []uint32
		for _, set := range [][]kernels.Layout{kernels.Floats(), kernels.Layouts()} {
			for _, l := range set {
				list = append(list, l.Type)
			}
		}
		u.vec(u.types(list), u.ways([]string{"", "R2 U1 D2", "R2 U1 D3", "R2 U2 D1", "R2 U2 D2", "R4 U1 D1", "R4 U1 D2", "R4 U2 D1", "R8 U1 D1"}), u.shapes([][2]int{{14336, 4096}}), false)
	}
	if has("columns") {
		for _, c := range []int{2, 4, 8} {
			u.columns(u.types(types(12, 14)), c, u.ways([]string{"", "R2 D1", "R2 D2", "R4 D1"}))
		}
	}
}

// types, ways and shapes are what the environment asks for instead of the given.
func (u *tuning) types(list []uint32) []uint32 {
	if t := os.Getenv("OUTCROP_TUNE_TYPES"); t != "" {
		list = nil
		for _, w := range strings.Split(t, ",") {
			n, err := strconv.Atoi(w)
			u.s[0].ok(err)
			list = append(list, uint32(n))
		}
	}
	return list
}

func (u *tuning) ways(list []string) []string {
	if t, ok := os.LookupEnv("OUTCROP_TUNE_WAYS"); ok {
		return strings.Split(t, ",")
	}
	return list
}

func (u *tuning) shapes(list [][2]int) [][2]int {
	if t := os.Getenv("OUTCROP_TUNE_SHAPES"); t != "" {
		list = nil
		for _, w := range strings.Split(t, ",") {
			var sh [2]int
			_, err := fmt.Sscanf(w, "%dx%d", &sh[0], &sh[1])
			u.s[0].ok(err)
			list = append(list, sh)
		}
	}
	return list
}

// vec times one column, back to back, and with a rounding of the activations
// before each product, which stands for the small kernels of a model.
func (u *tuning) vec(types []uint32, ways []string, shapes [][2]int, rounding bool) {
	for _, t := range types {
		l, _ := kernels.LayoutOf(t)
		for _, sh := range shapes {
			if u.parts > 0 && sh != shapes[0] {
				continue
			}
			for o, s := range u.s {
				if u.parts > 0 && o > 0 || u.late() || o == 0 && u.parts == 0 && os.Getenv("OUTCROP_TUNE_OVERLAP") == "1" {
					continue
				}
				u.vecShape(s, l, o, sh[0], sh[1], ways, rounding)
			}
		}
	}
}

func (u *tuning) vecShape(s *speed, l kernels.Layout, o, rows, cols int, ways []string, rounding bool) {
	if u.small {
		rows, cols = 96, 512
	}
	size, err := WeightSize(l.Type, rows, cols)
	s.ok(err)
	n := int(min(64, (1<<30)/size+1))
	if u.parts > 0 || u.small {
		n = 1
	}
	ws, free := s.many(l.Type, rows, cols, n)
	defer free()
	a, freeA := s.acts(1, cols)
	defer freeA()
	y := s.buf(int64(4 * rows))
	defer y.Free()
	for _, text := range ways {
		if !u.mine() || u.late() {
			continue
		}
		set := u.set(s, way(text), 1)
		var muls []*Mul
		for _, w := range ws {
			m, err := set.Mul(w, 1)
			s.ok(err)
			muls = append(muls, m)
		}
		if u.parts > 0 {
			continue
		}
		quant, err := set.Quantize()
		s.ok(err)
		d := u.quick(s, func(q *compute.Queue) error {
			for _, m := range muls {
				if err := m.Run(q, a, 1, Out{Y: y, Ld: rows}); err != nil {
					return err
				}
			}
			return nil
		})
		g := gbs(size*int64(n), d)
		fmt.Printf("vec %-7s %5dx%-5d overlap %d %-18s %5.0f GB/s %3.0f %% %6.2f us", l.Name, rows, cols, o, text, g, 100*g/u.copied, us(d)/float64(n))
		if !rounding {
			fmt.Println()
			continue
		}
		e := u.quick(s, func(q *compute.Queue) error {
			for _, m := range muls {
				if err := quant.Run(q, a, a.X, 1, cols); err != nil {
					return err
				}
				if err := m.Run(q, a, 1, Out{Y: y, Ld: rows}); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Printf("  with rounding %6.2f us\n", us(e)/float64(n))
	}
}

func (u *tuning) columns(types []uint32, c int, ways []string) {
	for _, t := range types {
		l, _ := kernels.LayoutOf(t)
		rows, cols := 14336, 4096
		if u.small {
			rows, cols = 96, 512
		}
		for o, s := range u.s {
			if u.parts > 0 && o > 0 || u.late() || o == 0 && u.parts == 0 && os.Getenv("OUTCROP_TUNE_OVERLAP") == "1" {
				continue
			}
			size, err := WeightSize(t, rows, cols)
			s.ok(err)
			n := int(min(32, (1<<30)/size+1))
			if u.parts > 0 || u.small {
				n = 1
			}
			ws, free := s.many(t, rows, cols, n)
			a, freeA := s.acts(c, cols)
			y := s.buf(int64(4 * rows * c))
			for _, text := range ways {
				if !u.mine() || u.late() {
					continue
				}
				set := u.set(s, way(text), c)
				var muls []*Mul
				for _, w := range ws {
					m, err := set.Mul(w, c)
					s.ok(err)
					muls = append(muls, m)
				}
				if u.parts > 0 {
					continue
				}
				d := u.quick(s, func(q *compute.Queue) error {
					for _, m := range muls {
						if err := m.Run(q, a, c, Out{Y: y, Ld: rows}); err != nil {
							return err
						}
					}
					return nil
				})
				g := gbs(size*int64(n), d)
				fmt.Printf("columns %d %-7s %5dx%-5d overlap %d %-18s %5.0f GB/s %3.0f %% %6.2f us\n", c, l.Name, rows, cols, o, text, g, 100*g/u.copied, us(d)/float64(n))
			}
			free()
			freeA()
			y.Free()
		}
	}
}

func (u *tuning) glu(types []uint32, ways []string, shapes [][2]int) {
	for _, t := range types {
		l, _ := kernels.LayoutOf(t)
		for _, sh := range shapes {
			for o, s := range u.s {
				if u.parts > 0 && (o > 0 || sh != shapes[0]) || u.late() {
					continue
				}
				ff, dim, n := sh[0], sh[1], 24
				if u.small {
					ff, dim, n = 256, 512, 1
				}
				if u.parts > 0 {
					n = 1
				}
				ws, free := s.many(t, 2*ff, dim, n)
				a, freeA := s.acts(1, dim)
				to, freeTo := s.acts(1, ff)
				to = &Acts{Cols: ff, Rows: 1, Q: to.Q, M: to.M}
				for _, text := range ways {
					if !u.mine() || u.late() {
						continue
					}
					set := u.set(s, way(text), 1)
					var muls []*Mul
					for _, w := range ws {
						m, err := set.Mul(w, 1)
						s.ok(err)
						muls = append(muls, m)
					}
					if u.parts > 0 {
						continue
					}
					quant, err := set.Quantize()
					s.ok(err)
					d := u.quick(s, func(q *compute.Queue) error {
						for _, m := range muls {
							if err := m.RunGLU(q, a, 1, GLU{To: to}); err != nil {
								return err
							}
						}
						return nil
					})
					e := u.quick(s, func(q *compute.Queue) error {
						for _, m := range muls {
							if err := quant.Run(q, a, a.X, 1, dim); err != nil {
								return err
							}
							if err := m.RunGLU(q, a, 1, GLU{To: to}); err != nil {
								return err
							}
						}
						return nil
					})
					g := gbs(ws[0].Stride*int64(n), d)
					fmt.Printf("glu %-7s 2x%5dx%-5d overlap %d %-18s %5.0f GB/s %3.0f %% %6.2f us  with rounding %6.2f us\n", l.Name, ff, dim, o, text, g, 100*g/u.copied, us(d)/float64(n), us(e)/float64(n))
				}
				free()
				freeA()
				freeTo()
			}
		}
	}
}
