package quant

import (
	"math/rand/v2"
	"syscall"
	"testing"
)

// atEdge copies b so that its last byte is the last one before memory that
// nobody may read.
func atEdge(t *testing.T, b []byte) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	size := (len(b) + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	if err := syscall.Mprotect(m[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	in := m[size-len(b) : size : size]
	copy(in, b)
	return in
}

// TestEdge multiplies rows that end where the mapping of a file may end: a
// kernel that reads past them faults.
func TestEdge(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		for i := range formats {
			f := &formats[i]
			if f.Dot == nil {
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(f.Type), 9))
			for _, blocks := range []int{1, 2, 3, 7, 8, 9} {
				n := blocks * f.Block
				if f.Float {
					n = 13 * blocks
				}
				for _, count := range []int{1, 3, 40} {
					for _, rows := range []int{1, 5, 16, 17} {
						w := atEdge(t, randomRows(rng, f, rows, n))
						var a Acts
						a.Set(randomFloats(rng, count*n), count, n)
						a.Quantize(0, count)
						dst := make([]float32, rows*count)
						Mul(f, dst, rows, w, rows, &a, nil)
					}
				}
			}
		}
		for _, g := range wovenAt {
			if g == nil || k.rows[g.Type] == nil {
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(g.Type), 9))
			for _, n := range []int{256, 512, 1280} {
				for _, count := range []int{1, 3, 40} {
					for _, rows := range []int{1, 5, 16, 17} {
						_, _, data := wovenRows(rng, g, rows, n)
						w := atEdge(t, data)
						var a Acts
						a.Set(randomFloats(rng, count*n), count, n)
						a.Quantize(0, count)
						dst := make([]float32, rows*count)
						Mul(&g.Format, dst, rows, w, rows, &a, nil)
					}
				}
			}
		}
	})
}
