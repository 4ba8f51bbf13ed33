package compute

import (
	"fmt"
	"os"
	"regexp"
	"sync"
	"unsafe"
)

// CUDA is the driver for NVIDIA cards: the driver API alone, no toolkit.
// Kernels are the OpenCL text, made to PTX ahead of time, or by NVIDIA's own OpenCL
// compiler those that were not.
func CUDA() Driver { return cudaDriver{} }

type cudaDriver struct{}

func (cudaDriver) Name() string { return "cuda" }

func (cudaDriver) Devices() ([]Info, error) {
	cu, err := loadCUDA()
	if err != nil {
		return nil, err
	}
	var n int32
	if code := cu.deviceCount(&n); code != 0 {
		return nil, cu.status("cuDeviceGetCount", code)
	}
	if n == 0 {
		return nil, fmt.Errorf("CUDA: %w", ErrNoDevice)
	}
	var list []Info
	for i := range n {
		info, err := cu.describe(i)
		if err != nil {
			return list, err
		}
		list = append(list, info)
	}
	return list, nil
}

func (c *cudaAPI) describe(i int32) (Info, error) {
	var dev int32
	if code := c.deviceGet(&dev, i); code != 0 {
		return Info{}, c.status("cuDeviceGet", code)
	}
	attr := func(what int32) int {
		var v int32
		c.deviceAttr(&v, what, dev)
		return int(v)
	}
	name := make([]byte, 256)
	if code := c.deviceName(&name[0], int32(len(name)), dev); code != 0 {
		return Info{}, c.status("cuDeviceGetName", code)
	}
	var mem uintptr
	if code := c.deviceMemory(&mem, dev); code != 0 {
		return Info{}, c.status("cuDeviceTotalMem", code)
	}
	var v int32
	c.driverVersion(&v)
	info := Info{
		Driver: "cuda", Index: int(i), Name: cString(name), Vendor: 0x10de,
		Version: nvidiaVersion(), API: fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10),
		PCI:    fmt.Sprintf("%04x:%02x:%02x.0", attr(cuAttrDomain), attr(cuAttrBus), attr(cuAttrSlot)),
		Memory: int64(mem), MaxAlloc: int64(mem), Local: int64(attr(cuAttrLocal)), Align: 256,
		Units: attr(cuAttrUnits), MaxGroup: attr(cuAttrMaxGroup),
	}
	if sm := 10*attr(cuAttrMajor) + attr(cuAttrMinor); sm >= 61 { // dp4a
		info.Features.Nvidia = sm
	}
	return info, nil
}

var versionInText = regexp.MustCompile(`\d{3}\.\d+(\.\d+)?`)

// nvidiaVersion is the version of the kernel driver, which the user-mode driver
// must equal; empty where it cannot be read.
func nvidiaVersion() string {
	b, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	return versionInText.FindString(string(b))
}

func (cudaDriver) open(i Info, o Options) (backend, error) {
	cu, err := loadCUDA()
	if err != nil {
		return nil, err
	}
	if i.Features.Nvidia == 0 {
		return nil, fmt.Errorf("%s: %w: compute capability 6.1 is needed for integer dot products", i.Name, ErrNoDevice)
	}
	b := &cudaBackend{cu: cu, info: i, opts: o, seqs: map[handle]*cudaSequence{}, hosts: map[handle]bool{}}
	if code := cu.deviceGet(&b.dev, int32(i.Index)); code != 0 {
		return nil, cu.status("cuDeviceGet", code)
	}
	if code := cu.ctxRetain(&b.ctx, b.dev); code != 0 {
		return nil, cu.status("cuDevicePrimaryCtxRetain", code)
	}
	fail := func(call string, code int32) error {
		cu.ctxRelease(b.dev)
		return cu.status(call, code)
	}
	// Contexts belong to threads; this one is the device's own.
	if code := cu.ctxSet(b.ctx); code != 0 {
		return nil, fail("cuCtxSetCurrent", code)
	}
	const nonBlocking = 1
	if code := cu.streamCreate(&b.stream, nonBlocking); code != 0 {
		return nil, fail("cuStreamCreate", code)
	}
	for k := range b.events {
		if code := cu.eventCreate(&b.events[k], cuEventNoTiming); code != 0 {
			return nil, fail("cuEventCreate", code)
		}
	}
	return b, nil
}

type cudaBackend struct {
	cu   *cudaAPI
	info Info
	opts Options

	dev         int32
	ctx, stream uintptr
	events      [2]uintptr
	marked      [2]bool
	bridge      sync.Once
	compiler    *openclBackend // NVIDIA's OpenCL, for PTX; nil until needed
	noCompiler  error
	seqs        map[handle]*cudaSequence
	hosts       map[handle]bool
	next        handle
	recording   *cudaSequence // when graphs are missing
	afterKernel bool          // the last thing enqueued was a kernel
	work        cudaWork
}

