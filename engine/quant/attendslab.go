package quant

import "unsafe"

// Attention over slabs of rows in 8 and 4 bits (cache.go), by products of whole
// numbers. The plain loops of attendplain.go say what comes out to the last bit.
//
// A query becomes whole numbers for each 64 values, and weights times the scales
// of their rows do for up to 256 rows: of 16 and 15 bits over rows of 8 bits, so
// that nothing is lost that such a row could show. Over rows of 4 bits they have
// 8, which is finer by far than the rows are.

// slabOps is what a level can do with one kind of rows.
type slabOps struct {
	query   func(a *slabCall) // 64 values of nq queries: floats at p to slabQuery at x
	scores  func(a *slabCall) // all of nq queries over count slabs
	scales  func(a *slabCall) // of one group of count slabs: floats at d and m
	weights func(a *slabCall) // of nq queries for one group of 256 rows: floats at p to slabWeights at x
	mix     func(a *slabCall) // sums for nq queries over 16*columns values of one group
}

// sumRows is how many rows one call over values takes, sumSlabs their slabs.
const (
	sumRows  = 256
	sumSlabs = sumRows / CacheRows
)

// slabQuery is 64 values of a query: a value is about scale times its number,
// 256*high + low, or high alone for rows of 4 bits. less is -128 times the sum of
// the numbers, where kernels add 128 to the bytes of rows; offset is scale times
// the sum. Read by assembly, as the next two.
type slabQuery struct {
	high, low     [cacheBlock]int8
	scale, offset float32
	less          int32
}

// slabWeights is the weights of 256 rows, laid out as the level wants them. A
// weight is about scale times its number; offset is the sum of weights times the
// offsets of rows.
type slabWeights struct {
	numbers       [2048]byte
	scale, offset float32
	_             [56]byte
}

// slabCall is the argument of kernels. Distances are bytes.
type slabCall struct {
	slabs   unsafe.Pointer // rows: count slabs of size bytes
	size    uintptr
	count   int
	groups  int // of 64 values in a row
	group   int // that scales, weights and mix are about
	columns int // sixteens of values that mix is about
	nq      int
	fetch   uintptr // where to fetch meanwhile, up to end (mix)
	end     uintptr
	step    int            // bytes to fetch at once
	lines   int            // of 64 bytes that may be
	p       unsafe.Pointer // float32: queries or weights, ldp apart
	ldp     uintptr
	d, m    unsafe.Pointer // float32: 256 scales, 256 offsets
	x       unsafe.Pointer // slabQuery by group and query, or slabWeights by query
	dst     unsafe.Pointer // float32: results, ldd from a query to the next
	ldd     uintptr
}

// slabWork is what running calls need (work).
type slabWork struct {
	slabCall
	weights []byte    // slabWeights, from a multiple of 64 on
	scales  []float32 // of a call over values: 256 by group, scales and offsets
	padded  []float32 // weights, with zeros where there is nothing
	results []float32 // where there is more than is wanted
}

// CacheQueries is queries as whole numbers. The zero value holds none.
type CacheQueries struct {
	count, groups int
	queries       []slabQuery // by group and query
	padded        []float32   // with zeros past their end
}

// Round makes of q, nq queries of n values one after the other, what Scores takes
// for rows of wide values, of which the first n count.
func (c CacheKind) Round(x *CacheQueries, q []float32, nq, n, wide int) {
	x.count, x.groups = nq, wide/cacheBlock
	if nq == 0 || n == 0 {
		x.count = 0
		return
	}
	q = q[:nq*n]
	if n < wide {
		x.padded = floats(x.padded, nq*wide)
		for i := range nq {
			clear(x.padded[i*wide+copy(x.padded[i*wide:(i+1)*wide], q[i*n:(i+1)*n]):])
		}
		q = x.padded
	}
	if len(x.queries) < nq*x.groups {
		x.queries = make([]slabQuery, nq*x.groups)
	}
	w := getWork()
	a, ops := &w.cached.slabCall, &active.Load().slab[c]
	a.nq, a.ldp = nq, uintptr(4*wide)
	for g := range x.groups {
		a.p, a.x = unsafe.Pointer(&q[g*cacheBlock]), unsafe.Pointer(&x.queries[g*nq])
		ops.query(a)
	}
	a.drop()
	putWork(w)
}

// Scores writes the products of queries with rows rows: dst[i*ldd+r] = query i
// times row first+r of the slabs k, first being less than 16. next is where slabs
// lie that will be read soon, as many as these; it may be nil.
func (c CacheKind) Scores(dst []float32, ldd int, x *CacheQueries, k []byte, first, rows int, next []byte) {
	nq := x.count
	if nq == 0 || rows == 0 {
		return
	}
	ops, size := &active.Load().slab[c], CacheRows*c.RowBytes(x.groups*cacheBlock)
	last := first + rows // the row after them
	k = k[:(last+CacheRows-1)/CacheRows*size]
	_ = dst[(nq-1)*ldd+rows-1]
	w := getWork()
	g := &w.cached
	a := &g.slabCall
	a.size, a.groups, a.nq = uintptr(size), x.groups, nq
	a.pace(size/(nq*a.groups) + 1)
	a.x = unsafe.Pointer(&x.queries[0])
	over := uintptr(unsafe.Pointer(&k[0])) + ahead(k, next)
	whole := (first + CacheRows - 1) / CacheRows // the first slab of which all rows are wanted
	if a.count = last/CacheRows - whole; a.count > 0 {
		a.slabs, a.fetch = unsafe.Pointer(&k[whole*size]), over+uintptr(whole*size)
		a.dst, a.ldd = unsafe.Pointer(&dst[whole*CacheRows-first]), uintptr(4*ldd)
		ops.scores(a)
	}
	for s := 0; s*CacheRows < last; s++ {
		from, to := max(first-s*CacheRows, 0), min(last-s*CacheRows, CacheRows)
		if from == 0 && to == CacheRows {
			s = max(s, last/CacheRows-1)
			continue
		}
		g.results = floats(g.results, CacheRows*nq)
		a.slabs, a.fetch, a.count = unsafe.Pointer(&k[s*size]), over+uintptr(s*size), 1
		a.dst, a.ldd = unsafe.Pointer(&g.results[0]), 4*CacheRows
		ops.scores(a)
		for i := range nq {
			copy(dst[i*ldd+s*CacheRows+from-first:], g.results[i*CacheRows+from:i*CacheRows+to])
		}
	}
	a.drop()
	putWork(w)
}

