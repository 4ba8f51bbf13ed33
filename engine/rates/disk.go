package rates

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// diskReaders read at once, as the engine's file tier does.
	diskReaders = 8
	diskBlock   = 4096

	randomSize = 2 << 20
	streamSize = 8 << 20
)

// measureDisk reads from the pack itself, which is only ever read, past the
// page cache: what the cache holds says nothing about the disk.
func measureDisk(ctx context.Context, w Work) (Disk, error) {
	path, expert := w.Pack, w.Expert
	st, err := os.Stat(path)
	if err != nil {
		return Disk{}, err
	}
	if st.Size() < w.effort.diskLeast {
		return Disk{}, fmt.Errorf("%s has %d MiB, a file of %d is needed to measure with", path, st.Size()>>20, w.effort.diskLeast>>20)
	}
	d := Disk{Size: expert}
	expert = (expert + diskBlock - 1) &^ (diskBlock - 1)
	if d.Expert, d.How, err = readRate(ctx, w.effort, path, st.Size(), expert, true); err != nil {
		return d, err
	}
	if d.Random, _, err = readRate(ctx, w.effort, path, st.Size(), randomSize, true); err != nil {
		return d, err
	}
	d.Stream, _, err = readRate(ctx, w.effort, path, st.Size(), streamSize, false)
	return d, err
}

// readRate reads pieces of a size at random, or one after the other from a
// random place on, and gives the bytes a second.
func readRate(ctx context.Context, e effort, path string, total, size int64, random bool) (rate float64, how string, err error) {
	files := make([]reader, 0, diskReaders)
	defer func() {
		for _, f := range files {
			f.close()
		}
	}()
	for range diskReaders {
		f, h, err := openPast(path, int(size))
		if err != nil {
			return 0, "", err
		}
		files, how = append(files, f), h
	}
	pieces := max(1, total/size)
	var next, bytes atomic.Int64
	next.Store(rand.Int64N(pieces))
	var first atomic.Pointer[error]
	var wg sync.WaitGroup
	begin := time.Now()
	for _, f := range files {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for time.Since(begin) < e.diskTime && bytes.Load() < e.diskBytes && ctx.Err() == nil {
				at := next.Add(1) % pieces
				if random {
					at = rand.Int64N(pieces)
				}
				n, err := f.read(at * size)
				if err != nil && err != io.EOF {
					first.CompareAndSwap(nil, &err)
					return
				}
				bytes.Add(int64(n))
			}
		}()
	}
	wg.Wait()
	if p := first.Load(); p != nil {
		return 0, how, fmt.Errorf("read %s: %w", path, *p)
	}
	if err := ctx.Err(); err != nil {
		return 0, how, err
	}
	return float64(bytes.Load()) / time.Since(begin).Seconds(), how, nil
}

// reader reads pieces of one size into memory of its own.
type reader struct {
	file *os.File
	buf  []byte
	past func(off, n int64) // keeps a piece out of the page cache; nil: not needed
	free func()
}

func (r *reader) read(off int64) (int, error) {
	if r.past != nil {
		r.past(off, int64(len(r.buf)))
	}
	return r.file.ReadAt(r.buf, off)
}

func (r *reader) close() {
	r.file.Close()
	if r.free != nil {
		r.free()
	}
}
