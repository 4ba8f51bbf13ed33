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
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	result := map[string][]string{}
	share := map[string][]float64{}
	for round := range rounds {
		for _, mode := range modes {
			o := Options{FileTier: true, Draft: "off", Context: 1024, Threads: int(number("OUTCROP_THREADS", 0))}
			if mode != "faults" && mode != "pages" {
				o.ExpertRAM = int64(number("OUTCROP_RAM", 0)) << 20
			}
			m, err := Load(t.Context(), p, o)
			if err != nil {
				t.Fatal(err)
			}
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
			rng := rand.New(rand.NewPCG(1, uint64(round)))
			right := -1.0
			if v, ok := strings.CutPrefix(mode, "guess:"); ok {
				right, _ = strconv.ParseFloat(v, 64)
			}
			drive(m, rng, number("OUTCROP_SKEW", 0), right)
			run := func(k int) {
				for range k {
					if err := s.advance(t.Context(), []token.ID{token.ID(rng.IntN(m.spec.vocab))}, 1); err != nil {
						t.Fatal(err)
					}
				}
			}
			run(n) // until what is in RAM is what stays there
			raw := rawRate(t, path, int64(m.layers[0].gates.rows*m.layers[0].gates.rowBytes))
			before, c0 := storageRead(t), m.Telemetry().Experts
			begin := time.Now()
			run(n)
			took := time.Since(begin).Seconds()
			read, c := storageRead(t)-before, m.Telemetry().Experts
			raw = (raw + rawRate(t, path, int64(m.layers[0].gates.rows*m.layers[0].gates.rowBytes))) / 2
			used := float64(c.Slot + c.RAM + c.File - c0.Slot - c0.RAM - c0.File)
			size := m.layers[0].gates.bytes() + m.layers[0].ups.bytes() + m.layers[0].downs.bytes()
			needed := float64(c.Missed-c0.Missed) + float64(c.Right-c0.Right)*float64(size/int64(m.layers[0].expert.count))
			if mode == "faults" || mode == "pages" {
				needed = float64(read)
			}
			share[mode] = append(share[mode], needed/took/raw)
			result[mode] = append(result[mode], fmt.Sprintf("%-9s %6.2f tok/s, %5.1f MB/token from disk, %5.1f needed: %4.0f of %4.0f MB/s (%2.0f %%); %4.1f %% in RAM, disk busy %2.0f %%, waited %2.0f %%, %d guesses, %2.0f %% right",
				mode, float64(n)/took, float64(read)/1e6/float64(n), needed/1e6/float64(n), needed/1e6/took, raw/1e6, 100*needed/took/raw,
				100*float64(c.RAM-c0.RAM)/used, 100*(c.ReadTime-c0.ReadTime).Seconds()/took, 100*(c.Waited-c0.Waited).Seconds()/took,
				c.Guessed-c0.Guessed, 100*float64(c.Right-c0.Right)/max(1, float64(c.Guessed-c0.Guessed))))
			s.Close()
			m.Close()
		}
	}
	for _, mode := range modes {
		for _, r := range result[mode] {
			fmt.Println(r)
		}
		fmt.Printf("%-9s median share of the disk's rate %.0f %%\n", mode, 100*median(share[mode]))
	}
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
func rawRate(t *testing.T, path string, size int64) float64 {
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
