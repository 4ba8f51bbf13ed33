package quant

import "unsafe"

// Products with many activation rows. Rows of weights are brought to bytes once
// and laid side by side, as many to a slab as a register has lanes of 32 bits;
// then each part of a slab is multiplied with four or eight activation rows at a
// time, every row in a lane of its own, so that nothing has to be added across
// lanes. The results have the same bits
// as those of the rows kernels (product.go).
//
// A slab holds chain after chain, and in a chain the parts of all groups of 256
// values, so that a chain stays in registers from its first part to its last. A
// part is, for 32 (or 16) weights of each row:
//
//	8 (or 4) times 4 bytes of each row: the weights, as an unpack leaves them
//	the scale of each row
//	minus the offset of each row, for formats that have offsets

const (
	slabRows  = 16        // the most rows of a slab
	manyFrom  = 6         // activation rows from which slabs pay: BENCH.md
	slabBytes = 384 << 10 // slabs that are multiplied with the same activation rows in turn: they share the second cache
)

// plainRow is 256 weights of one row as bytes: too large by a constant of the
// level and the format, or with sign. Scales are in the order of a record.
type plainRow struct {
	q     [256]byte
	scale [16]float32
	minus [16]float32 // minus the offset; those of 32 weights in the upper half of scale with AVX-512
}

// unpack is the argument of an unpack kernel: 256 values of each of rows rows,
// which lie size bytes apart, go to dst. It is read by assembly, as the next
// two.
type unpack struct {
	w    unsafe.Pointer
	size uintptr
	rows int
	dst  *plainRow
}

// weave is the argument of the kernel that lays plain rows into a slab: to the
// parts that begin at slab and are chain bytes apart.
type weave struct {
	rows    *plainRow
	slab    unsafe.Pointer
	chain   uintptr
	offsets int      // 1 for formats with offsets
	flip    [32]byte // exclusive or of the weights
}

// slab is the argument of the product of one slab with up to eight activation
// rows: the rows in mask and the first t activation rows go to dst[row +
// j*ldd/4].
type slab struct {
	parts  unsafe.Pointer
	groups int
	x      [8]unsafe.Pointer // records; those past t repeat others
	t      int
	dst    unsafe.Pointer
	ldd    uintptr
	mask   uint64
	lanes  [8]int32          // the same as -1 and 0
	shift  uint64            // 128>>shift is what weights are too large
	levels [5][8][16]float32 // sums of chains: see CHAINS in slab_*.s

	// Of kernels for 16 activation rows: from one to the next, whose first is
	// x[0]; sums of parts; sums of chains.
	gap  uintptr
	sums [4][16][16]int32
	wide [5][16][16]float32
}

// slabKernels are what a level has for one format.
type slabKernels struct {
	unpack   func(*unpack)
	weave    func(*weave)
	by4, by8 func(*slab) // with four and with up to eight activation rows; by8 may be nil
	late     bool        // rows kernels are faster for a few more activation rows
	by16     func(*slab) // with 16, all kept; nil: not there. It takes the place of the others
	rows     int         // of a slab
	shift    uint64
	flip     byte
}

// pays tells whether slabs are faster than rows for count activation rows of so many
// groups of 256 values. Rows kernels that are late read all activations for every
// row, which is fast as long as they stay in the first cache.
func (s *slabKernels) pays(count, groups int) bool {
	if s.unpack == nil || count < manyFrom {
		return false
	}
	return !s.late || count >= 8 && (count > 10 || count*groups > 96)
}

// slabSize is the number of chains and the bytes of a part.
func (f *Format) slabSize(rows int) (chains, part int) {
	chains = 8
	if parts16[f.Type] {
		chains = 16
	}
	part = rows * (256/chains + 4)
	if offsets[f.Type] {
		part += rows * 4
	}
	return chains, part
}

// places32 and places16 are for each chain where in a record its weights are,
// its scale (past d), and its sum over 16 values (past neg16).
var (
	places32 = func() (p [8][4]uintptr) {
		for c := range p {
			p[c] = [4]uintptr{uintptr(32 * c), uintptr(4 * order32(c)), 0}
		}
		return p
	}()
	places16 = func() (p [16][4]uintptr) {
		for c := range p {
			p[c] = [4]uintptr{uintptr(16 * c), uintptr(4 * order32(c/2)), uintptr(4 * order16(c))}
		}
		return p
	}()
)

