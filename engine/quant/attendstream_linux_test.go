package quant

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// BenchmarkAttendStream is attention of one token over cached rows in memory, by
// one and by two threads with rows of their own: 256 rows at a time, scores and
// then the sum of values, as the engine does it. It reports GB/s of cached rows,
// by the processor time of the threads, so that other processes count less.
func BenchmarkAttendStream(b *testing.B) {
	const n, block, rows = 128, 256, 128 << 10
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name string
		size int // bytes of a row
		run  func(mem []byte, q, s, y []float32, nq int)
	}{
		{"f16", 2 * n, func(mem []byte, q, s, y []float32, nq int) {
			k := unsafe.Slice((*uint16)(unsafe.Pointer(&mem[0])), len(mem)/2)
			v := k[len(k)/2:]
			for at := 0; at < len(k)/2; at += block * n {
				ScoresManyF16(s, block, q, nq, n, k[at:], block, n, v[at:])
				MixManyF16(y, n, n, s, block, nq, v[at:], block, n, k[at+block*n:])
			}
		}},
		{"q8", Cache8.RowBytes(n), streamSlabs(Cache8, n, block)},
		{"q4", Cache4.RowBytes(n), streamSlabs(Cache4, n, block)},
	} {
		for _, pages := range []string{"small", "large"} {
			var mem [2][]byte
			for i := range mem {
				mem[i] = bigPages(b, 2*rows*c.size, pages == "large")
				row := randomRowBytes(rng, c.name, n)
				for at := 0; at < len(mem[i]); at += len(row) {
					copy(mem[i][at:], row)
				}
			}
			for _, nq := range []int{1, 4, 6, 8} {
				for _, threads := range []int{1, 2} {
					b.Run(fmt.Sprintf("%s/%s/%dq/%dt", c.name, pages, nq, threads), func(b *testing.B) {
						q := randomFloats(rng, nq*n)
						begin := processTime()
						for b.Loop() {
							var wg sync.WaitGroup
							for i := range threads {
								wg.Go(func() {
									c.run(mem[i], q, make([]float32, nq*block), make([]float32, nq*n), nq)
								})
							}
							wg.Wait()
						}
						spent := (processTime() - begin).Seconds() / float64(threads)
						b.ReportMetric(float64(threads*b.N*len(mem[0]))/spent/1e9, "GB/s")
						b.ReportMetric(0, "ns/op")
					})
				}
			}
			for _, m := range mem {
				syscall.Munmap(m)
			}
		}
	}
}

func streamSlabs(c CacheKind, n, block int) func(mem []byte, q, s, y []float32, nq int) {
	weights := positive(randomFloats(rand.New(rand.NewPCG(1, 2)), 8*block))
	return func(mem []byte, q, s, y []float32, nq int) {
		size := c.RowBytes(n) * block
		var x CacheQueries
		c.Round(&x, q, nq, n, n)
		for k, v := mem[:len(mem)/2], mem[len(mem)/2:]; len(k) > size; k, v = k[size:], v[size:] {
			c.Scores(s, block, &x, k, 0, block, v)
			c.Mix(y, n, n, weights, block, nq, v, 0, block, n, k[size:])
		}
	}
}

func processTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// randomRowBytes is a row of halves, or a slab of rows.
func randomRowBytes(rng *rand.Rand, kind string, n int) []byte {
	for i, name := range []string{"q8", "q4"} {
		if kind == name {
			c := CacheKind(i)
			slab := make([]byte, CacheRows*c.RowBytes(n))
			for r := range CacheRows {
				c.Put(slab, r, randomFloats(rng, n))
			}
			return slab
		}
	}
	x := randomFloats(rng, n)
	row := make([]byte, 2*n)
	ToF16(unsafe.Slice((*uint16)(unsafe.Pointer(&row[0])), n), x)
	return row
}

// bigPages maps n bytes, whose pages are large where that is asked and granted.
func bigPages(b *testing.B, n int, large bool) []byte {
	b.Helper()
	const size = 2 << 20
	all, err := syscall.Mmap(-1, 0, (n+size-1)/size*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	advice := 15 // MADV_NOHUGEPAGE
	if large {
		advice = 14
	}
	if err := syscall.Madvise(all, advice); err != nil {
		b.Log(err)
	}
	return all[:n:n]
}
