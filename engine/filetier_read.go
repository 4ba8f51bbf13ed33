package engine

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"outcrop/engine/gguf"
)

// Reading experts from the file, past the page cache where the system can: a
// model bigger than RAM would only push its own pages out of it, and a page
// fault asks the disk for little at a time, once the weights are wanted
// already. Several readers keep the disk's queue full.

const (
	// readers work at once: what a disk gives for reads of half a megabyte
	// grows up to here and no further (BENCH.md).
	readers = 8
	// idleReaders of them may work for what is not wanted yet, so that a
	// wanted expert never waits behind a full queue of guesses.
	idleReaders = 4
	// diskBlock is the unit of direct reads. Disks say 512 or 4096.
	diskBlock = 4096
)

// fetch brings the weights of one expert into memory.
type fetch struct {
	layer  int
	expert int32
	place  int // among the copies of its layer, or nobody
	spare  int // or among the spare buffers, or nobody
	urgent bool
	// background: nobody waited for it when it was asked for.
	background bool
	guess      bool // of what the next layer may want
	orphan     bool // a wrong guess: its spare is free once it has landed
	done       bool // landed in a spare

	left atomic.Int32 // parts not read yet
	err  error        // first failure; under the reader's mutex
}

// part is a piece of a fetch: n bytes of a shard from off on.
type part struct {
	f     *fetch
	shard int
	off   int64
	dst   []byte
	need  int // bytes that must be there; the rest of dst may be past the end of the file
}

// fileReader reads parts on goroutines of its own.
type fileReader struct {
	files  []*os.File
	direct bool // past the page cache

	mu           sync.Mutex
	work         sync.Cond
	urgent, idle []part
	busy         int // parts being read
	busyIdle     int // of which for idle fetches
	closed       bool
	landed       []*fetch
	since        time.Time
	ended        sync.WaitGroup

	signal chan struct{} // something has landed

	bytes atomic.Int64 // read so far
	nanos atomic.Int64 // time with a read under way
}

// newFileReader opens the shards a second time, for direct reads where the
// system and the file system have them.
func newFileReader(shards []gguf.Shard) (*fileReader, error) {
	r := &fileReader{signal: make(chan struct{}, 1)}
	r.work.L = &r.mu
	for try := range 2 {
		r.direct = try == 0
		var err error
		for _, s := range shards {
			var f *os.File
			if f, err = openRead(s.Path, r.direct); err != nil {
				break
			}
			r.files = append(r.files, f)
		}
		if err == nil {
			break
		}
		for _, f := range r.files {
			f.Close()
		}
		if r.files = nil; try == 1 {
			return nil, fmt.Errorf("read experts: %w", err)
		}
	}
	for range readers {
		r.ended.Add(1)
		go r.loop()
	}
	return r, nil
}

// close ends the readers. Nothing may be under way that somebody waits for.
func (r *fileReader) close() {
	r.mu.Lock()
	r.closed = true
	r.urgent, r.idle = nil, nil
	r.work.Broadcast()
	r.mu.Unlock()
	r.ended.Wait()
	for _, f := range r.files {
		f.Close()
	}
}

// ask queues the parts of a fetch.
func (r *fileReader) ask(f *fetch, parts []part) {
	f.left.Store(int32(len(parts)))
	r.mu.Lock()
	if f.urgent {
		r.urgent = append(r.urgent, parts...)
	} else {
		r.idle = append(r.idle, parts...)
	}
	r.mu.Unlock()
	for range parts {
		r.work.Signal()
	}
}

// hurry moves what is left of an idle fetch to the front.
func (r *fileReader) hurry(f *fetch) {
	if f.urgent {
		return
	}
	r.mu.Lock()
	f.urgent = true
	keep := r.idle[:0]
	for _, p := range r.idle {
		if p.f == f {
			r.urgent = append(r.urgent, p)
		} else {
			keep = append(keep, p)
		}
	}
	clear(r.idle[len(keep):])
	r.idle = keep
	r.mu.Unlock()
	r.work.Broadcast()
}

// take hands over the fetches that are complete.
func (r *fileReader) take(dst []*fetch) []*fetch {
	r.mu.Lock()
	dst = append(dst, r.landed...)
	clear(r.landed)
	r.landed = r.landed[:0]
	r.mu.Unlock()
	return dst
}

func (r *fileReader) loop() {
	defer r.ended.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var p part
		idle := false
		switch {
		case r.closed:
			return
		case len(r.urgent) > 0:
			p = pop(&r.urgent)
		case len(r.idle) > 0 && r.busyIdle < idleReaders:
			p, idle = pop(&r.idle), true
			r.busyIdle++
		default:
			r.work.Wait()
			continue
		}
		if r.busy++; r.busy == 1 {
			r.since = time.Now()
		}
		r.mu.Unlock()
		n, err := r.files[p.shard].ReadAt(p.dst, p.off)
		if n < p.need {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			err = fmt.Errorf("read %s at %d: %w", r.files[p.shard].Name(), p.off, err)
		} else {
			err = nil
			if !r.direct {
				forget(r.files[p.shard], p.off, int64(n))
			}
		}
		r.bytes.Add(int64(n))
		r.mu.Lock()
		if idle {
			r.busyIdle--
		}
		if r.busy--; r.busy == 0 {
			r.nanos.Add(time.Since(r.since).Nanoseconds())
		}
		if len(r.idle) > 0 {
			r.work.Signal()
		}
		if err != nil && p.f.err == nil {
			p.f.err = err
		}
		if p.f.left.Add(-1) == 0 {
			r.landed = append(r.landed, p.f)
			select {
			case r.signal <- struct{}{}:
			default:
			}
		}
	}
}

func pop(q *[]part) part {
	p := (*q)[0]
	n := copy(*q, (*q)[1:])
	(*q)[n] = part{}
	*q = (*q)[:n]
	return p
}
