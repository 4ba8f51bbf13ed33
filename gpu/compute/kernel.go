package compute

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

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

// Program is a compiled module.
type Program struct {
	dev     *Device
	name    string
	ref     handle
	kernels map[string]*Kernel
	waits   bool // kernels.Module.Waits
	freed   bool
}

// Kernel is one entry of a program.
type Kernel struct {
	dev  *Device
	name string
	ref  handle
	prog *Program
}

// Name is the kernel's name in the source.
func (k *Kernel) Name() string { return k.name }

// Kernel takes a kernel by name; the same name gives the same Kernel.
func (p *Program) Kernel(name string) (*Kernel, error) {
	var k *Kernel
	err := p.dev.run(p.dev.opts.Build, func() error {
		if k = p.kernels[name]; k != nil {
			return nil
		}
		ref, err := p.dev.back.kernel(p.ref, name)
		if err != nil {
			return err
		}
		k = &Kernel{dev: p.dev, name: name, ref: ref, prog: p}
		p.kernels[name] = k
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("kernel %s of %s: %w", name, p.name, err)
	}
	return k, nil
}

func (p *Program) free() {
	if p.freed {
		return
	}
	p.freed = true
	for _, k := range p.kernels {
		p.dev.back.unkernel(k.ref)
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
