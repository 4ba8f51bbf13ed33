package gguf

import "fmt"

// Advice tells the system how a part of a mapping will be used.
type Advice int

// The advices. None of them changes what Data holds.
const (
	Normal     Advice = iota // no special use
	WillNeed                 // read it ahead, in the background
	DontNeed                 // its pages may be dropped; they are read from the file when touched again
	Random                   // no read-ahead
	Sequential               // generous read-ahead
)

// String names the advice.
func (a Advice) String() string {
	switch a {
	case Normal:
		return "normal"
	case WillNeed:
		return "will need"
	case DontNeed:
		return "don't need"
	case Random:
		return "random"
	case Sequential:
		return "sequential"
	}
	return fmt.Sprintf("advice %d", int(a))
}

// Advise gives advice for n bytes of a tensor from off on. Pages are whole, so
// WillNeed covers every page that holds a byte of the range, and the other
// advices only pages that lie in it entirely: what is told of one expert must
// not hit its neighbours. Where the system knows no such advice it does nothing.
func (f *File) Advise(t *Tensor, off, n int64, a Advice) error {
	if off < 0 || n < 0 || off > t.Bytes || n > t.Bytes-off {
		return fmt.Errorf("advise tensor %s: bytes %d to %d asked, it has %d", quoted(t.Name), off, off+n, t.Bytes)
	}
	if t.Shard < 0 || t.Shard >= len(f.maps) {
		return fmt.Errorf("advise tensor %s: the file is closed", quoted(t.Name))
	}
	m := f.maps[t.Shard]
	lo, hi := t.Offset+off, t.Offset+off+n
	if a == WillNeed {
		lo = lo &^ (pageSize - 1)
		hi = min(alignUp(hi, pageSize), int64(len(m.data)))
	} else {
		end := hi == int64(len(m.data)) // the file's last page is ours to its end
		lo = alignUp(lo, pageSize)
		if !end {
			hi = hi &^ (pageSize - 1)
		}
	}
	if lo >= hi {
		return nil
	}
	if err := m.advise(lo, hi, a); err != nil {
		return fmt.Errorf("advise tensor %s: %w", quoted(t.Name), err)
	}
	return nil
}
