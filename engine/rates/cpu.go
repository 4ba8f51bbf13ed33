package rates

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"outcrop/engine/quant"
)

// threadCounts are those worth knowing: powers of two and the most.
func threadCounts(most int) (out []int) {
	for n := 1; n < most; n *= 2 {
		out = append(out, n)
	}
	return append(out, most)
}

// measureCPU multiplies matrices of an expert's shape with one activation row,
// which is what decode does.
func measureCPU(ctx context.Context, w Work) (CPU, error) {
	f, err := quant.Of(w.Format)
	if err != nil {
		return CPU{}, err
	}
	if w.Cols%f.Block != 0 {
		return CPU{}, fmt.Errorf("rows of %d values of %s, want a multiple of %d", w.Cols, f.Name, f.Block)
	}
	size := w.Rows * f.RowBytes(w.Cols)
	total := w.effort.cpuBytes
	if a := w.Machine.Host.Available(); a.Known {
		total = min(total, a.Value/8)
	}
	n := int(total) / size
	if n < 4*w.Threads {
		return CPU{}, fmt.Errorf("%d MiB of RAM are free to measure with, too few for matrices of %d KiB", total>>20, size>>10)
	}
	data := make([]byte, n*size)
	fillBlocks(data, f)

	rng := rand.New(rand.NewPCG(2, 2))
	x := make([]float32, w.Cols)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	var acts quant.Acts
	acts.Set(x, 1, w.Cols)
	if !f.Float {
		acts.Quantize(0, 1)
	}
	out := CPU{}
	for _, threads := range threadCounts(w.Threads) {
		if err := ctx.Err(); err != nil {
			return CPU{}, err
		}
		rate := together(w.effort.cpuTime, threads, n, func(i, thread int, dst []float32) int {
			quant.Mul(f, dst[:w.Rows], w.Rows, data[i*size:(i+1)*size], w.Rows, &acts, nil)
			return size
		}, w.Rows)
		out.Experts = append(out.Experts, Threads{threads, rate, f.Name})
	}
	const piece = 1 << 16
	floats := make([]float32, len(data)/4)
	for i := range floats {
		floats[i] = 1
	}
	sums := make([]float32, w.Threads*16)
	out.RAM = together(w.effort.cpuTime, w.Threads, len(floats)/piece, func(i, thread int, _ []float32) int {
		sums[thread*16] += quant.SumSquares(floats[i*piece : (i+1)*piece])
		return piece * 4
	}, 1)
	runtime.KeepAlive(sums)
	return out, nil
}

// together runs part for i = 0..n-1, over and over, on so many threads, and
// gives the bytes a second of the best of three runs: whatever else the
// machine does makes a run slower, never faster.
func together(long time.Duration, threads, n int, part func(i, thread int, dst []float32) int, room int) (best float64) {
	for range 3 {
		var next, done atomic.Int64
		var wg sync.WaitGroup
		begin := time.Now()
		for t := range threads {
			wg.Add(1)
			go func() {
				defer wg.Done()
				dst := make([]float32, room)
				for time.Since(begin) < long {
					done.Add(int64(part(int(next.Add(1)-1)%n, t, dst)))
				}
			}()
		}
		wg.Wait()
		best = max(best, float64(done.Load())/time.Since(begin).Seconds())
	}
	return best
}

// fillBlocks writes random blocks whose scales are finite: kernels may be
// slower on numbers that are not.
func fillBlocks(b []byte, f *quant.Format) {
	// One megabyte of blocks that decode to finite values, then copies of it.
	rng := rand.New(rand.NewPCG(1, 1))
	n := min(len(b), 1<<20/f.Bytes*f.Bytes)
	vals := make([]float32, f.Block)
	for i := 0; i < n; i += f.Bytes {
		block := b[i : i+f.Bytes]
		for try := 0; ; try++ {
			for j := range block {
				block[j] = byte(rng.Uint32())
			}
			if f.Decode(vals, block); finite(vals) || try == 20 {
				break
			}
		}
	}
	for i := n; i < len(b); i += n {
		copy(b[i:], b[:n])
	}
}

func finite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
