package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Weight is a matrix on a device, or one matrix for each of Count experts.
type Weight struct {
	Type       uint32 // ggml's number
	Rows, Cols int    // Cols is the input dimension (ne0), Rows the output's
	Count      int    // matrices, at least 1
	Stride     int64  // bytes from one matrix to the next
	Buf        *compute.Buffer

	layout kernels.Layout
}

// WeightSize gives the bytes that a matrix takes on the device, and whether
// kernels know its type and shape.
func WeightSize(typ uint32, rows, cols int) (int64, error) {
	l, ok := kernels.LayoutOf(typ)
	if !ok {
		return 0, fmt.Errorf("tensor type %d: no kernel multiplies it", typ)
	}
	if n := max(l.Block, l.Unit()); cols%n != 0 {
		return 0, fmt.Errorf("%s rows of %d values: not a multiple of %d", l.Name, cols, n)
	}
	return align(l.Size(int64(rows) * int64(cols))), nil
}

// align rounds to what every device accepts as the start of a slice.
func align(n int64) int64 { return (n + 511) / 512 * 512 }

// NewWeight describes a matrix whose planes begin at buf, count of them.
func NewWeight(typ uint32, rows, cols, count int, buf *compute.Buffer) (*Weight, error) {
	size, err := WeightSize(typ, rows, cols)
	if err != nil {
		return nil, err
	}
	if count < 1 || buf.Len() < size*int64(count) {
		return nil, fmt.Errorf("%d matrices of %d bytes do not fit into %d", count, size, buf.Len())
	}
	w := &Weight{Type: typ, Rows: rows, Cols: cols, Count: count, Stride: size, Buf: buf}
	w.layout, _ = kernels.LayoutOf(typ)
	return w, nil
}

// units is the number of units of one matrix, upr that of a row.
func (w *Weight) units() int64 { return int64(w.Rows) * int64(w.upr()) }
func (w *Weight) upr() int     { return w.Cols / w.layout.Unit() }

// IsFloat tells whether the weights are plain floats, which are multiplied with
// float activations.
func (w *Weight) IsFloat() bool { return w.layout.Float() }

// FileBytes is the size of one matrix as it lies in a file.
func (w *Weight) FileBytes() int64 {
	n := int64(w.Rows) * int64(w.Cols)
	return n / int64(w.layout.Block) * int64(w.layout.Bytes)
}

// rawChunk is the piece in which file blocks pass over the device on their way
// to planes.
const rawChunk = 8 << 20

// Upload moves file blocks to their place on the device.
type Upload struct {
	set     *Set
	scratch *compute.Buffer
	kernels map[uint32]*compute.Kernel
}

// NewUpload prepares for the given types.
func (s *Set) NewUpload(types ...uint32) (*Upload, error) {
	u := &Upload{set: s, kernels: map[uint32]*compute.Kernel{}}
	for _, t := range types {
		l, ok := kernels.LayoutOf(t)
		if !ok || l.Float() || u.kernels[t] != nil {
			continue
		}
		k, err := s.load(kernels.Repack(l), "repack")
		if err != nil {
			return nil, err
		}
		u.kernels[t] = k
	}
	var err error
	u.scratch, err = s.dev.Alloc(rawChunk)
	return u, err
}

// Free gives the scratch memory back.
func (u *Upload) Free() { u.scratch.Free() }

// Run moves rows row0 .. of matrix `index` of w; src holds whole rows as in the
// file. Rows of formats with blocks over several rows do not exist.
func (u *Upload) Run(q *compute.Queue, w *Weight, index, row0 int, src []byte) error {
	base := int64(index) * w.Stride
	if w.IsFloat() {
		return q.Write(w.Buf, base+int64(row0)*int64(w.Cols)*int64(w.layout.Bytes), src)
	}
	k := u.kernels[w.Type]
	if k == nil {
		return fmt.Errorf("upload %s: not prepared for it", w.layout.Name)
	}
	blockUnits := w.layout.Block / 32
	perChunk := rawChunk / (8 * w.layout.Bytes) * 8 // blocks
	unit := int64(row0) * int64(w.Cols) / 32
	for len(src) > 0 {
		n := min(len(src), perChunk*w.layout.Bytes)
		if err := q.Write(u.scratch, 0, src[:n]); err != nil {
			return err
		}
		units := n / w.layout.Bytes * blockUnits
		err := q.Launch(k, compute.Dim{X: up(units, 128)}, compute.Dim{X: 128},
			compute.Mem(u.scratch), compute.Mem(w.Buf), compute.Long(base), compute.Long(w.units()), compute.Long(unit), compute.Int(units))
		if err != nil {
			return err
		}
		src, unit = src[n:], unit+int64(units)
	}
	q.Fence()
	return nil
}

// Repack is Run for n bytes of blocks that lie on the device already, at off of
// src. The caller fences when it has repacked all that a kernel will read.
func (u *Upload) Repack(q *compute.Queue, w *Weight, index, row0 int, src *compute.Buffer, off, n int64) error {
	base := int64(index) * w.Stride
	if w.IsFloat() {
		return q.Copy(w.Buf, base+int64(row0)*int64(w.Cols)*int64(w.layout.Bytes), src, off, n)
	}
	k := u.kernels[w.Type]
	if k == nil {
		return fmt.Errorf("repack %s: not prepared for it", w.layout.Name)
	}
	part, err := q.Slice(src, off, n)
	if err != nil {
		return err
	}
	units := int(n) / w.layout.Bytes * (w.layout.Block / 32)
	return q.Launch(k, compute.Dim{X: up(units, 128)}, compute.Dim{X: 128},
		compute.Mem(part), compute.Mem(w.Buf), compute.Long(base), compute.Long(w.units()), compute.Long(int64(row0)*int64(w.Cols)/32), compute.Int(units))
}
