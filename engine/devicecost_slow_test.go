//go:build slow

package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"outcrop/engine/token"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
)

// TestDeviceCost measures recorded steps of a pack on a card, for windows of
// several sizes, and by how much they shorten when one kernel is left out: what
// it is worth where launches overlap. It is not a test: OUTCROP_COST names the
// pack. OUTCROP_AT is the position, OUTCROP_WINDOWS the sizes, OUTCROP_PARTS
// those of them that are taken apart, OUTCROP_REPS how many replays a turn has.
func TestDeviceCost(t *testing.T) {
	path := os.Getenv("OUTCROP_COST")
	if path == "" {
		t.Skip("OUTCROP_COST names no pack")
	}
	setting := func(name, def string) string { return cmp.Or(os.Getenv(name), def) }
	numbers := func(text string) (list []int) {
		for w := range strings.SplitSeq(text, ",") {
			if n, err := strconv.Atoi(w); err == nil {
				list = append(list, n)
			}
		}
		return list
	}
	at, parts := numbers(setting("OUTCROP_AT", "512"))[0], numbers(setting("OUTCROP_PARTS", "1"))
	reps := numbers(setting("OUTCROP_REPS", "20"))[0]
	var without string
	seen := map[string]int{}
	dev := costDevice(t, func(kernel string) bool {
		seen[kernel]++
		return kernel == without
	})
	m := load(t, path, Options{Devices: []*compute.Device{dev}, Context: at + 64, Draft: "off"})
	if why := m.OnCPU(); len(why) > 0 || len(m.cards.runs) != 1 {
		t.Fatalf("not all on the card: %v", why)
	}
	s := session(t, m)
	rng := rand.New(rand.NewPCG(3, 3))
	ids := func(n int) (list []token.ID) {
		for range n {
			list = append(list, token.ID(rng.IntN(m.spec.vocab)))
		}
		return list
	}
	for n := at; n > 0; n -= m.chunk {
		if err := s.advance(t.Context(), ids(min(n, m.chunk)), 1); err != nil {
			t.Fatal(err)
		}
	}
	r, rs, pos := m.cards.runs[0], &s.st.cards.runs[0], s.st.pos
	for _, n := range numbers(setting("OUTCROP_WINDOWS", "1,2,3,4,5,6,8")) {
		s.p.tentative, s.p.pick = n > 1, &picking{}
		if err := s.forward(t.Context(), ids(n), n); err != nil {
			t.Fatal(err)
		}
		f := &feed{pos: pos, tokens: n, outputs: n, kept: s.st.kept, book: s.st.book, tentative: n > 1, cs: s.p.cs, x: s.p.x[:n*m.spec.dim]}
		st, err := r.step(s.p, rs, f)
		if err != nil {
			t.Fatal(err)
		}
		r.fill(st.in, f)
		measure := func(kernel string) time.Duration {
			without = kernel
			clear(seen)
			seq, err := r.dev.Record(func(q *compute.Queue) error { return r.enqueue(q, st, true) })
			if err != nil {
				t.Fatal(err)
			}
			defer seq.Free()
			return replayed(t, r.dev, seq, reps)
		}
		all := measure("")
		kernels := maps.Clone(seen)
		total := 0
		for _, k := range kernels {
			total += k
		}
		fmt.Printf("%s: %d tokens at %d: %.0f us, %d launches in %d layers\n", filepath.Base(path), n, pos, us(all), total, len(m.layers))
		if slices.Contains(parts, n) {
			for _, k := range slices.Sorted(maps.Keys(kernels)) {
				d := all - measure(k)
				fmt.Printf("  %-14s %3d launches %7.0f us %5.1f %% %6.2f us each\n", k, kernels[k], us(d), 100*d.Seconds()/all.Seconds(), us(d)/float64(kernels[k]))
			}
		}
	}
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// replayed is the time of one replay, the median of seven turns of n.
func replayed(t *testing.T, d *compute.Device, seq *compute.Sequence, n int) time.Duration {
	t.Helper()
	var times []time.Duration
	for range 8 {
		begin := time.Now()
		err := d.Do(func(q *compute.Queue) error {
			for range n {
				if err := q.Replay(seq); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(begin)/time.Duration(n))
	}
	times = times[1:] // the first one warms up
	slices.Sort(times)
	return times[len(times)/2]
}

// costDevice opens the device for tests with a filter of launches.
func costDevice(t *testing.T, skip func(string) bool) *compute.Device {
	t.Helper()
	computetest.Prepare()
	want := os.Getenv("OUTCROP_TEST_GPU")
	for _, drv := range compute.Drivers() {
		infos, err := drv.Devices()
		if err != nil || want != "" && want != drv.Name() {
			continue
		}
		for _, i := range infos {
			if (want == "") != i.CPU {
				continue
			}
			d, err := compute.Open(drv, i, compute.Options{Cache: os.Getenv("OUTCROP_TEST_CACHE"), Plain: i.CPU, Overlap: os.Getenv("OUTCROP_TEST_OVERLAP") != "0", Skip: skip})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			return d
		}
	}
	t.Skip("no device to measure on: OUTCROP_TEST_GPU names a driver")
	return nil
}
