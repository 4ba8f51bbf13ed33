package compute

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"
)

// Fake is a driver whose devices live in memory and whose kernels are Go
// functions. It proves code above it on machines without a card, and breaks on
// order.
type Fake struct {
	// Count of devices; 0 means one.
	Count int
	// Memory of each device in bytes; 0 means 1 GiB.
	Memory int64
	// MaxAlloc is the largest allocation; 0 means a quarter of Memory.
	MaxAlloc int64
	// Kernels by name. Any module may hold any of them.
	Kernels map[string]FakeKernel
	// Other, when set, stands for every kernel that is not in Kernels: with one
	// that does nothing, whole programs run for the sake of their calls.
	Other FakeKernel

	mu                     sync.Mutex
	fault                  Fault
	open_                  []*fakeBackend
	builds, together, most int
}

// Builds counts the modules that were built, and the most that were at once.
func (f *Fake) Builds() (all, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.builds, f.most
}

// Fault says what breaks, on every device of the Fake.
type Fault struct {
	AllocOver   int64         // allocations fail once this many bytes are held; 0: never
	AllocFails  int           // the n-th allocation from now fails; 0: none
	PinFails    bool          // pinned memory is refused
	NoShare     bool          // host memory cannot be shared
	CopyFails   int           // the n-th copy from now fails; 0: none
	LostAfter   int           // the device is lost at the n-th launch from now; 0: never
	LostCopy    int           // the same at the n-th copy from now; 0: never
	NaN         string        // after this kernel its last buffer argument holds NaN
	Hang        string        // this kernel takes HangFor
	HangFor     time.Duration // with Hang
	BuildFails  string        // a module of this name does not build
	BuildTakes  time.Duration // how long a module takes
	OpenFails   bool          // the context cannot be made
	Bits        string        // after this kernel one bit of its last buffer argument is wrong
	NoMemoryAPI bool          // free memory is not reported
}

// FakeKernel is a kernel in Go. It runs once a launch and covers all groups.
type FakeKernel func(c *FakeCall) error

// FakeCall is one launch as a FakeKernel sees it.
type FakeCall struct {
	Name          string
	Groups, Local [3]uint32
	args          []fakeArg
}

type fakeArg struct {
	mem  []byte
	val  [8]byte
	size uint8
}

// Bytes gives buffer argument i.
func (c *FakeCall) Bytes(i int) []byte { return c.args[i].mem }

// Int gives int argument i.
func (c *FakeCall) Int(i int) int { return int(int32(binary.LittleEndian.Uint32(c.args[i].val[:]))) }

// Long gives long argument i.
func (c *FakeCall) Long(i int) int64 { return int64(binary.LittleEndian.Uint64(c.args[i].val[:])) }

// Float gives float argument i.
func (c *FakeCall) Float(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(c.args[i].val[:]))
}

// Len is the number of arguments.
func (c *FakeCall) Len() int { return len(c.args) }

// Name is "fake".
func (f *Fake) Name() string { return "fake" }

// Break sets what breaks from now on.
func (f *Fake) Break(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Live counts what open devices hold: allocations, slices, pinned pieces,
// programs, kernels and sequences that were not given back, closed devices
// included.
func (f *Fake) Live() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, b := range f.open_ {
		n += b.live
	}
	return n
}

// Devices lists the devices.
func (f *Fake) Devices() ([]Info, error) {
	mem := f.Memory
	if mem == 0 {
		mem = 1 << 30
	}
	most := f.MaxAlloc
	if most == 0 {
		most = mem / 4
	}
	var list []Info
	for i := range max(f.Count, 1) {
		list = append(list, Info{
			Driver: "fake", Index: i, Name: fmt.Sprintf("fake card %d", i), Version: "1", API: "fake 1",
			PCI: fmt.Sprintf("0000:f%x:00.0", i), Memory: mem, MaxAlloc: most,
			Local: 64 << 10, Align: 256, Units: 4, MaxGroup: 1024,
		})
	}
	return list, nil
}

func (f *Fake) open(i Info, _ Options) (backend, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault.OpenFails {
		return nil, &Error{API: "fake", Call: "open", Code: -1, Name: "FAKE_OPEN", Kind: ErrNoDevice}
	}
	b := &fakeBackend{f: f, info: i, next: 1, mem: map[handle]fakeMem{}, names: map[handle]string{}, seqs: map[handle][]func() error{}}
	f.open_ = append(f.open_, b)
	return b, nil
}

type fakeMem struct {
	bytes []byte
	slice bool
}

