package rates

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"outcrop/gpu"
)

// TestLive measures this machine: OUTCROP_RATES is a file of a pack on the disk
// to be measured.
func TestLive(t *testing.T) {
	pack := os.Getenv("OUTCROP_RATES")
	if pack == "" {
		t.Skip("OUTCROP_RATES names no pack to measure this machine with")
	}
	m, err := gpu.Detect(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(t.TempDir(), "rates.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := Work{Machine: m, Pack: pack}
	last := time.Now()
	w.Progress = func(what string) {
		t.Logf("%.1f s", time.Since(last).Seconds())
		t.Log(what)
		last = time.Now()
	}
	if _, err := s.Measure(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f s", time.Since(last).Seconds())
	for _, c := range s.Rates().CPU {
		t.Log(c.Key)
		for _, e := range c.Experts {
			t.Logf("%d threads: %.1f GB/s of expert weights", e.Threads, e.PerSecond/1e9)
		}
		t.Logf("RAM %.1f GB/s", c.RAM/1e9)
	}
	for _, d := range s.Rates().Disks {
		t.Logf("%s: experts of %d KiB %.0f MB/s, 2 MB %.0f MB/s, stream %.0f MB/s (%s)", d.Key, d.Size>>10, d.Expert/1e6, d.Random/1e6, d.Stream/1e6, d.How)
	}
}