// Mix adds to dst[i*ldd:][:n], for each of nq queries, the sum of p[i*ldp+r], none
// of which may be negative, times the first n values of row first+r, for rows rows.
func (c CacheKind) Mix(dst []float32, ldd, n int, p []float32, ldp, nq int, v []byte, first, rows, wide int, next []byte) {
	if nq == 0 || rows == 0 || n == 0 {
		return
	}
	_, _ = dst[(nq-1)*ldd+n-1], p[(nq-1)*ldp+rows-1]
	w := getWork()
	size := CacheRows * c.RowBytes(wide)
	for rows > 0 {
		m := min(rows, sumRows-first)
		w.cached.mixSlabs(c, dst, ldd, n, p, ldp, nq, v, first, m, wide, ahead(v, next))
		if rows -= m; rows > 0 {
			p, v, first = p[m:], v[sumSlabs*size:], 0
		}
	}
	w.cached.drop()
	putWork(w)
}

// mixSlabs takes rows of up to 16 slabs.
func (g *slabWork) mixSlabs(c CacheKind, dst []float32, ldd, n int, p []float32, ldp, nq int, v []byte, first, rows, wide int, ahead uintptr) {
	ops, a, size := &active.Load().slab[c], &g.slabCall, CacheRows*c.RowBytes(wide)
	a.size, a.groups, a.nq = uintptr(size), wide/cacheBlock, nq
	a.count = (first + rows + CacheRows - 1) / CacheRows
	v = v[:a.count*size]
	a.slabs = unsafe.Pointer(&v[0])
	groups := (n + cacheBlock - 1) / cacheBlock
	a.fetch = uintptr(a.slabs) + ahead
	a.end = a.fetch + uintptr(a.count*size)
	if ahead == 0 {
		a.end = 0
	}

	g.scales = floats(g.scales, 2*sumRows*groups)
	for b := range groups {
		s := g.scales[2*sumRows*b:][:2*sumRows]
		a.group, a.d, a.m = b, unsafe.Pointer(&s[0]), unsafe.Pointer(&s[sumRows])
		ops.scales(a)
		if rows < sumRows {
			for _, s := range [][]float32{s[:sumRows], s[sumRows:]} {
				clear(s[:first])
				clear(s[first+rows:])
			}
		}
	}
	if rows < sumRows {
		g.padded = floats(g.padded, nq*sumRows)
		clear(g.padded[:nq*sumRows])
		for i := range nq {
			copy(g.padded[i*sumRows+first:], p[i*ldp:i*ldp+rows])
		}
		p, ldp = g.padded, sumRows
	}
	to, ldt := dst, ldd
	if n%CacheRows != 0 {
		ldt = (n + CacheRows - 1) / CacheRows * CacheRows
		g.results = floats(g.results, nq*ldt)
		for i := range nq {
			copy(g.results[i*ldt:], dst[i*ldd:i*ldd+n])
		}
		to = g.results
	}
	x := g.room(nq)
	a.p, a.ldp, a.ldd = unsafe.Pointer(&p[0]), uintptr(4*ldp), uintptr(4*ldt)
	for b := range groups {
		a.x, a.group, a.nq = x, b, nq
		a.d, a.m = unsafe.Pointer(&g.scales[2*sumRows*b]), unsafe.Pointer(&g.scales[2*sumRows*b+sumRows])
		ops.weights(a)
		a.columns = min(4, (n-b*cacheBlock+CacheRows-1)/CacheRows)
		a.dst = unsafe.Pointer(&to[b*cacheBlock])
		ops.mix(a)
	}
	if n%CacheRows != 0 {
		for i := range nq {
			copy(dst[i*ldd:i*ldd+n], g.results[i*ldt:])
		}
	}
}

// room is where the weights of nq queries go, at a multiple of 64.
func (g *slabWork) room(nq int) unsafe.Pointer {
	if need := nq*int(unsafe.Sizeof(slabWeights{})) + 64; len(g.weights) < need {
		g.weights = make([]byte, need)
	}
	at := uintptr(unsafe.Pointer(&g.weights[0]))
	return unsafe.Pointer(&g.weights[-at&63])
}

// floats is b with room for n.
func floats(b []float32, n int) []float32 {
	if len(b) < n {
		return make([]float32, n)
	}
	return b
}

// pace has step bytes fetched at once.
func (a *slabCall) pace(step int) { a.step, a.lines = step, (step+63)/64 }

// drop lets go of what belongs to the caller.
func (a *slabCall) drop() { *a = slabCall{} }
