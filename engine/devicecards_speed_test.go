//go:build slow

package engine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"outcrop/engine/token"
	"outcrop/gpu/compute"
)

// TestCardsSpeed measures what "Two cards" in BENCH.md holds beside the figures of
// `outcrop bench`: with OUTCROP_CARDS_SPEED=PACK.gguf and
// OUTCROP_CARDS=cuda:0,cuda:1, on cards of which each holds the pack; "share" for
// the pack measures pinned memory alone.
// OUTCROP_CARDS_PIECES=1024x4/1152,1024,1024,896 adds ways to cut a prompt of 4096.
func TestCardsSpeed(t *testing.T) {
	path := os.Getenv("OUTCROP_CARDS_SPEED")
	if path == "" {
		t.Skip("OUTCROP_CARDS_SPEED names no pack")
	}
	list, why := Devices()
	pick, err := pickDevices(os.Getenv("OUTCROP_CARDS"), "", list)
	if err != nil || len(pick) < 2 {
		t.Fatalf("OUTCROP_CARDS: %d devices, %v, %v", len(pick), err, why)
	}
	var devs []*compute.Device
	for _, i := range pick {
		d, err := OpenDevice(i, os.Getenv("OUTCROP_TEST_CACHE"))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		devs = append(devs, d)
	}
	sharedSpeed(devs[0], devs[1])
	if path == "share" {
		return
	}
	n, chunk := 4096, 2048
	if x, err := strconv.Atoi(os.Getenv("OUTCROP_CARDS_PROMPT")); err == nil { // to try the test without cards
		n, chunk = x, x/2
	}
	o := Options{Devices: devs[:1], Context: n + 256, Chunk: chunk, Draft: "off", KV: "f16"}
	m := load(t, path, o)
	ids := somePrompt(m, n)
	s := session(t, m)
	at := func(k int) string { // pieces of k tokens one after the other on one card
		best := make([]float64, 0, 16)
		for run := range 3 {
			s.Reset()
			for at := 0; at < n; at += k {
				begin := time.Now()
				if err := s.advance(t.Context(), ids[at:min(at+k, n)], at/(n-k)); err != nil {
					t.Fatal(err)
				}
				d := time.Since(begin).Seconds() * 1e3
				if i := at / k; run == 0 {
					best = append(best, d)
				} else {
					best[i] = min(best[i], d)
				}
			}
		}
		sum := 0.0
		for _, b := range best {
			sum += b
		}
		return fmt.Sprintf("%.0f tok/s, ms each %.1f", float64(n)/sum*1e3, best)
	}
	for k := 256; k <= chunk; k += 128 {
		if k < 512 || k%256 == 0 || k == 1152 {
			fmt.Printf("one card, pieces of %d: %s\n", k, at(k))
		}
	}
	fmt.Printf("one card, decode: %.1f tok/s\n", decodeSpeed(t, s))
	same := []int{n / 4, n/4 + 128, n/4 - 1, 0} // on one card and on several
	same[3] = n - same[0] - same[1] - same[2]
	s.Reset()
	begin := 0
	for i, k := range same {
		if err := s.advance(t.Context(), ids[begin:begin+k], i/(len(same)-1)); err != nil {
			t.Fatal(err)
		}
		begin += k
	}
	logits := slices.Clone(s.fresh)
	wanted := goOn(t, s, 64)
	s.Close()
	m.Close()

	half := len(m.layers) / 2
	o.Devices, o.Placement = devs, Placement{Layers: []int{half, len(m.layers) - half}}
	m = load(t, path, o)
	m.chunkAsked = false
	s = session(t, m)
	try := func(name string, cut []int) {
		m.cards.cutBy = nil
		if cut != nil {
			m.cards.cutBy = func(int) []int { return slices.Clone(cut) }
		}
		var all []float64
		var st []StageTimes
		for range 5 {
			s.Reset()
			before := m.cards.stageTimes()
			begin := time.Now()
			if err := s.prefill(t.Context(), ids, 1, nil); err != nil {
				t.Fatal(err)
			}
			all = append(all, float64(n)/time.Since(begin).Seconds())
			st = stagesSince(m.cards.stageTimes(), before)
		}
		first := all[0]
		fmt.Printf("%-34s %6.0f tok/s (first %.0f)", name, median(all), first)
		for _, x := range st {
			fmt.Printf("; %d: busy %.1f launch %.1f in %.1f out %.1f", x.Pieces, x.Busy, x.Launch, x.Input, x.Output)
		}
		fmt.Println()
	}
	var lists string
	if n == 4096 {
		lists = "512x8/768x5,256/1024x4/1152,1024,1024,896/512,1024x3,512/1408,1408,1280/1280x3,256/2048x2"
	}
	if x := os.Getenv("OUTCROP_CARDS_PIECES"); x != "" {
		lists = x
	}
	m.cards.cutBy = func(int) []int { return slices.Clone(same) }
	if err := s.prefill(t.Context(), ids, 1, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.fresh, logits) {
		t.Errorf("pieces of %v: logits of several cards are not those of one", same)
	} else if got := goOn(t, s, 64); !slices.Equal(got, wanted) {
		t.Errorf("pieces of %v: ids part: %v and %v", same, got, wanted)
	} else {
		fmt.Printf("pieces of %v: %d logits and %d ids after them are the same\n", same, len(logits), len(got))
	}
	m.cards.cutBy = nil
	own := m.cards.pieces(n, 0)
	try(fmt.Sprint("by itself: ", own), nil)
	for text := range strings.SplitSeq(lists, "/") {
		if text == "" {
			continue
		}
		var cut []int
		for _, x := range strings.Split(text, ",") {
			size, times, many := strings.Cut(x, "x")
			k, _ := strconv.Atoi(size)
			c := 1
			if many {
				c, _ = strconv.Atoi(times)
			}
			for range c {
				cut = append(cut, k)
			}
		}
		try(text, cut)
	}
	r := m.cards.runs[0]
	r.hops = r.hops[:2] // what is left over is the device's to free
	try("by itself, two hops", nil)
	if h, err := m.HandOvers(); err == nil {
		fmt.Printf("hand-over: %+v\n", h)
	}
	for _, chain := range []bool{true, false} {
		m.cards.chain = chain
		m.cards.runs[1].gap.Store(0)
		m.cards.runs[1].gaps.Store(0)
		fmt.Printf("two cards, chained %v, decode: %.1f tok/s, gap %.1f us\n", chain, decodeSpeed(t, s),
			float64(m.cards.runs[1].gap.Load())/float64(max(m.cards.runs[1].gaps.Load(), 1))/1e3)
	}
	for _, h := range r.hops {
		from, err := devs[0].Host(int64(len(h.from.Bytes())))
		if err != nil {
			t.Fatal(err)
		}
		to, err := devs[1].Host(int64(len(h.to.Bytes())))
		if err != nil {
			t.Fatal(err)
		}
		h.from, h.to, h.one = from, to, false
	}
	try("by itself, two hops, copied", nil)
	if h, err := m.HandOvers(); err == nil {
		fmt.Printf("hand-over, copied: %+v\n", h)
	}
	s.st.cards.runs[0].forget() // recorded with the other memory
	s.st.cards.runs[1].forget()
	fmt.Printf("two cards, decode, copied: %.1f tok/s\n", decodeSpeed(t, s))
	s.Close()
}

