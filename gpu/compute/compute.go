// Package compute runs kernels on graphics cards. It knows memory, copies and
// launches; it does not know models.
//
// A Driver is one API (cuda, levelzero, opencl, fake). Open gives a Device:
// one card, one context. A Device owns one goroutine, locked to one thread,
// and everything that touches the card happens there, in order, inside Do. Only
// compilers run beside it (build.go).
// Several cards are several Devices; never one context over two (GSD-12641
// shows what that costs).
//
// Every wait is bounded by a watchdog. A card that does not answer is reported
// as ErrHung and never asked again; the process goes on.
package compute

import (
	"fmt"
	"time"
)

// Driver finds and opens the devices of one API.
type Driver interface {
	// Name is the word that settings and logs use: cuda, levelzero, opencl, fake.
	Name() string
	// Devices lists what the API offers. No library, no device: an empty list
	// and the reason as an error of kind ErrNoDriver or ErrNoDevice.
	Devices() ([]Info, error)

	open(i Info, o Options) (backend, error)
}

// Drivers lists the real drivers, preferred ones first. The same card may be
// offered by several; Info.PCI tells.
func Drivers() []Driver {
	return []Driver{CUDA(), LevelZero(), OpenCL()}
}

// Info is what a driver says of a device. Zero means unknown.
type Info struct {
	Driver   string // the driver's Name
	Index    int    // place in the driver's own list
	Name     string // "NVIDIA H200", "Intel(R) Arc(TM) A770 Graphics"
	Vendor   uint32 // PCI vendor id
	Platform string // OpenCL platform name, else empty
	Version  string // version of the user-mode driver
	API      string // version of the interface, "OpenCL 3.0", "CUDA 13.0"
	PCI      string // "0000:03:00.0", empty when the driver does not tell
	CPU      bool   // the device is the host's processor (PoCL)

	Memory   int64 // bytes of device memory
	MaxAlloc int64 // bytes of the largest single allocation
	Local    int64 // bytes of local (shared) memory of a work-group
	Align    int64 // bytes: slices of a buffer start at multiples of it
	Units    int   // compute units, multiprocessors, Xe cores
	MaxGroup int   // work-items of the largest work-group

	// Features are the macros that the kernel text is built with, see
	// gpu/kernels.
	Features Features
}

// Features are the optional powers of a device that kernels make use of.
type Features struct {
	Nvidia int  // inline PTX for this compute capability times ten (61, 90); 0: no
	Intel  int  // cl_intel_subgroups, with subgroups of this size (8, 16); 0: no
	DPAS   bool // cl_intel_subgroup_matrix_multiply_accumulate
}

// Lanes is how many work-items make a wave in kernels (common.cl).
func (f Features) Lanes() int {
	if f.Intel > 0 {
		return f.Intel
	}
	return 32
}

// String names the device for people.
func (i Info) String() string {
	s := i.Name + " (" + i.Driver
	if i.PCI != "" {
		s += " " + i.PCI
	}
	return s + ")"
}

// Options of Open. The zero value is good.
type Options struct {
	// Watchdog is the longest that Do may take, from its start. 0: 60 s.
	Watchdog time.Duration
	// Build is the longest that loading one module may take. 0: 10 minutes.
	Build time.Duration
	// Builders is how many modules are compiled at once. 0: one for each processor,
	// at most 16; one where the device is the processor.
	Builders int
	// Cache is a folder for compiled kernels. Empty: nothing is kept.
	Cache string
	// Overlap lets kernels start before the one before them has ended, on NVIDIA
	// cards of capability 9.0 through CUDA: 5 to 7 % more tokens a second of a 1.5B
	// model, the same ids. Products read weights ahead, see Queue.Fence.
	Overlap bool
	// Plain compiles without optimisation: a quarter of the compile time, for
	// tests on slow compilers.
	Plain bool
	// Skip leaves the launches of a kernel out when it says so, for measurements of
	// what each is worth. nil: none.
	Skip func(kernel string) bool
}

func (o Options) defaults() Options {
	if o.Watchdog == 0 {
		o.Watchdog = 60 * time.Second
	}
	if o.Build == 0 {
		o.Build = 10 * time.Minute
	}
	return o
}

const (
	// ChunkLimit is the largest piece that is asked of a device at once. Intel
	// cards before Xe2 refuse 4 GiB minus 8 KiB and more (NEO, issue #1545).
	ChunkLimit = 4<<30 - 1<<20
	// HostLimit is the same for pinned host memory: zeMemAllocHost gives null
	// at 4 GiB even with relaxed limits (issue #1545), so stay well below.
	HostLimit = 2 << 30
)

// handle is a driver's own reference: a cl_mem, a device pointer, a module.
type handle uintptr

// backend is what a driver implements. Every call but those that say otherwise
// comes from the device's one goroutine, so none of it locks. Copies and launches may
// be asynchronous but keep their order; finish waits for all of them.
type backend interface {
	memory() (free, total int64, known bool)

	alloc(n int64) (handle, error)
	// slice gives a handle for n bytes at off of an allocation; release undoes it.
	slice(base handle, off, n int64) (handle, error)
	release(slice handle)
	free(base handle)
	// pin gives n bytes of host memory that the device can copy from directly,
	// and the token that unpin wants.
	pin(n int64) (mem []byte, token handle, err error)
	unpin(token handle)
	// adopt lets the device copy directly from and to whole pages of host memory,
	// which other devices may have adopted too; ErrNotShared where it cannot.
	adopt(mem []byte) (token handle, err error)
	unadopt(token handle)

	// attach readies a thread other than the device's for build and kernel, which
	// come from such threads alone, several at once; detach undoes it.
	attach() (detach func(), err error)
	build(src source) (handle, error)
	kernel(program handle, name string) (handle, error)
	unbuild(program handle)
	unkernel(k handle)

	// write and read copy between host memory that stays valid until finish
	// and device memory.
	write(dst handle, off int64, src []byte) error
	read(dst []byte, src handle, off int64) error
	copy(dst handle, doff int64, src handle, soff, n int64) error
	fill(dst handle, off, n int64, value byte) error
	launch(l *launch) error
	// mark notes a point in the queue, settle waits for it, in a fixed number
	// of places (0 or 1).
	mark(place int) error
	settle(place int) error
	finish() error

	// record starts taking down launches and copies instead of running them;
	// recorded ends that and gives a handle for replay.
	record() error
	recorded() (handle, error)
	replay(sequence handle) error
	unrecord(sequence handle)

	close()
}

// launch is one kernel start. Groups times Local work-items run.
type launch struct {
	kernel handle
	name   string
	groups [3]uint32
	local  [3]uint32
	args   []Arg
	// overlap: the kernel waits by itself for what was enqueued before it, so it
	// may be started early where the API has that.
	overlap bool
}

func (l *launch) check(max int) error {
	n := 1
	for i := range 3 {
		if l.groups[i] == 0 || l.local[i] == 0 {
			return fmt.Errorf("launch %s: groups %v of %v work-items", l.name, l.groups, l.local)
		}
		n *= int(l.local[i])
	}
	if max > 0 && n > max {
		return fmt.Errorf("launch %s: work-group of %d work-items, the device allows %d", l.name, n, max)
	}
	return nil
}
