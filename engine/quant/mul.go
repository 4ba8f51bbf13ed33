package quant

import (
	"sync/atomic"
	"unsafe"
)

// Mul multiplies rows of a weight matrix with activation rows:
// dst[j*ldd+r] = row r of w times activation row idx[j], for r = 0..rows-1.
// w holds rows rows of a.n values, one after the other. A nil idx stands for
// all rows 0..t-1 of a. It runs on one goroutine; callers split w by rows.
// One (row, activation) result is the same bits whatever else is in the call.
func Mul(f *Format, dst []float32, ldd int, w []byte, rows int, a *Acts, idx []int32) {
	count := a.t
	if idx != nil {
		count = len(idx)
	}
	if rows == 0 || count == 0 {
		return
	}
	size := f.RowBytes(a.n)
	w = w[:rows*size]
	_ = dst[(count-1)*ldd+rows-1]
	k := active.Load()
	switch {
	case k.records && !f.Float && k.many[f.Type].pays(count, a.groups):
		mulMany(&k.many[f.Type], f, dst, ldd, w, rows, a, idx, count)
		return
	case k.records && !f.Float && k.rows[f.Type] != nil:
		mulRecords(k, f, dst, ldd, w, rows, a, idx, count)
		return
	case k.records && f.Float && k.floats[f.Type] != nil && (a.n%16 == 0 || k.floatTails):
		mulFloats(k, f, dst, ldd, w, rows, a, idx, count)
		return
	}
	dot := k.dot[f.Type]
	switch {
	case dot != nil:
	case k.records && f.Float:
		dot = f.productFloat
	case k.records:
		dot = f.product
	default:
		dot = f.Dot
	}
	for r := range rows {
		row := w[r*size : (r+1)*size]
		for j := range count {
			t := j
			if idx != nil {
				t = int(idx[j])
			}
			dst[j*ldd+r] = dot(row, a, t)
		}
	}
}

// fewMax is how many activation rows one call of a rows kernel takes.
const fewMax = 16

// gemv is the argument of a rows kernel: for each row, and each of t activation
// rows, dst[row*4 + j*ldd] is the product. It is read by assembly.
type gemv struct {
	w      unsafe.Pointer // first row
	size   uintptr        // bytes of a row
	rows   int
	groups int            // whole 256 values of a row
	tail   uintptr        // bytes of the row past them: less than 256 values
	dst    unsafe.Pointer // float32
	ldd    uintptr        // bytes
	t      int
	x      [fewMax]unsafe.Pointer // activation rows: records, or floats
	acc    [fewMax][16]float32    // chains
	pad    [320]byte              // the tail and zeros after it
	plain  plainRow               // 256 weights as bytes, for levels with few registers
}

// work is what one running Mul needs; works keeps those that are not in use.
// Workers are few, so that a free one is found at once, and none is ever given
// back to the collector: no allocation after the first calls.
type work struct {
	gemv

	// many.go
	unpack unpack
	weave  weave
	slab   slab
	plain  [slabRows]plainRow
	tails  [slabRows][320]byte
	slabs  [][64]byte
	recs   []record // activation rows brought together

	at [4]struct{ row, rows int } // where slabs begin, and their rows

	cached slabWork // attendslab.go
}

var works [64]atomic.Pointer[work]

func getWork() *work {
	for i := range works {
		if w := works[i].Load(); w != nil && works[i].CompareAndSwap(w, nil) {
			return w
		}
	}
	return new(work)
}

func putWork(w *work) {
	for i := range works {
		if works[i].Load() == nil && works[i].CompareAndSwap(nil, w) {
			return
		}
	}
}

func mulRecords(k *kernels, f *Format, dst []float32, ldd int, w []byte, rows int, a *Acts, idx []int32, count int) {
	g := getWork()
	defer putWork(g)
	g.w, g.size, g.rows = unsafe.Pointer(&w[0]), uintptr(f.RowBytes(a.n)), rows
	g.groups = a.n / 256
	g.tail = g.size - uintptr(f.RowBytes(g.groups*256))
	g.ldd = uintptr(ldd) * 4
	if g.tail != 0 {
		clear(g.pad[:])
	}
	for j := 0; j < count; j += fewMax {
		g.t = min(count-j, fewMax)
		for i := range g.t {
			t := j + i
			if idx != nil {
				t = int(idx[t])
			}
			g.x[i] = unsafe.Pointer(&a.recs[t*a.groups])
		}
		g.dst = unsafe.Pointer(&dst[j*ldd])
		k.rows[f.Type](&g.gemv)
	}
	clear(g.x[:])
	g.w, g.dst = nil, nil
}

func mulFloats(k *kernels, f *Format, dst []float32, ldd int, w []byte, rows int, a *Acts, idx []int32, count int) {
	g := getWork()
	defer putWork(g)
	g.w, g.size, g.rows = unsafe.Pointer(&w[0]), uintptr(f.RowBytes(a.n)), rows
	g.groups, g.tail = a.n/16, uintptr(a.n%16)
	g.ldd = uintptr(ldd) * 4
	for j := 0; j < count; j += fewMax {
		g.t = min(count-j, fewMax)
		for i := range g.t {
			t := j + i
			if idx != nil {
				t = int(idx[t])
			}
			g.x[i] = unsafe.Pointer(&a.x[t*a.n])
		}
		g.dst, g.rows = unsafe.Pointer(&dst[j*ldd]), rows // the kernel counts rows down
		k.floats[f.Type](&g.gemv)
	}
	clear(g.x[:])
	g.w, g.dst = nil, nil
}
