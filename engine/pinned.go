package engine

import (
	"fmt"
	"unsafe"

	"outcrop/gpu/compute"
)

// pinnedChunk is the size of one piece of pinned memory. Pieces are what can
// be given back, and every driver grants them (gpu/compute.HostLimit).
const pinnedChunk = 64 << 20

// pinned is memory for a layer's copies of experts that a card fetches from by
// itself, in pieces of a number of places.
type pinned struct {
	dev   *compute.Device
	size  int // bytes of a place
	per   int // places of a piece
	n     int // places
	pages []pinnedPages
}

// pinnedPages is one piece; host is nil while it is given back.
type pinnedPages struct {
	host  *compute.Host
	shift int // to the first block of the disk
}

// pinnedAt is where the parts of an expert lie in pinned memory; host is nil
// where they lie elsewhere.
type pinnedAt struct {
	host *compute.Host
	off  [3]int64
}

func newPinned(dev *compute.Device, places, size int) *pinned {
	per := max(1, min(places, pinnedChunk/size))
	return &pinned{dev: dev, size: size, per: per, n: places, pages: make([]pinnedPages, (places+per-1)/per)}
}

// there makes sure that a place has memory.
func (p *pinned) there(place int) error {
	c := &p.pages[place/p.per]
	if c.host != nil {
		return nil
	}
	n := min(p.per, p.n-place/p.per*p.per)
	h, err := p.dev.Host(int64(n*p.size) + diskBlock)
	if err != nil {
		return fmt.Errorf("pin %d MiB for experts: %w", n*p.size>>20, err)
	}
	// Direct reads want memory that begins like a block of the disk.
	*c = pinnedPages{h, int(-uintptr(unsafe.Pointer(&h.Bytes()[0])) & (diskBlock - 1))}
	return nil
}

// place is the memory of a place that is there.
func (p *pinned) place(i int) []byte {
	c := &p.pages[i/p.per]
	lo := c.shift + i%p.per*p.size
	return c.host.Bytes()[lo : lo+p.size : lo+p.size]
}

// at is where a place begins.
func (p *pinned) at(i int) (*compute.Host, int64) {
	c := &p.pages[i/p.per]
	return c.host, int64(c.shift + i%p.per*p.size)
}

// release gives the pieces back that lie in places lo to hi-1 as a whole.
// Nothing may copy from them.
func (p *pinned) release(lo, hi int) {
	for i := range p.pages {
		if c := &p.pages[i]; c.host != nil && i*p.per >= lo && min((i+1)*p.per, p.n) <= hi {
			c.host.Free()
			*c = pinnedPages{}
		}
	}
}

func (p *pinned) free() {
	if p != nil {
		p.release(0, p.n)
	}
}
