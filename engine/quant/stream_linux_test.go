package quant

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// largePages is n bytes in large pages, touched.
func largePages(tb testing.TB, n int) []byte {
	const page = 2 << 20
	m, err := syscall.Mmap(-1, 0, n+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { syscall.Munmap(m) })
	off := int(-uintptr(unsafe.Pointer(&m[0])) & (page - 1))
	b := m[off : off+n]
	_ = syscall.Madvise(b, 14) // MADV_HUGEPAGE
	for i := 0; i < n; i += 4096 {
		b[i] = 1
	}
	return b
}

// BenchmarkStream is decoding without an engine: two threads take pieces of a
// matrix larger than the caches and multiply them with one activation row. GB
// per second of the clock on the wall, so it wants a quiet machine; sweep is
// the memory itself, read in the same way.
func BenchmarkStream(b *testing.B) {
	const total, threads = 512 << 20, 2
	mem := largePages(b, total)
	rng := rand.New(rand.NewPCG(1, 2))
	run := func(b *testing.B, size, piece int, f func(thread int, w []byte)) {
		var best float64
		for b.Loop() {
			var next atomic.Int64
			var wg sync.WaitGroup
			begin := time.Now()
			for i := range threads {
				wg.Go(func() {
					runtime.LockOSThread()
					for {
						lo := int(next.Add(1)-1) * piece
						if lo+piece > size {
							return
						}
						f(i, mem[lo:lo+piece])
					}
				})
			}
			wg.Wait()
			best = max(best, float64(size/piece*piece)/time.Since(begin).Seconds()/1e9)
		}
		b.ReportMetric(best, "GB/s")
	}
	for _, piece := range []int{128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("sweep/%dKiB", piece>>10), func(b *testing.B) {
			run(b, total, piece, func(_ int, w []byte) { Sweep(w) })
		})
	}
	for _, typ := range []Type{Q4_0, Q8_0, Q2_K, Q4_K, Q5_K, Q6_K, IQ4_XS} {
		file := find(typ)
		for _, f := range []*Format{file, file.Faster(256)} {
			if f == nil {
				continue
			}
			for _, n := range []int{1536, 8960} {
				for _, piece := range []int{128 << 10, 1 << 20} {
					b.Run(fmt.Sprintf("%s/%d/%dKiB", f.Name, n, piece>>10), func(b *testing.B) {
						var a Acts
						a.Set(randomFloats(rng, n), 1, n)
						a.Quantize(0, 1)
						rows := piece / f.RowBytes(n)
						dst := [threads][]float32{make([]float32, rows), make([]float32, rows)}
						run(b, total, rows*f.RowBytes(n), func(i int, w []byte) { Mul(f, dst[i], rows, w, rows, &a, nil) })
					})
				}
			}
		}
	}
}
