package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"

	"outcrop/gpu"
)

// CPU gives the processor as a device of first light: its memory is RAM, its
// kernels are computed by several goroutines and compared with one. More kernels,
// such as the engine's own products at every level of assembly, can be given.
func CPU(m gpu.Machine, more ...Kernel) Device {
	name := m.Host.CPU.Name
	if name == "" {
		name = "CPU"
	}
	return &cpu{name: name, mem: m.Host.Available().Or(0), more: more}
}

type cpu struct {
	name string
	mem  int64
	more []Kernel
}

func (c *cpu) Name() string   { return c.name }
func (c *cpu) Driver() string { return runtime.Version() + " " + runtime.GOARCH }
func (c *cpu) PCI() gpu.PCI   { return "" }
func (c *cpu) Memory() int64  { return c.mem }

func (c *cpu) Alloc(_ context.Context, _ Space, n int64) (Buffer, error) {
	if n <= 0 || c.mem > 0 && n > c.mem {
		return nil, fmt.Errorf("allocate %d bytes of RAM: %d available", n, c.mem)
	}
	p, free, err := pages(n)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of RAM: %w", n, err)
	}
	return &ram{p, free}, nil
}

func (c *cpu) Launch(context.Context) error {
	var b [4]byte
	done := make(chan struct{})
	go func() { binary.LittleEndian.PutUint32(b[:], 1); close(done) }()
	<-done
	if binary.LittleEndian.Uint32(b[:]) != 1 {
		return fmt.Errorf("read-back is wrong")
	}
	return nil
}

func (c *cpu) Kernels() []Kernel {
	return append([]Kernel{dotF32{}, dotQ8{}, softmax{}, norm{}}, c.more...)
}

type ram struct {
	p    []byte
	free func() error
}

func (r *ram) Size() int64 { return int64(len(r.p)) }
func (r *ram) Free() error {
	if r.p == nil {
		return nil
	}
	r.p = nil
	return r.free()
}
func (r *ram) Write(off int64, p []byte) error {
	if off < 0 || off+int64(len(p)) > int64(len(r.p)) {
		return fmt.Errorf("write of %d bytes at %d is outside a buffer of %d", len(p), off, len(r.p))
	}
	copy(r.p[off:], p)
	return nil
}
func (r *ram) Read(off int64, p []byte) error {
	if off < 0 || off+int64(len(p)) > int64(len(r.p)) {
		return fmt.Errorf("read of %d bytes at %d is outside a buffer of %d", len(p), off, len(r.p))
	}
	copy(p, r.p[off:])
	return nil
}

const (
	rows = 64
	cols = 512
)

// inputs makes the same numbers in -1..1 at every call.
func inputs(n int, seed uint64) []float32 {
	p := make([]byte, n*2)
	fill(p, seed)
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(int16(binary.LittleEndian.Uint16(p[2*i:]))) / 32768
	}
	return out
}

// parallel computes row results on all processors; every row is one goroutine's
// work, so the bytes do not depend on their number.
func parallel(n int, row func(i int)) {
	w := max(1, min(runtime.GOMAXPROCS(0), n))
	var wg sync.WaitGroup
	for k := range w {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := k; i < n; i += w {
				row(i)
			}
		}()
	}
	wg.Wait()
}

// compare gives the bytes of got and its error against want.
func compare(got []float32, want []float64) ([]byte, float64) {
	out := make([]byte, 4*len(got))
	var num, den float64
	for i, g := range got {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(g))
		d := float64(g) - want[i]
		num += d * d
		den += want[i] * want[i]
	}
	return out, math.Sqrt(num / max(den, 1e-30))
}

// dotF32 is a matrix times a vector in float32, against float64.
type dotF32 struct{}

func (dotF32) Name() string { return "product float32" }
func (dotF32) Run(context.Context) ([]byte, float64, float64, error) {
	w, x := inputs(rows*cols, 11), inputs(cols, 12)
	got, want := make([]float32, rows), make([]float64, rows)
	parallel(rows, func(r int) {
		var a, b, c, d float32
		for i := 0; i < cols; i += 4 {
			a += w[r*cols+i] * x[i]
			b += w[r*cols+i+1] * x[i+1]
			c += w[r*cols+i+2] * x[i+2]
			d += w[r*cols+i+3] * x[i+3]
		}
		got[r] = a + b + c + d
	})
	for r := range rows {
		for i := range cols {
			want[r] += float64(w[r*cols+i]) * float64(x[i])
		}
	}
	out, e := compare(got, want)
	return out, e, 1e-5, nil
}

// dotQ8 is a product of 8-bit blocks with one scale per 32 values, as GGUF's
// Q8_0, against the same integers in float64.
type dotQ8 struct{}

func (dotQ8) Name() string { return "product 8-bit blocks" }
func (dotQ8) Run(context.Context) ([]byte, float64, float64, error) {
	const block = 32
	q, s := make([]byte, rows*cols), inputs(rows*cols/block, 21)
	fill(q, 22)
	x := make([]byte, cols)
	fill(x, 23)
	got, want := make([]float32, rows), make([]float64, rows)
	sum := func(r, b int) int32 {
		var t int32
		for i := range block {
			t += int32(int8(q[r*cols+b*block+i])) * int32(int8(x[b*block+i]))
		}
		return t
	}
	parallel(rows, func(r int) {
		for b := range cols / block {
			got[r] += s[r*cols/block+b] * float32(sum(r, b))
		}
	})
	for r := range rows {
		for b := range cols / block {
			want[r] += float64(s[r*cols/block+b]) * float64(sum(r, b))
		}
	}
	out, e := compare(got, want)
	return out, e, 1e-5, nil
}

// softmax over each row.
type softmax struct{}

func (softmax) Name() string { return "softmax" }
func (softmax) Run(context.Context) ([]byte, float64, float64, error) {
	x := inputs(rows*cols, 31)
	got, want := make([]float32, rows*cols), make([]float64, rows*cols)
	parallel(rows, func(r int) {
		p := got[r*cols : (r+1)*cols]
		m := float32(math.Inf(-1))
		for _, v := range x[r*cols : (r+1)*cols] {
			m = max(m, v)
		}
		var sum float32
		for i, v := range x[r*cols : (r+1)*cols] {
			p[i] = float32(math.Exp(float64(v - m)))
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
	})
	for r := range rows {
		var sum float64
		for i := range cols {
			want[r*cols+i] = math.Exp(float64(x[r*cols+i]))
			sum += want[r*cols+i]
		}
		for i := range cols {
			want[r*cols+i] /= sum
		}
	}
	out, e := compare(got, want)
	return out, e, 1e-5, nil
}

// norm is the root mean square norm of each row.
type norm struct{}

func (norm) Name() string { return "rms norm" }
func (norm) Run(context.Context) ([]byte, float64, float64, error) {
	x := inputs(rows*cols, 41)
	got, want := make([]float32, rows*cols), make([]float64, rows*cols)
	parallel(rows, func(r int) {
		var s float32
		for _, v := range x[r*cols : (r+1)*cols] {
			s += v * v
		}
		k := float32(1 / math.Sqrt(float64(s)/cols+1e-6))
		for i, v := range x[r*cols : (r+1)*cols] {
			got[r*cols+i] = v * k
		}
	})
	for r := range rows {
		var s float64
		for _, v := range x[r*cols : (r+1)*cols] {
			s += float64(v) * float64(v)
		}
		k := 1 / math.Sqrt(s/cols+1e-6)
		for i := range cols {
			want[r*cols+i] = float64(x[r*cols+i]) * k
		}
	}
	out, e := compare(got, want)
	return out, e, 1e-5, nil
}
