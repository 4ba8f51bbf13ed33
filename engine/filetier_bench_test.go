package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
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
// it has. OUTCROP_FILETIER is the pack; OUTCROP_MODE has the ways to compare,
// which take turns: "faults", "pages", "copies", or "guess:0.9" for copies
// with that share of guesses right; OUTCROP_RAM is the bytes of copies in MiB.
// Run it in a control group with a limit.
func TestFileTierSpeed(t *testing.T) {
	path := os.Getenv("OUTCROP_FILETIER")
	if path == "" {
		t.Skip("OUTCROP_FILETIER names no pack")
	}
	number := func(name string, def float64) float64 {
		if v, err := strconv.ParseFloat(os.Getenv(name), 64); err == nil {
			return v
		}
		return def
	}
	n, rounds := int(number("OUTCROP_TOKENS", 24)), int(number("OUTCROP_ROUNDS", 3))
	modes := strings.Fields(os.Getenv("OUTCROP_MODE"))
	if len(modes) == 0 {
		modes = []string{"faults", "pages", "copies"}
	}
	all := map[string][]tierResult{}
	for round := range rounds {
		for _, mode := range modes {
			r := measureTier(t, path, mode, Options{ExpertRAM: int64(number("OUTCROP_RAM", 0)) << 20, Threads: int(number("OUTCROP_THREADS", 0))}, n, uint64(round), number("OUTCROP_SKEW", 0))
			fmt.Println(r)
			all[mode] = append(all[mode], r)
		}
	}
	for _, mode := range modes {
		var rate, share []float64
		for _, r := range all[mode] {
			rate, share = append(rate, r.tokS), append(share, r.share())
		}
		fmt.Printf("%-10s median %.2f tok/s, %.0f %% of the disk's rate\n", mode, median(rate), 100*median(share))
	}
}

// tierResult is one measurement of the file tier. Rates are bytes a second.
type tierResult struct {
	mode           string
	tokS           float64
	read, needed   float64 // bytes a token from storage, and of those that were wanted
	raw            float64 // what the disk gives for such reads
	inRAM          float64 // share of expert reads
	busy, waited   float64 // shares of the time
	guessed, right int64
}

// share is the part of the disk's rate that tokens got of it: 1 is the disk's
// floor, where nothing but reading takes time.
func (r tierResult) share() float64 { return r.needed * r.tokS / r.raw }

func (r tierResult) String() string {
	return fmt.Sprintf("%-10s %6.2f tok/s, %5.1f MB/token from disk, %5.1f needed: %4.0f of %4.0f MB/s (%2.0f %%); %4.1f %% in RAM, disk busy %2.0f %%, waited %2.0f %%, %d guesses, %2.0f %% right",
		r.mode, r.tokS, r.read/1e6, r.needed/1e6, r.needed*r.tokS/1e6, r.raw/1e6, 100*r.share(), 100*r.inRAM, 100*r.busy, 100*r.waited, r.guessed, 100*float64(r.right)/max(1, float64(r.guessed)))
}

// measureTier decodes n tokens to fill what RAM holds, then n more. The disk's
// own rate is measured before and after: others use it too.
func measureTier(t testing.TB, path, mode string, o Options, n int, seed uint64, skew float64) tierResult {
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	o.FileTier, o.Draft, o.Context = true, "off", 1024
	if mode == "faults" || mode == "pages" {
		o.ExpertRAM = 0
	}
	m, err := Load(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if mode == "faults" {
		m.relief.step.Store(1)
	}
	if k, ok := m.experts.(*shelves); ok { // filled before it is measured
		if err := k.fillAll(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	right := -1.0
	if v, ok := strings.CutPrefix(mode, "guess:"); ok {
		right, _ = strconv.ParseFloat(v, 64)
	}
	rng := rand.New(rand.NewPCG(1, seed))
	drive(m, rng, skew, right)
	run := func(k int) {
		for range k {
			if err := s.advance(t.Context(), []token.ID{token.ID(rng.IntN(m.spec.vocab))}, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := &m.layers[0]
	part := int64(l.gates.rows * l.gates.rowBytes)
	size := (l.gates.bytes() + l.ups.bytes() + l.downs.bytes()) / int64(l.expert.count)

	run(n)
	r := tierResult{mode: mode, raw: rawRate(t, path, part)}
	before, c0, begin := storageRead(t), m.Telemetry().Experts, time.Now()
	run(n)
	took := time.Since(begin).Seconds()
	c := m.Telemetry().Experts
	r.read = float64(storageRead(t)-before) / float64(n)
	r.raw = (r.raw + rawRate(t, path, part)) / 2
	r.tokS = float64(n) / took
	r.guessed, r.right = c.Guessed-c0.Guessed, c.Right-c0.Right
	r.needed = (float64(c.Missed-c0.Missed) + float64(r.right*size)) / float64(n)
	if o.ExpertRAM == 0 {
		r.needed = r.read
	}
	used := c.Slot + c.RAM + c.File - c0.Slot - c0.RAM - c0.File
	r.inRAM = float64(c.RAM-c0.RAM) / float64(used)
	r.busy = (c.ReadTime - c0.ReadTime).Seconds() / took
	r.waited = (c.Waited - c0.Waited).Seconds() / took
	return r
}

// drive makes a model choose experts evenly, or by a Zipf law with exponent
// skew: random weights choose much the same experts for every token. Guesses
// about the next layer are right with probability right, none are made below 0.
func drive(m *Model, rng *rand.Rand, skew, right float64) {
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
	if k, ok := m.experts.(*shelves); ok && right < 0 {
		k.ahead.rest = 1 << 30
	}
	m.foretell = func(il, _ int, ids []int32) {
		next[il] = draws[il].draw(len(ids))
		wrong := draws[il].draw(len(ids))
		for i, e := range next[il] {
			if ids[i] = int32(e); rng.Float64() >= right {
				ids[i] = int32(wrong[i])
			}
		}
	}
}

// rawRate is what the disk gives for random direct reads of a size, several at
// a time, in bytes a second: the best any file tier could do.
func rawRate(t testing.TB, path string, size int64) float64 {
	t.Helper()
	size = blockUp(size)
	each := (int(size) + 2<<20 - 1) &^ (2<<20 - 1) // on large pages of its own
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := newRegion(readers * each)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.free()
	var wg sync.WaitGroup
	begin := time.Now()
	n := int(300<<20/size/readers) + 1
	for i := range readers {
		f, err := openRead(path, true)
		if err != nil {
			t.Skip("no direct reads here: ", err)
		}
		defer f.Close()
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range n {
				f.ReadAt(mem.mem[i*each:i*each+int(size)], blockDown(rand.Int64N(st.Size()-size)))
			}
		}()
	}
	wg.Wait()
	return float64(int64(n*readers)*size) / time.Since(begin).Seconds()
}