// mulMany is Mul by slabs.
func mulMany(s *slabKernels, f *Format, dst []float32, ldd int, w []byte, rows int, a *Acts, idx []int32, count int) {
	g := getWork()
	defer putWork(g)
	chains, part := f.slabSize(s.rows)
	one := chains * a.groups * part // bytes of a slab
	most := max(1, min(len(g.at), slabBytes/one, (rows+s.rows-1)/s.rows))
	g.slabs = grow(g.slabs, (most*one+63)/64)
	g.unpack.dst, g.weave.rows = &g.plain[0], &g.plain[0]
	g.weave.chain = uintptr(a.groups * part)
	g.weave.offsets = 0
	if offsets[f.Type] {
		g.weave.offsets = 1
	}
	for i := range g.weave.flip {
		g.weave.flip[i] = s.flip
	}
	g.slab.groups, g.slab.ldd, g.slab.shift = a.groups, uintptr(ldd)*4, s.shift
	size := f.RowBytes(a.n)
	for r := 0; r < rows; {
		n := 0
		for ; n < most && r < rows; n++ {
			m := min(s.rows, rows-r)
			g.at[n].row, g.at[n].rows = r, m
			g.build(s, f, unsafe.Pointer(&g.slabs[n*one/64]), part, w[r*size:(r+m)*size], m, a)
			r += m
		}
		for j := 0; j < count; {
			by, step := s.by4, 4
			switch {
			case s.by16 != nil:
				by, step = s.by16, 16
			case count-j > 4 && s.by8 != nil:
				by, step = s.by8, 8
			}
			g.slab.t = min(step, count-j)
			if step == 16 {
				g.together(a, idx, j, g.slab.t)
			}
			for i := range step & 15 {
				t := j + min(i, g.slab.t-1)
				if idx != nil {
					t = int(idx[t])
				}
				g.slab.x[i] = unsafe.Pointer(&a.recs[t*a.groups])
			}
			for i := range n {
				g.slab.parts = unsafe.Pointer(&g.slabs[i*one/64])
				g.slab.dst = unsafe.Pointer(&dst[j*ldd+g.at[i].row])
				g.slab.mask = 1<<g.at[i].rows - 1
				for l := range g.slab.lanes {
					g.slab.lanes[l] = -int32(g.slab.mask >> l & 1)
				}
				by(&g.slab)
			}
			j += g.slab.t
		}
	}
	clear(g.slab.x[:])
	g.slab.dst, g.unpack.w = nil, nil
}

// together points x[0] at 16 activation rows that lie one after the other: those
// from j on, or copies where they lie apart or are fewer, whose last then fills
// up.
func (g *work) together(a *Acts, idx []int32, j, n int) {
	g.slab.gap = uintptr(a.groups) * unsafe.Sizeof(record{})
	if idx == nil && n == 16 {
		g.slab.x[0] = unsafe.Pointer(&a.recs[j*a.groups])
		return
	}
	g.recs = grow(g.recs, 16*a.groups)
	for i := range 16 {
		t := j + min(i, n-1)
		if idx != nil {
			t = int(idx[t])
		}
		copy(g.recs[i*a.groups:(i+1)*a.groups], a.recs[t*a.groups:(t+1)*a.groups])
	}
	g.slab.x[0] = unsafe.Pointer(&g.recs[0])
}

// build brings m rows of a.n values to a slab.
func (g *work) build(s *slabKernels, f *Format, slab unsafe.Pointer, part int, w []byte, m int, a *Acts) {
	size := f.RowBytes(a.n)
	group := 256 / f.Block * f.Bytes
	g.unpack.rows = m
	for i := range a.groups {
		g.unpack.w, g.unpack.size = unsafe.Pointer(&w[i*group]), uintptr(size)
		if (i+1)*256 > a.n { // the tail of each row, with zeros after it
			tail := size - i*group
			g.unpack.w, g.unpack.size = unsafe.Pointer(&g.tails[0]), uintptr(len(g.tails[0]))
			for r := range m {
				clear(g.tails[r][copy(g.tails[r][:], w[r*size+i*group:r*size+i*group+tail]):])
			}
		}
		s.unpack(&g.unpack)
		g.weave.slab = unsafe.Add(slab, i*part)
		s.weave(&g.weave)
	}
}
