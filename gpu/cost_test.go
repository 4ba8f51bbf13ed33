//go:build unix

package gpu

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// costMachine is the two-card machine with the most sensors, unpacked to real
// files, and a process table of a desktop's size beside it: 150 processes with 20
// open files each, six of them users of the card.
func costMachine(tb testing.TB) (string, Machine) {
	tb.Helper()
	dir := tb.TempDir()
	if err := UnpackFile("recipe/testdata/machines/strata-1545-a770-xe.txt", dir); err != nil {
		tb.Fatal(err)
	}
	for p := range 150 {
		base := filepath.Join(dir, "proc", strconv.Itoa(10000+p))
		if err := os.MkdirAll(filepath.Join(base, "fd"), 0o755); err != nil {
			tb.Fatal(err)
		}
		os.MkdirAll(filepath.Join(base, "fdinfo"), 0o755)
		for fd := range 20 {
			target := "/dev/null"
			if p < 6 && fd == 7 {
				target = "/dev/dri/renderD128"
				os.WriteFile(filepath.Join(base, "fdinfo", "7"), []byte("drm-driver: xe\ndrm-client-id: "+strconv.Itoa(p)+"\ndrm-pdev: 0000:03:00.0\ndrm-total-vram0: 1024 KiB\n"), 0o644)
			}
			os.Symlink(target, filepath.Join(base, "fd", strconv.Itoa(fd)))
		}
	}
	m, err := Detect(os.DirFS(dir))
	if err != nil {
		tb.Fatal(err)
	}
	return dir, m
}

// cpuTime gives the processor time of this process so far.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestSampleCost: minutes of readings at 1 Hz, the looks through all processes
// included, cost at most half a percent of a core.
func TestSampleCost(t *testing.T) {
	dir, m := costMachine(t)
	s := NewSampler(os.DirFS(dir), m, false)
	now := time.Unix(0, 0)
	s.Sample(now)
	// The best of three minutes: other work on the machine slows file calls too.
	const n = 60
	share := 100.0
	for range 3 {
		before := cpuTime()
		for range n {
			now = now.Add(time.Second)
			r := s.Sample(now)
			if len(r) != 1 || !r[0].Temp.Known || len(r[0].VRAM.Procs) < 6 {
				t.Fatalf("%+v", r)
			}
		}
		share = min(share, 100*(cpuTime()-before).Seconds()/n)
	}
	t.Logf("%.2f ms a reading, %.3f %% of a core at 1 Hz", share*10, share)
	if share > 0.5 {
		t.Errorf("reading the sensors at 1 Hz costs %.2f %% of a core, at most 0.5 is wanted", share)
	}
}

func BenchmarkSample(b *testing.B) {
	dir, m := costMachine(b)
	s := NewSampler(os.DirFS(dir), m, false)
	now := time.Unix(0, 0)
	for b.Loop() {
		now = now.Add(time.Second)
		s.Sample(now)
	}
}
