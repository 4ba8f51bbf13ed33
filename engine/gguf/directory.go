package gguf

import (
	"fmt"
	"math"
	"math/bits"
	"sort"

	"outcrop/engine/quant"
)

// directory reads n tensor entries: name, shape, type, offset.
func (s *scanner) directory(n int) ([]*Tensor, error) {
	var list []*Tensor
	seen := make(map[string]bool, min(n, 4096))
	for i := range n {
		s.what = fmt.Sprintf("tensor entry %d of %d", i+1, n)
		name, err := s.name()
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %s appears twice", quoted(name))
		}
		seen[name] = true
		t, err := s.tensor(name)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// tensor reads one entry after its name. The offset is as the file has it.
func (s *scanner) tensor(name string) (*Tensor, error) {
	dims, err := s.u32()
	if err != nil {
		return nil, err
	}
	if dims > maxDims {
		return nil, fmt.Errorf("tensor %s has %d dimensions, at most %d are allowed", quoted(name), dims, maxDims)
	}
	t := &Tensor{Name: name, Shape: make([]int64, dims, max(dims, 1))}
	values := uint64(1)
	for d := range t.Shape {
		ne, err := s.u64()
		if err != nil {
			return nil, err
		}
		hi, product := bits.Mul64(values, ne)
		switch {
		case ne == 0:
			return nil, fmt.Errorf("tensor %s has 0 values in dimension %d", quoted(name), d)
		case ne > math.MaxInt64 || hi != 0 || product > math.MaxInt64:
			return nil, fmt.Errorf("tensor %s has more values than can be counted: dimension %d is %d", quoted(name), d, ne)
		}
		t.Shape[d], values = int64(ne), product
	}
	if dims == 0 {
		t.Shape = append(t.Shape, 1) // a scalar
	}
	typ, err := s.u32()
	if err != nil {
		return nil, err
	}
	offset, err := s.u64()
	if err != nil {
		return nil, err
	}
	t.Type = quant.Type(typ)
	f, err := quant.Of(t.Type)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w %d: a newer version of this program may know it (%w)", quoted(name), ErrUnknownType, typ, err)
	}
	if t.Shape[0]%int64(f.Block) != 0 {
		return nil, fmt.Errorf("tensor %s: rows of %d values are not whole blocks of %d, as type %s needs", quoted(name), t.Shape[0], f.Block, f.Name)
	}
	hi, size := bits.Mul64(values/uint64(f.Block), uint64(f.Bytes))
	if hi != 0 || size > math.MaxInt64 {
		return nil, fmt.Errorf("tensor %s: its size in bytes overflows", quoted(name))
	}
	if offset > math.MaxInt64 {
		return nil, fmt.Errorf("tensor %s: offset %d overflows", quoted(name), offset)
	}
	t.Bytes, t.Offset = int64(size), int64(offset)
	return t, nil
}

// place turns the offsets, which count from the data section, into offsets in
// the file, and checks that tensors lie inside the file, on the alignment and
// not on one another.
func (h *header) place(size int64) error {
	for _, t := range h.tensors {
		if t.Offset%h.alignment != 0 {
			return fmt.Errorf("tensor %s: offset %d is not a multiple of the alignment %d", quoted(t.Name), t.Offset, h.alignment)
		}
		room := size - h.dataStart
		if room < 0 || t.Offset > room || t.Bytes > room-t.Offset {
			return fmt.Errorf("%w: tensor %s needs bytes %d to %d of the data section, %d are there: copy or download the file again",
				ErrTruncated, quoted(t.Name), t.Offset, uint64(t.Offset)+uint64(t.Bytes), max(room, 0))
		}
		t.Offset += h.dataStart
	}
	order := append([]*Tensor(nil), h.tensors...)
	sort.SliceStable(order, func(i, j int) bool { return order[i].Offset < order[j].Offset })
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if a.Offset+a.Bytes > b.Offset {
			return fmt.Errorf("tensors %s and %s overlap: bytes %d to %d and %d to %d", quoted(a.Name), quoted(b.Name),
				a.Offset, a.Offset+a.Bytes, b.Offset, b.Offset+b.Bytes)
		}
	}
	return nil
}