type fakeBackend struct {
	f     *Fake
	info  Info
	mu    sync.Mutex // of next and names
	next  handle
	held  int64
	live  int
	lost  bool
	mem   map[handle]fakeMem
	newer []handle // slices, in the order of making
	mixed int      // slices that were given back before a newer one
	names map[handle]string
	seqs  map[handle][]func() error
	rec   []func() error
	inRec bool
}

func (b *fakeBackend) id() handle {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	return b.next
}

func (b *fakeBackend) count(by int) {
	b.f.mu.Lock()
	b.live += by
	b.f.mu.Unlock()
}

func (b *fakeBackend) now() Fault {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	return b.f.fault
}

func fakeError(call, name string, kind error) error {
	return &Error{API: "fake", Call: call, Code: -1, Name: name, Kind: kind}
}

func (b *fakeBackend) memory() (free, total int64, known bool) {
	return b.info.Memory - b.held, b.info.Memory, !b.now().NoMemoryAPI
}

func (b *fakeBackend) alloc(n int64) (handle, error) {
	b.f.mu.Lock()
	over, nth := b.f.fault.AllocOver, b.f.fault.AllocFails
	if nth > 0 {
		b.f.fault.AllocFails--
	}
	b.f.mu.Unlock()
	if b.lost {
		return 0, fakeError("alloc", "FAKE_LOST", ErrLost)
	}
	if b.held+n > b.info.Memory || over > 0 && b.held+n > over || nth == 1 {
		return 0, fakeError("alloc", "FAKE_OUT_OF_MEMORY", ErrMemory)
	}
	b.held += n
	h := b.id()
	mem := make([]byte, n)
	for i := range mem {
		mem[i] = 0xa5 // nobody may count on zeros
	}
	b.mem[h] = fakeMem{bytes: mem}
	b.count(1)
	return h, nil
}

func (b *fakeBackend) slice(base handle, off, n int64) (handle, error) {
	h := b.id()
	b.mem[h] = fakeMem{bytes: b.mem[base].bytes[off : off+n : off+n], slice: true}
	b.newer = append(b.newer, h)
	b.count(1)
	return h, nil
}

func (b *fakeBackend) release(h handle) {
	if n := len(b.newer) - 1; n >= 0 && b.newer[n] == h {
		b.newer = b.newer[:n]
	} else {
		b.mixed++
	}
	delete(b.mem, h)
	b.count(-1)
}

func (b *fakeBackend) free(h handle) {
	b.held -= int64(len(b.mem[h].bytes))
	delete(b.mem, h)
	b.count(-1)
}

func (b *fakeBackend) pin(n int64) ([]byte, handle, error) {
	if b.now().PinFails {
		return nil, 0, fakeError("pin", "FAKE_OUT_OF_HOST_MEMORY", ErrMemory)
	}
	b.count(1)
	return make([]byte, n), b.id(), nil
}

func (b *fakeBackend) unpin(handle) { b.count(-1) }

func (b *fakeBackend) adopt([]byte) (handle, error) {
	switch f := b.now(); {
	case b.lost:
		return 0, fakeError("adopt", "FAKE_LOST", ErrLost)
	case f.NoShare:
		return 0, ErrNotShared
	case f.PinFails:
		return 0, fakeError("adopt", "FAKE_OUT_OF_HOST_MEMORY", ErrMemory)
	}
	b.count(1)
	return b.id(), nil
}

func (b *fakeBackend) unadopt(handle) { b.count(-1) }

func (b *fakeBackend) attach() (func(), error) { return func() {}, nil }

func (b *fakeBackend) build(src source) (handle, error) {
	b.f.mu.Lock()
	b.f.builds++
	b.f.together++
	b.f.most = max(b.f.most, b.f.together)
	slow := b.f.fault.BuildTakes
	b.f.mu.Unlock()
	time.Sleep(slow)
	b.f.mu.Lock()
	b.f.together--
	b.f.mu.Unlock()
	if b.now().BuildFails == src.Name {
		return 0, &Error{API: "fake", Call: "build", Code: -11, Name: "FAKE_BUILD", Kind: ErrBuild, Detail: src.Name + ":1: error: as ordered"}
	}
	b.count(1)
	return b.id(), nil
}

func (b *fakeBackend) unbuild(handle) { b.count(-1) }

func (b *fakeBackend) kernel(_ handle, name string) (handle, error) {
	if b.f.Kernels[name] == nil && b.f.Other == nil {
		return 0, fakeError("kernel", "FAKE_NOT_FOUND", ErrMissing)
	}
	h := b.id()
	b.mu.Lock()
	b.names[h] = name
	b.mu.Unlock()
	b.count(1)
	return h, nil
}

