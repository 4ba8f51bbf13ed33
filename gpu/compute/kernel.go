package compute

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"outcrop/gpu/kernels"
)

// source is a module together with what it is compiled for.
type source struct {
	kernels.Module
	features Features
	cache    string
	plain    bool
}

// text is the whole source.
func (s source) text() string { return s.Text }

// options are the compiler's: the language, the module's macros and what the
// device has. Math stays IEEE about NaN and infinity, as a broken result must
// be seen and not optimised away.
func (s source) options() string {
	o := []string{"-cl-std=CL1.2", "-cl-mad-enable"}
	if s.plain {
		o = append(o, "-cl-opt-disable")
	}
	for _, d := range s.Defines {
		o = append(o, "-D"+d)
	}
	f := s.features
	if f.Nvidia > 0 {
		o = append(o, fmt.Sprintf("-DNVIDIA=%d", f.Nvidia))
	}
	if f.Intel > 0 {
		o = append(o, fmt.Sprintf("-DINTEL=%d", f.Intel))
		if s.Large {
			o = append(o, "-cl-intel-256-GRF-per-thread")
		}
	}
	if f.DPAS {
		o = append(o, "-DDPAS=1")
	}
	return strings.Join(o, " ")
}

// Program is a module that is compiled, or will be.
type Program struct {
	dev     *Device
	name    string
	mod     kernels.Module
	waits   bool // kernels.Module.Waits
	urgency Urgency
	running bool          // the compiler has begun; guarded by builder.mu
	done    chan struct{} // closed when ref or err is there
	err     error

	mu      sync.Mutex
	ref     handle
	kernels map[string]*Kernel
	taken   bool // those that were asked for by then have their references
	freed   bool
}

// Kernel is one entry of a program.
type Kernel struct {
	dev  *Device
	name string
	ref  atomic.Uintptr // 0: not there yet
	err  error          // why there is none; guarded by prog.mu
	prog *Program
}

// Name is the kernel's name in the source.
func (k *Kernel) Name() string { return k.name }

// Kernel takes a kernel by name; the same name gives the same Kernel.
func (p *Program) Kernel(name string) (*Kernel, error) {
	if err := p.Wait(context.Background()); err != nil {
		return nil, err
	}
	k := p.Entry(name)
	if _, err := k.handle(); err != nil {
		return nil, err
	}
	return k, nil
}

// Entry is Kernel without waiting for the compiler: the first launch does that.
func (p *Program) Entry(name string) *Kernel {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kernels[name]
	if k == nil {
		k = &Kernel{dev: p.dev, name: name, prog: p}
		p.kernels[name] = k
		// Before its end the compiler's thread takes all that are there.
		if p.taken {
			done := make(chan struct{})
			go func() {
				defer close(done)
				k.err = p.dev.aside(func() error { return k.take(p.ref) })
			}()
			<-done
		}
	}
	return k
}

// takeAll finds the kernels that were asked for so far.
func (p *Program) takeAll(ref handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kernels {
		k.err = k.take(ref)
	}
	p.ref, p.taken = ref, true
}

func (k *Kernel) take(ref handle) error {
	h, err := k.dev.back.kernel(ref, k.name)
	if err != nil {
		return fmt.Errorf("kernel %s of %s: %w", k.name, k.prog.name, err)
	}
	k.ref.Store(uintptr(h))
	return nil
}

// handle gives the backend's reference; the device's goroutine waits here for
// the compiler when it must.
func (k *Kernel) handle() (handle, error) {
	if h := k.ref.Load(); h != 0 {
		return handle(h), nil
	}
	d := k.dev
	if !k.prog.ended() {
		d.waiting.Store(true)
		err := k.prog.Wait(context.Background())
		d.waited.Add(1)
		d.waiting.Store(false)
		if err != nil {
			return 0, err
		}
	}
	if err := k.prog.err; err != nil {
		return 0, err
	}
	k.prog.mu.Lock()
	defer k.prog.mu.Unlock()
	return handle(k.ref.Load()), k.err
}

func (p *Program) free() {
	if p.freed || !p.ended() || p.err != nil {
		return
	}
	p.freed = true
	for _, k := range p.kernels {
		if h := k.ref.Load(); h != 0 {
			p.dev.back.unkernel(handle(h))
		}
	}
	p.dev.back.unbuild(p.ref)
}

// Arg is one kernel argument, in the order of the kernel's parameters.
type Arg struct {
	buf  *Buffer
	val  [8]byte
	size uint8 // of val; 0 for a buffer
}

// Mem passes a buffer.
func Mem(b *Buffer) Arg { return Arg{buf: b} }

// Int passes an int.
func Int(v int) Arg {
	a := Arg{size: 4}
	binary.LittleEndian.PutUint32(a.val[:], uint32(int32(v)))
	return a
}

// Long passes a long or ulong.
func Long(v int64) Arg {
	a := Arg{size: 8}
	binary.LittleEndian.PutUint64(a.val[:], uint64(v))
	return a
}

// Float passes a float.
func Float(v float32) Arg {
	a := Arg{size: 4}
	binary.LittleEndian.PutUint32(a.val[:], math.Float32bits(v))
	return a
}

// Dim is a count of work-groups or work-items in up to three dimensions. Zero
// counts as one.
type Dim struct{ X, Y, Z int }

func (d Dim) three() [3]uint32 {
	return [3]uint32{uint32(max(d.X, 1)), uint32(max(d.Y, 1)), uint32(max(d.Z, 1))}
}
