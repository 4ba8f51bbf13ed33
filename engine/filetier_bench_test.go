package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"outcrop/engine/token"
)

// storageRead is how many bytes this process has had read from storage.
func storageRead(t testing.TB) int64 {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("no /proc/self/io: ", err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "read_bytes: "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	t.Skip("no read_bytes in /proc/self/io")
	return 0
}

// TestFileTierSpeed measures decode of a pack that does not fit in the memory
// it has: OUTCROP_FILETIER is the pack, OUTCROP_MODE "faults", "pages" or
// bytes of copies in MiB. Run it in a control group with a limit.
func TestFileTierSpeed(t *testing.T) {
	path, mode := os.Getenv("OUTCROP_FILETIER"), os.Getenv("OUTCROP_MODE")
	if path == "" {
		t.Skip("OUTCROP_FILETIER names no pack")
	}
	o := Options{FileTier: true, Draft: "off", Context: 1024}
	switch mode {
	case "faults", "pages":
	default:
		n, err := strconv.ParseInt(mode, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		o.ExpertRAM = n << 20
	}
	n := 64
	if v, err := strconv.Atoi(os.Getenv("OUTCROP_TOKENS")); err == nil {
		n = v
	}
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := Load(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if mode == "faults" {
		m.relief.step.Store(1)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	// Random weights choose much the same experts for every token, so the
	// test chooses: evenly, or by a Zipf law with this exponent.
	skew, _ := strconv.ParseFloat(os.Getenv("OUTCROP_SKEW"), 64)
	draws := make([]*zipf, len(m.layers))
	for i := range draws {
		if n := m.layers[i].expert.count; n > 0 {
			draws[i] = newZipf(rng, n, skew)
		}
	}
	next := make([][]int, len(m.layers))
	m.route = func(il, _ int, ids []int32) {
		if next[il] == nil {
			next[il] = draws[il].draw(len(ids))
		}
		for i, e := range next[il] {
			ids[i] = int32(e)
		}
		next[il] = nil
	}
	// Guesses are right with this probability.
	right, _ := strconv.ParseFloat(os.Getenv("OUTCROP_GUESS"), 64)
	m.foretell = func(il, _ int, ids []int32) {
		next[il] = draws[il].draw(len(ids))
		for i, e := range next[il] {
			if ids[i] = int32(e); rng.Float64() >= right {
				ids[i] = int32(rng.IntN(m.layers[il].expert.count))
			}
		}
	}
	run := func(k int) {
		for range k {
			if err := s.advance(t.Context(), []token.ID{token.ID(rng.IntN(m.spec.vocab))}, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(n) // until what is in RAM is what stays there
	before, c0 := storageRead(t), m.Telemetry().Experts
	begin := time.Now()
	run(n)
	took := time.Since(begin).Seconds()
	read, c := storageRead(t)-before, m.Telemetry().Experts
	used := float64(c.Slot + c.RAM + c.File - c0.Slot - c0.RAM - c0.File)
	fmt.Printf("%-7s %6.2f tok/s  %6.1f MB/token from disk, %5.0f MB/s over all; %4.1f %% of reads in RAM, disk busy %.0f %%, waited %.0f %%, disk gave %.0f MB/s while busy, wanted %.1f MB/token, guesses %.0f %% right, %d guessed\n",
		mode, float64(n)/took, float64(read)/1e6/float64(n), float64(read)/1e6/took,
		100*float64(c.RAM-c0.RAM)/used, 100*(c.ReadTime-c0.ReadTime).Seconds()/took, 100*(c.Waited-c0.Waited).Seconds()/took,
		float64(c.Read-c0.Read)/1e6/max(1e-9, (c.ReadTime-c0.ReadTime).Seconds()), float64(c.Missed-c0.Missed)/1e6/float64(n),
		100*float64(c.Right-c0.Right)/max(1, float64(c.Guessed-c0.Guessed)), c.Guessed-c0.Guessed)
}
