package engine

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"outcrop/engine/quant"
)

// A job is work cut into parts that may run in any order on any worker. What
// part i writes must not depend on who runs it: that is what makes results
// equal for every number of threads.
type job interface {
	part(i int, w *worker)
}

// worker is one member of the pool with scratch of its own. Worker 0 is the
// goroutine that called run.
type worker struct {
	id     int
	parked atomic.Bool
	wake   chan struct{}

	// span is the parts of the current job that this worker begins with and has
	// not claimed: the first in the low half, the one past the last in the high
	// half. One word, so that a claim is one step, and a worker that slept
	// through the end of a job can only claim what the present job has left.
	span atomic.Uint64
	_    [64]byte // no other worker's words in the line of this one

	scores  []float32          // attention: scores of a context block; router: scores of experts
	query   []float32          // attention: queries of a block, one after the other
	rounded quant.CacheQueries // the same as a cache in few bits wants them
	asked   asked              // which they are
	pad     []float32          // cache: a row padded to whole groups
	cand    []candidate        // indexer: blocks to choose from
	acc     []float32          // attention: partial results
	delta   quant.Delta        // arguments of the delta net's kernel
	chunks  quant.DeltaWork
	row     []float32 // delta net and others: one row of state
}

// pool is a fixed set of workers. run publishes a job and works on it too. Each
// worker has a span of parts of its own and takes them in order, so that it reads
// memory as one stream; who is done takes parts from the ends of others, one at a
// time. A worker that the machine has taken off its core delays only the part it
// holds.
//
// Nobody spins for long: after spinLimit looks (some 50 us, more than the gap
// between two products of a decode step) a worker parks on a channel and costs
// nothing until the next job. Waking one takes longer than a small product.
type pool struct {
	workers []*worker

	job  job
	done atomic.Int32 // finished parts of the current job
	all  int32        // parts of the current job
	left atomic.Int32 // parts of the current job that nobody has claimed

	waiting atomic.Bool   // the caller of run is parked
	ended   chan struct{} // wakes it
	stopped atomic.Bool

	lost atomic.Bool // a part ran into a page of the file that is not there
}

const spinLimit = 40000

func newPool(threads int) *pool {
	p := &pool{ended: make(chan struct{}, 1)}
	for i := 0; i < max(1, threads); i++ {
		p.workers = append(p.workers, &worker{id: i, wake: make(chan struct{}, 1)})
	}
	for _, w := range p.workers[1:] {
		go p.work(w)
	}
	return p
}

// close ends the workers. The pool must be idle.
func (p *pool) close() {
	p.stopped.Store(true)
	for _, w := range p.workers[1:] {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// run does parts 0..n-1 of j and returns when all are finished. One caller at
// a time; a job must not call run.
func (p *pool) run(j job, n int) { p.runFrom(j, n, nil) }

// runFrom is run where worker i begins with the parts from starts[i] on, up to
// where the next begins. No starts: all have as many.
func (p *pool) runFrom(j job, n int, starts []int32) {
	if n <= 0 {
		return
	}
	p.job, p.all = j, int32(n)
	if n == 1 || len(p.workers) == 1 {
		for i := 0; i < n; i++ {
			p.part(i, p.workers[0])
		}
		p.job = nil
		return
	}
	p.done.Store(0)
	p.left.Store(int32(n)) // before any part can be claimed
	W := len(p.workers)
	hi := n
	for i := W - 1; i >= 0; i-- {
		lo := n * i / W
		if starts != nil {
			lo = int(starts[i])
		}
		p.workers[i].span.Store(uint64(lo) | uint64(hi)<<32)
		hi = lo
	}
	wake := n - 1
	for _, w := range p.workers[1:] {
		if wake == 0 {
			break
		}
		if w.parked.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
		wake--
	}
	p.help(p.workers[0])
	for i := 0; p.done.Load() != p.all; i++ {
		if i < spinLimit {
			continue
		}
		p.waiting.Store(true)
		if p.done.Load() == p.all && p.waiting.CompareAndSwap(true, false) {
			break
		}
		<-p.ended
	}
	p.job = nil
}

// claim takes a part of w's own span, else the last one of another's; -1 when
// none is left.
func (p *pool) claim(w *worker) int {
	for n := range p.workers {
		v := p.workers[(w.id+n)%len(p.workers)]
		for {
			s := v.span.Load()
			lo, hi := uint32(s), uint32(s>>32)
			if lo >= hi {
				break
			}
			i, rest := lo, s+1
			if n > 0 {
				i, rest = hi-1, s-1<<32
			}
			if v.span.CompareAndSwap(s, rest) {
				p.left.Add(-1)
				return int(i)
			}
		}
	}
	return -1
}

// help runs parts of the current job until none is left to claim.
func (p *pool) help(w *worker) {
	for i := p.claim(w); i >= 0; i = p.claim(w) {
		// The part is ours, and run cannot end before it is counted: the
		// fields of the job stay as they are until then.
		all := p.all
		p.part(i, w)
		if p.done.Add(1) == all && p.waiting.CompareAndSwap(true, false) {
			p.ended <- struct{}{}
		}
	}
}

// part runs one part. Weights lie in a mapped file: when the file was cut, or
// its disk fails, reading them is a fault. That must cost the answer, not the
// process, so it is taken note of here and found by forward.
func (p *pool) part(i int, w *worker) {
	defer p.caught()
	p.job.part(i, w)
}

func (p *pool) caught() {
	if r := recover(); r != nil {
		if !isFault(r) {
			panic(r)
		}
		p.lost.Store(true)
	}
}

// isFault tells a fault of memory, which carries its address, from other panics.
func isFault(r any) bool {
	_, ok := r.(interface{ Addr() uintptr })
	return ok
}

func (p *pool) work(w *worker) {
	debug.SetPanicOnFault(true)
	for idle := 0; ; {
		if p.left.Load() != 0 {
			p.help(w)
			idle = 0
			continue
		}
		if p.stopped.Load() {
			return
		}
		if idle++; idle < spinLimit {
			if idle%1024 == 0 {
				runtime.Gosched()
			}
			continue
		}
		idle = 0
		w.parked.Store(true)
		if p.left.Load() != 0 && w.parked.CompareAndSwap(true, false) {
			continue
		}
		if p.stopped.Load() {
			return
		}
		<-w.wake
	}
}

// room returns buf with length n, keeping its memory when that is enough.
// The contents are not kept.
func room(buf []float32, n int) []float32 {
	if cap(buf) < n {
		return make([]float32, n)
	}
	return buf[:n]
}
