package quant

import "unsafe"

// Products with many activation rows. Rows of weights are brought to bytes once
// and laid side by side, 16 to a slab; then each part of a slab is multiplied
// with four or eight activation rows at a time, every row in a lane of its own,
// so that nothing has to be added across lanes. The results have the same bits
// as those of the rows kernels (product.go).
//
// A slab holds chain after chain, and in a chain the parts of all groups of 256
// values, so that a chain stays in registers from its first part to its last. A
// part is, for 32 (or 16) weights of each row:
//
//	8 (or 4) times 16 rows of 4 bytes: the weights, as an unpack leaves them
//	16 floats: the scale of each row
//	16 floats: minus the offset of each row, for formats that have offsets

const (
	slabRows  = 16 // rows of a slab
	manyFrom  = 6  // activation rows from which slabs pay: BENCH.md
	slabBytes = 384 << 10
)

// plainRow is 256 weights of one row as bytes: 128 more than they are, or as
// they are for formats with offsets. Scales are in the order of a record.
type plainRow struct {
	q     [256]byte
	scale [16]float32
	minus [16]float32 // minus the offset
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

// weave is the argument of the kernel that lays 16 plain rows into a slab: to
// the parts that begin at slab and are chain bytes apart.
type weave struct {
	rows    *plainRow
	slab    unsafe.Pointer
	chain   uintptr
	offsets int // 1 for formats with offsets
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
	levels [5][8][16]float32 // sums of chains: see CHAINS in slab_avx512_amd64.s
}

// slabKernels are the products of a kind of format.
type slabKernels struct {
	weave  func(*weave)
	by     [2]func(*slab) // with four and with eight activation rows
	chains int
	part   int // bytes
}

// kind says which slabKernels a format has: 0 with scales for 32 values, 1 with
// offsets too; 2 and 3 the same for 16 values.
func (f *Format) kind() int {
	k := 0
	if parts16[f.Type] {
		k = 2
	}
	if offsets[f.Type] {
		k++
	}
	return k
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
func mulMany(k *kernels, f *Format, dst []float32, ldd int, w []byte, rows int, a *Acts, idx []int32, count int) {
	g := getWork()
	defer putWork(g)
	s := &k.slabs[f.kind()]
	one := s.chains * a.groups * s.part // bytes of a slab
	most := max(1, min(4, slabBytes/one, (rows+slabRows-1)/slabRows))
	g.slabs = grow(g.slabs, (most*one+63)/64)
	size := f.RowBytes(a.n)
	for r := 0; r < rows; {
		var at [4]struct{ row, rows int }
		n := 0
		for ; n < most && r < rows; n++ {
			m := min(slabRows, rows-r)
			at[n] = struct{ row, rows int }{r, m}
			g.build(k, s, f, unsafe.Pointer(&g.slabs[n*one/64]), w[r*size:(r+m)*size], m, a)
			r += m
		}
		g.slab.groups, g.slab.ldd = a.groups, uintptr(ldd)*4
		for j := 0; j < count; {
			by, step := s.by[1], 8
			if count-j <= 4 {
				by, step = s.by[0], 4
			}
			g.slab.t = min(step, count-j)
			for i := range step {
				t := j + min(i, g.slab.t-1)
				if idx != nil {
					t = int(idx[t])
				}
				g.slab.x[i] = unsafe.Pointer(&a.recs[t*a.groups])
			}
			for i := range n {
				g.slab.parts = unsafe.Pointer(&g.slabs[i*one/64])
				g.slab.dst = unsafe.Pointer(&dst[j*ldd+at[i].row])
				g.slab.mask = 1<<at[i].rows - 1
				by(&g.slab)
			}
			j += g.slab.t
		}
	}
	clear(g.slab.x[:])
	g.slab.dst, g.unpack.w = nil, nil
}

// build brings m rows of a.n values to a slab.
func (g *work) build(k *kernels, s *slabKernels, f *Format, slab unsafe.Pointer, w []byte, m int, a *Acts) {
	size := f.RowBytes(a.n)
	group := 256 / f.Block * f.Bytes
	g.unpack.dst, g.unpack.rows = &g.plain[0], m
	g.weave.rows, g.weave.chain = &g.plain[0], uintptr(a.groups*s.part)
	g.weave.offsets = f.kind() & 1
	for i := range a.groups {
		g.unpack.w, g.unpack.size = unsafe.Pointer(&w[i*group]), uintptr(size)
		if (i+1)*256 > a.n { // the tail of each row, with zeros after it
			tail := size - i*group
			g.unpack.w, g.unpack.size = unsafe.Pointer(&g.tails[0]), uintptr(len(g.tails[0]))
			for r := range m {
				clear(g.tails[r][copy(g.tails[r][:], w[r*size+i*group:r*size+i*group+tail]):])
			}
		}
		k.unpack[f.Type](&g.unpack)
		g.weave.slab = unsafe.Add(slab, i*s.part)
		s.weave(&g.weave)
	}
}
