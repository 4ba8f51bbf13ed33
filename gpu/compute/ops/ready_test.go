package ops

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"outcrop/gpu/compute"
)

func fakeSet(t *testing.T, f *compute.Fake, nvidia int) *Set {
	t.Helper()
	infos, err := f.Devices()
	if err != nil {
		t.Fatal(err)
	}
	infos[0].Features.Nvidia = nvidia
	d, err := compute.Open(f, infos[0], compute.Options{Builders: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	return s
}

// TestReady: what must be there fails by name, what work goes on without does not,
// whether its compiler failed before or after somebody asked for the kernel.
func TestReady(t *testing.T) {
	const q4k = 12
	for _, c := range []struct {
		fails    string
		must     bool // it is an error
		units    bool // matrix units are not used
		early    bool // compilers end before kernels are asked for
		compiled int  // modules of Ready
	}{
		{"", false, false, false, 6}, {"", false, false, true, 6},
		{"half_q4_k", false, true, false, 6}, {"half_q4_k", false, true, true, 6}, {"halve", false, true, true, 6},
		{"many", false, false, true, 6}, {"mul_q4_k_1", true, false, true, 6}, {"rows", true, false, false, 6},
		{"mul_q4_k_2", false, false, true, 6}, // nobody waits for it
	} {
		f := &compute.Fake{Other: func(*compute.FakeCall) error { return nil }}
		f.Break(compute.Fault{BuildFails: c.fails, BuildTakes: 5 * time.Millisecond})
		s := fakeSet(t, f, 90)
		s.Ahead(true, q4k)
		if c.early {
			for _, p := range s.wanted {
				<-p.Done()
			}
		}
		buf, err := s.dev.Alloc(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewWeight(q4k, 64, 256, 1, buf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Rows(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Mul(w, MaxColumns); err != nil {
			t.Fatal(err)
		}
		if _, err := s.MatMul(w); err != nil {
			t.Fatal(err)
		}
		last := 0
		err = s.Ready(context.Background(), func(done, total int) {
			if done < last || total != c.compiled {
				t.Errorf("%q fails: %d of %d after %d, want %d modules", c.fails, done, total, last, c.compiled)
			}
			last = done
		})
		if c.must != errors.Is(err, compute.ErrBuild) || c.must && !strings.Contains(err.Error(), "load "+c.fails) {
			t.Errorf("%q fails: %v", c.fails, err)
		}
		if last != c.compiled {
			t.Errorf("%q fails: %d modules at the end, want %d", c.fails, last, c.compiled)
		}
		if off := s.UnitsProblem() != nil; off != c.units || s.Halves() == off {
			t.Errorf("%q fails: units off %v (%v), halves %v", c.fails, off, s.UnitsProblem(), s.Halves())
		}
	}
}

// TestReadyGivenUp: waiting ends with its context, and what no compiler has begun
// with is dropped.
func TestReadyGivenUp(t *testing.T) {
	f := &compute.Fake{}
	f.Break(compute.Fault{BuildTakes: 300 * time.Millisecond})
	s := fakeSet(t, f, 0)
	s.Ahead(true, 2, 3, 6, 7, 8)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := s.Ready(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ready: %v, want the context's error", err)
	}
	if took := time.Since(begin); took > 200*time.Millisecond {
		t.Errorf("giving up took %v", took)
	}
	for _, p := range s.wanted {
		<-p.Done()
	}
	if all, _ := f.Builds(); all != 4 {
		t.Errorf("%d modules were compiled, want the 4 that had begun", all)
	}
}
