package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"outcrop/assets"
)

// countJob counts how often each part ran.
type countJob struct{ ran []atomic.Int32 }

func (j *countJob) part(i int, _ *worker) { j.ran[i].Add(1) }

// TestPool: every part of every job runs once, for jobs of all sizes in quick
// turns.
func TestPool(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := newPool(threads)
		for round := range 3000 {
			n := round % 37
			j := &countJob{ran: make([]atomic.Int32, n)}
			p.run(j, n)
			for i := range j.ran {
				if c := j.ran[i].Load(); c != 1 {
					t.Fatalf("%d threads: part %d of %d ran %d times", threads, i, n, c)
				}
			}
		}
		p.close()
	}
}

// TestPoolParks: idle workers wait on their channel and use no time.
func TestPoolParks(t *testing.T) {
	p := newPool(4)
	defer p.close()
	j := &countJob{ran: make([]atomic.Int32, 64)}
	p.run(j, 64)
	for _, w := range p.workers[1:] {
		for n := 0; !w.parked.Load(); n++ {
			if n > 1<<24 {
				t.Fatalf("worker %d still looks for work", w.id)
			}
			runtime.Gosched()
		}
	}
}

// TestPackLost: a file that is cut while it is mapped costs the answer only.
func TestPackLost(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut on windows")
	}
	path := filepath.Join(t.TempDir(), assets.StarterName)
	if err := os.WriteFile(path, assets.Starter, 0o600); err != nil {
		t.Fatal(err)
	}
	m := load(t, path, Options{Threads: 2, Context: 256})
	s := session(t, m)
	if _, err := s.sync(context.Background(), bytesOf("fine")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := s.Generate(context.Background(), Request{Prompt: bytesOf("cut")}, nil)
		if !errors.Is(err, ErrPackLost) {
			t.Fatalf("a file that was cut: %v", err)
		}
	}
}