func (b *fakeBackend) unkernel(h handle) {
	b.mu.Lock()
	delete(b.names, h)
	b.mu.Unlock()
	b.count(-1)
}

// enqueue runs op now, or takes it down.
func (b *fakeBackend) enqueue(op func() error) error {
	if b.inRec {
		b.rec = append(b.rec, op)
		return nil
	}
	if b.lost {
		return fakeError("enqueue", "FAKE_LOST", ErrLost)
	}
	return op()
}

func (b *fakeBackend) copyFault() error {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	if n := b.f.fault.LostCopy; n > 0 {
		b.f.fault.LostCopy--
		if b.lost = n == 1; b.lost {
			return fakeError("copy", "FAKE_LOST", ErrLost)
		}
	}
	if n := b.f.fault.CopyFails; n > 0 {
		b.f.fault.CopyFails--
		if n == 1 {
			return fakeError("copy", "FAKE_COPY", nil)
		}
	}
	return nil
}

func (b *fakeBackend) write(dst handle, off int64, src []byte) error {
	to := b.mem[dst].bytes[off:]
	return b.enqueue(func() error {
		if err := b.copyFault(); err != nil {
			return err
		}
		copy(to, src)
		return nil
	})
}

func (b *fakeBackend) read(dst []byte, src handle, off int64) error {
	from := b.mem[src].bytes[off:]
	return b.enqueue(func() error {
		if err := b.copyFault(); err != nil {
			return err
		}
		copy(dst, from)
		return nil
	})
}

func (b *fakeBackend) copy(dst handle, doff int64, src handle, soff, n int64) error {
	to, from := b.mem[dst].bytes[doff:doff+n], b.mem[src].bytes[soff:soff+n]
	return b.enqueue(func() error {
		if err := b.copyFault(); err != nil {
			return err
		}
		copy(to, from)
		return nil
	})
}

func (b *fakeBackend) fill(dst handle, off, n int64, value byte) error {
	to := b.mem[dst].bytes[off : off+n]
	return b.enqueue(func() error {
		for i := range to {
			to[i] = value
		}
		return nil
	})
}

func (b *fakeBackend) launch(l *launch) error {
	b.mu.Lock()
	name := b.names[l.kernel]
	b.mu.Unlock()
	c := &FakeCall{Name: name, Groups: l.groups, Local: l.local, args: make([]fakeArg, len(l.args))}
	last := -1
	for i, a := range l.args {
		c.args[i] = fakeArg{val: a.val, size: a.size}
		if a.size == 0 {
			c.args[i].mem = b.mem[a.buf.ref].bytes
			last = i
		}
	}
	return b.enqueue(func() error { return b.runKernel(c, last) })
}

func (b *fakeBackend) runKernel(c *FakeCall, last int) error {
	b.f.mu.Lock()
	fault := b.f.fault
	if n := fault.LostAfter; n > 0 {
		b.f.fault.LostAfter--
		b.lost = n == 1
	}
	b.f.mu.Unlock()
	if b.lost {
		return fakeError("launch", "FAKE_LOST", ErrLost)
	}
	if fault.Hang == c.Name {
		time.Sleep(fault.HangFor)
	}
	run := b.f.Kernels[c.Name]
	if run == nil {
		run = b.f.Other
	}
	if err := run(c); err != nil {
		return err
	}
	if last >= 0 && fault.NaN == c.Name {
		out := c.args[last].mem
		for i := 0; i+4 <= len(out); i += 4 {
			binary.LittleEndian.PutUint32(out[i:], 0x7fc00000)
		}
	}
	if last >= 0 && fault.Bits == c.Name {
		c.args[last].mem[0] ^= 0x40
	}
	return nil
}

func (b *fakeBackend) mark(int) error   { return nil }
func (b *fakeBackend) settle(int) error { return nil }

func (b *fakeBackend) finish() error {
	if b.lost {
		return fakeError("finish", "FAKE_LOST", ErrLost)
	}
	return nil
}

func (b *fakeBackend) record() error { b.rec, b.inRec = nil, true; return nil }

func (b *fakeBackend) recorded() (handle, error) {
	b.inRec = false
	h := b.id()
	b.seqs[h] = b.rec
	b.rec = nil
	b.count(1)
	return h, nil
}

func (b *fakeBackend) replay(h handle) error {
	for _, op := range b.seqs[h] {
		if err := b.enqueue(op); err != nil {
			return err
		}
	}
	return nil
}

func (b *fakeBackend) unrecord(h handle) { delete(b.seqs, h); b.count(-1) }

func (b *fakeBackend) close() { b.mem, b.seqs, b.names = nil, nil, nil }