// goOn are the next n tokens.
func goOn(t *testing.T, s *Session, n int) (out []token.ID) {
	for range n {
		id := argmax(s.fresh)
		out = append(out, id)
		if err := s.advance(t.Context(), []token.ID{id}, 1); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func decodeSpeed(t *testing.T, s *Session) float64 {
	var all []float64
	for range 3 {
		s.Reset()
		begin := time.Now()
		for i := range 96 {
			if i == 8 {
				begin = time.Now()
			}
			if err := s.greedy(t.Context(), somePrompt(s.m, 96)[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, 88/time.Since(begin).Seconds())
	}
	return median(all)
}

// sharedSpeed compares memory that both devices know with memory of their own.
func sharedSpeed(a, b *compute.Device) {
	const n = 32 << 20
	buf, err := a.Alloc(n)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer buf.Free()
	rates := func(name string, h *compute.Host) {
		var up, down []float64
		for range 9 {
			begin := time.Now()
			if a.Do(func(q *compute.Queue) error { return q.WriteHost(buf, 0, h, 0, n) }) != nil {
				return
			}
			up = append(up, n/time.Since(begin).Seconds()/1e9)
			begin = time.Now()
			if a.Do(func(q *compute.Queue) error { return q.ReadHost(h, 0, buf, 0, n) }) != nil {
				return
			}
			down = append(down, n/time.Since(begin).Seconds()/1e9)
		}
		fmt.Printf("%s: to the card %.1f GB/s, back %.1f\n", name, median(up), median(down))
	}
	own, err := a.Host(n)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer own.Free()
	other, err := b.Host(n)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Free()
	rates("own memory", own)
	for _, x := range []struct {
		name string
		fn   func(dst, src []byte)
	}{{"one core", func(dst, src []byte) { copy(dst, src) }}, {"several", copyWide}} {
		x.fn(other.Bytes(), own.Bytes())
		begin := time.Now()
		for range 5 {
			x.fn(other.Bytes(), own.Bytes())
		}
		fmt.Printf("copied by %s: %.1f GB/s\n", x.name, 5*n/time.Since(begin).Seconds()/1e9)
	}
	begin := time.Now()
	views, err := compute.Share(n, a, b)
	if err != nil {
		fmt.Println("shared:", err)
		return
	}
	fmt.Printf("shared in %.1f ms\n", time.Since(begin).Seconds()*1e3)
	rates("shared memory", views[0])
	for _, v := range views {
		v.Free()
	}
}
