package engine

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// TestEnlarge: the full part of a cache moves into large pages, what is empty
// takes no memory, and no row changes.
func TestEnlarge(t *testing.T) {
	s := newStore(kvF16, 3, 128, 40<<10) // 10 MiB a head
	const rows = 20 << 10
	for h := range s.heads {
		for i := range rows * s.row {
			s.f16[h*s.ctx*s.row+i] = uint16(i*7 + h)
		}
	}
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&s.f16[0])), 2*len(s.f16))
	before, _ := pagesOf(t, mem)
	s.enlarge(0, 9000)
	s.enlarge(9000, rows)
	after, large := pagesOf(t, mem)
	if large == 0 {
		t.Skip("this system gives no large pages on request")
	}
	// 5 MiB of each head are written: at least one large page lies within.
	if large < 3*largePage || large > 3*rows*256 {
		t.Errorf("%d MiB in large pages, want 6 to 15", large>>20)
	}
	if after > before+4<<20 { // other allocations share the mapping
		t.Errorf("resident grew from %d to %d bytes", before, after)
	}
	for h := range s.heads {
		for i := range rows * s.row {
			if s.f16[h*s.ctx*s.row+i] != uint16(i*7+h) {
				t.Fatalf("head %d value %d changed", h, i)
			}
		}
	}
}

// TestEnlargeShared: heads that end amid a page share it: a cache of 4 bits, whose
// heads are hardly longer than one, is in large pages when it is nearly full, and
// the first head alone when that is all there is.
func TestEnlargeShared(t *testing.T) {
	s := newStore(kvQ4, 4, 128, 32<<10) // 2.25 MiB a head
	for i := range s.q {
		s.q[i] = byte(i * 7)
	}
	mem := unsafe.Slice(&s.q[0], len(s.q))
	if at := uintptr(unsafe.Pointer(&s.q[0])) % largePage; at != 0 {
		t.Errorf("a cache of %d bytes begins %d bytes past a large page", len(s.q), at)
	}
	count := func(hi int) (n int) {
		for at := 0; at+largePage <= len(mem); at += largePage {
			if mostly(at, s.ctx*s.row, hi*s.row) {
				n++
			}
		}
		return n
	}
	if got := []int{count(20 << 10), count(28500), count(32000), count(32 << 10)}; got[0] != 0 || got[1] != 2 || got[2] != 4 || got[3] != 4 {
		t.Errorf("%v of 4 pages are mostly written after 20480, 28500, 32000 and all rows", got)
	}
	_, none := pagesOf(t, mem)
	s.enlarge(0, 32000)
	_, large := pagesOf(t, mem)
	if large == none {
		t.Skip("this system gives no large pages on request")
	}
	if large-none < 4*largePage {
		t.Errorf("%d MiB in large pages, want 8", (large-none)>>20)
	}
	for i := range s.q {
		if s.q[i] != byte(i*7) {
			t.Fatalf("byte %d changed", i)
		}
	}
}

// pagesOf reads how much of the mappings around mem is resident, and in large
// pages.
func pagesOf(t *testing.T, mem []byte) (resident, large int) {
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("this system does not list the pages of a process: ", err)
	}
	lo := uint64(uintptr(unsafe.Pointer(&mem[0])))
	in := false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if a, z, ok := strings.Cut(f[0], "-"); ok {
			from, err1 := strconv.ParseUint(a, 16, 64)
			to, err2 := strconv.ParseUint(z, 16, 64)
			if err1 == nil && err2 == nil {
				in = from < lo+uint64(len(mem)) && to > lo
				continue
			}
		}
		if !in || len(f) < 2 {
			continue
		}
		n, _ := strconv.Atoi(f[1])
		switch f[0] {
		case "Rss:":
			resident += n << 10
		case "AnonHugePages:":
			large += n << 10
		}
	}
	return resident, large
}