// cudaWork is memory that C reads during a launch. It lies on the heap, as a
// goroutine's stack may move.
type cudaWork struct {
	values [64][8]byte
	params [64]uintptr
	config cudaConfig
	attr   cudaAttribute
}

// cudaConfig is CUlaunchConfig.
type cudaConfig struct {
	grid, block [3]uint32
	shared      uint32
	stream      uintptr
	attrs       uintptr
	count       uint32
}

// cudaAttribute is CUlaunchAttribute: an id and a union of 64 bytes.
type cudaAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// cuOverlap is CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel
// may begin when the one before it lets it, and waits inside for its end.
const cuOverlap = 6

// cudaSequence is a graph; ops stand in for it on drivers without graphs.
type cudaSequence struct {
	graph, exec uintptr
	ops         []func() error
}

func (b *cudaBackend) memory() (free, total int64, known bool) {
	var f, t uintptr
	if b.cu.memInfo(&f, &t) != 0 {
		return 0, b.info.Memory, false
	}
	return int64(f), int64(t), true
}

func (b *cudaBackend) alloc(n int64) (handle, error) {
	var p uintptr
	code := b.cu.memAlloc(&p, uintptr(n))
	return handle(p), b.cu.status("cuMemAlloc", code)
}

func (b *cudaBackend) slice(base handle, off, _ int64) (handle, error) {
	return base + handle(off), nil
}

func (b *cudaBackend) release(handle) {}
func (b *cudaBackend) free(p handle)  { b.cu.memFree(uintptr(p)) }

func (b *cudaBackend) pin(n int64) ([]byte, handle, error) {
	var p uintptr
	if code := b.cu.hostAlloc(&p, uintptr(n), 0); code != 0 {
		return nil, 0, b.cu.status("cuMemHostAlloc", code)
	}
	return foreign(p, n), handle(p), nil
}

func (b *cudaBackend) unpin(p handle) { b.cu.hostFree(uintptr(p)) }

// cudaAdopted counts the contexts that use registered memory: registered as
// portable it is known to all of them, and registering it twice is an error.
var cudaAdopted = struct {
	sync.Mutex
	users map[uintptr]int
}{users: map[uintptr]int{}}

func (b *cudaBackend) adopt(mem []byte) (handle, error) {
	if b.cu.hostRegister == nil || b.cu.hostUnregister == nil {
		return 0, ErrNotShared
	}
	a := &cudaAdopted
	a.Lock()
	defer a.Unlock()
	p := uintptr(unsafe.Pointer(&mem[0]))
	if a.users[p] == 0 {
		const portable = 1
		if code := b.cu.hostRegister(p, uintptr(len(mem)), portable); code != 0 {
			return 0, b.cu.status("cuMemHostRegister", code)
		}
	}
	a.users[p]++
	return handle(p), nil
}

func (b *cudaBackend) unadopt(p handle) {
	a := &cudaAdopted
	a.Lock()
	defer a.Unlock()
	if a.users[uintptr(p)]--; a.users[uintptr(p)] <= 0 {
		delete(a.users, uintptr(p))
		b.cu.hostUnregister(uintptr(p))
	}
}

// attach makes the context that of the thread.
func (b *cudaBackend) attach() (func(), error) {
	if code := b.cu.ctxSet(b.ctx); code != 0 {
		return nil, b.cu.status("cuCtxSetCurrent", code)
	}
	return func() { b.cu.ctxSet(0) }, nil
}

// do runs op, or takes it down where graphs are missing. Stream capture takes
// down what is enqueued by itself.
func (b *cudaBackend) do(op func() error) error {
	b.afterKernel = false
	if b.recording != nil && b.recording.ops != nil {
		b.recording.ops = append(b.recording.ops, op)
		return nil
	}
	return op()
}

func (b *cudaBackend) launch(l *launch) error {
	if b.recording != nil && b.recording.ops != nil {
		own := *l
		own.args, own.overlap = append([]Arg(nil), l.args...), false
		return b.do(func() error { return b.start(&own) })
	}
	return b.start(l)
}

func (b *cudaBackend) start(l *launch) error {
	w := &b.work
	if len(l.args) > len(w.params) {
		return fmt.Errorf("%d arguments, at most %d", len(l.args), len(w.params))
	}
	for i := range l.args {
		a := &l.args[i]
		if a.size == 0 {
			*(*uintptr)(unsafe.Pointer(&w.values[i])) = uintptr(a.buf.ref)
		} else {
			w.values[i] = a.val
		}
		w.params[i] = uintptr(unsafe.Pointer(&w.values[i]))
	}
	overlap := l.overlap && b.afterKernel && b.cu.launchEx != 0 && b.info.Features.Nvidia >= 90
	b.afterKernel = true
	if overlap {
		w.config = cudaConfig{grid: l.groups, block: l.local, stream: b.stream, attrs: uintptr(unsafe.Pointer(&w.attr)), count: 1}
		w.attr.id, w.attr.value[0] = cuOverlap, 1
		return b.cu.status("cuLaunchKernelEx", b.cu.call(b.cu.launchEx, uintptr(unsafe.Pointer(&w.config)), uintptr(l.kernel),
			uintptr(unsafe.Pointer(&w.params)), 0))
	}
	return b.cu.status("cuLaunchKernel", b.cu.call(b.cu.launchKernel, uintptr(l.kernel),
		uintptr(l.groups[0]), uintptr(l.groups[1]), uintptr(l.groups[2]),
		uintptr(l.local[0]), uintptr(l.local[1]), uintptr(l.local[2]),
		0, b.stream, uintptr(unsafe.Pointer(&w.params)), 0))
}

func (b *cudaBackend) write(dst handle, off int64, src []byte) error {
	return b.do(func() error {
		return b.cu.status("cuMemcpyHtoDAsync", b.cu.call(b.cu.htod, uintptr(dst)+uintptr(off), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)), b.stream))
	})
}

func (b *cudaBackend) read(dst []byte, src handle, off int64) error {
	return b.do(func() error {
		return b.cu.status("cuMemcpyDtoHAsync", b.cu.call(b.cu.dtoh, uintptr(unsafe.Pointer(&dst[0])), uintptr(src)+uintptr(off), uintptr(len(dst)), b.stream))
	})
}

func (b *cudaBackend) copy(dst handle, doff int64, src handle, soff, n int64) error {
	return b.do(func() error {
		return b.cu.status("cuMemcpyDtoDAsync", b.cu.call(b.cu.dtod, uintptr(dst)+uintptr(doff), uintptr(src)+uintptr(soff), uintptr(n), b.stream))
	})
}

func (b *cudaBackend) fill(dst handle, off, n int64, value byte) error {
	p := uintptr(dst) + uintptr(off)
	return b.do(func() error {
		if p%4 == 0 && n%4 == 0 {
			return b.cu.status("cuMemsetD32Async", b.cu.call(b.cu.set32, p, uintptr(value)*0x01010101, uintptr(n/4), b.stream))
		}
		return b.cu.status("cuMemsetD8Async", b.cu.call(b.cu.set8, p, uintptr(value), uintptr(n), b.stream))
	})
}

func (b *cudaBackend) mark(place int) error {
	b.marked[place], b.afterKernel = true, false
	return b.cu.status("cuEventRecord", b.cu.call(b.cu.eventRecord, b.events[place], b.stream))
}

func (b *cudaBackend) settle(place int) error {
	if !b.marked[place] {
		return nil
	}
	b.marked[place] = false
	return b.cu.status("cuEventSynchronize", b.cu.call(b.cu.eventSync, b.events[place]))
}

func (b *cudaBackend) finish() error {
	return b.cu.status("cuStreamSynchronize", b.cu.call(b.cu.streamSync, b.stream))
}

func (b *cudaBackend) record() error {
	b.afterKernel = false
	b.recording = &cudaSequence{}
	if !b.cu.graphs() {
		b.recording.ops = []func() error{}
		return nil
	}
	return b.cu.status("cuStreamBeginCapture", b.cu.captureBegin(b.stream, cuCaptureThreadLocal))
}

func (b *cudaBackend) recorded() (handle, error) {
	s := b.recording
	b.recording = nil
	if s.ops == nil {
		if code := b.cu.captureEnd(b.stream, &s.graph); code != 0 {
			return 0, b.cu.status("cuStreamEndCapture", code)
		}
		var code int32
		if b.cu.instantiate != nil {
			code = b.cu.instantiate(&s.exec, s.graph, 0)
		} else {
			code = b.cu.instantiateV2(&s.exec, s.graph, nil, nil, 0)
		}
		if code != 0 {
			b.cu.graphDestroy(s.graph)
			return 0, b.cu.status("cuGraphInstantiate", code)
		}
	}
	b.next++
	b.seqs[b.next] = s
	return b.next, nil
}

func (b *cudaBackend) replay(h handle) error {
	b.afterKernel = false
	s := b.seqs[h]
	for _, op := range s.ops {
		if err := op(); err != nil {
			return err
		}
	}
	if s.exec == 0 {
		return nil
	}
	return b.cu.status("cuGraphLaunch", b.cu.call(b.cu.graphLaunch, s.exec, b.stream))
}

func (b *cudaBackend) unrecord(h handle) {
	if s := b.seqs[h]; s != nil && s.exec != 0 {
		b.cu.execDestroy(s.exec)
		b.cu.graphDestroy(s.graph)
	}
	delete(b.seqs, h)
}

func (b *cudaBackend) close() {
	if b.compiler != nil {
		b.compiler.close()
	}
	for _, e := range b.events {
		b.cu.eventDestroy(e)
	}
	b.cu.streamDestroy(b.stream)
	b.cu.ctxSet(0)
	b.cu.ctxRelease(b.dev)
}
