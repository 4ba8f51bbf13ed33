package compute

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// OpenCL is the driver for Intel, AMD, NVIDIA and processors (PoCL): every
// platform with OpenCL 1.2 or newer. Nothing beyond 1.2 is called, so a newer
// function is never a call through the loader's null entry.
func OpenCL() Driver { return openclDriver{} }

type openclDriver struct{}

func (openclDriver) Name() string { return "opencl" }

func (openclDriver) Devices() ([]Info, error) {
	cl, err := loadCL()
	if err != nil {
		return nil, err
	}
	var list []Info
	err = cl.each(func(p, dev uintptr) {
		i := cl.describe(p, dev)
		i.Index = len(list)
		list = append(list, i)
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("OpenCL: %w: no platform with OpenCL 1.2 has one", ErrNoDevice)
	}
	return list, err
}

// each visits the devices of all usable platforms, in a fixed order.
func (c *clAPI) each(visit func(platform, dev uintptr)) error {
	var n uint32
	if code := c.getPlatformIDs(0, nil, &n); code != 0 {
		return c.status("clGetPlatformIDs", code)
	}
	if n == 0 {
		return nil
	}
	plats := make([]uintptr, n)
	if code := c.getPlatformIDs(n, &plats[0], nil); code != 0 {
		return c.status("clGetPlatformIDs", code)
	}
	for _, p := range plats {
		if !atLeast12(c.text(p, false, clPlatformVersion)) {
			continue
		}
		var k uint32
		const all = 0xffffffff
		if c.getDeviceIDs(p, all, 0, nil, &k) != 0 || k == 0 {
			continue
		}
		devs := make([]uintptr, k)
		if c.getDeviceIDs(p, all, k, &devs[0], nil) != 0 {
			continue
		}
		for _, d := range devs {
			if atLeast12(c.text(d, true, clDeviceVersion)) {
				visit(p, d)
			}
		}
	}
	return nil
}

// atLeast12 reads "OpenCL 3.0 ...".
func atLeast12(v string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(v, "OpenCL %d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || major == 1 && minor >= 2
}

func (c *clAPI) describe(p, dev uintptr) Info {
	i := Info{
		Driver:   "opencl",
		Name:     strings.TrimSpace(c.text(dev, true, clDeviceName)),
		Platform: c.text(p, false, clPlatformName),
		Vendor:   uint32(c.number(dev, clDeviceVendorID)),
		Version:  c.text(dev, true, clDeviceDriver),
		API:      c.text(dev, true, clDeviceVersion),
		CPU:      c.number(dev, clDeviceType)&clTypeCPU != 0,
		Memory:   c.number(dev, clDeviceGlobal),
		MaxAlloc: c.number(dev, clDeviceMaxAlloc),
		Local:    c.number(dev, clDeviceLocal),
		Align:    c.number(dev, clDeviceAlign) / 8,
		Units:    int(c.number(dev, clDeviceUnits)),
		MaxGroup: int(c.number(dev, clDeviceMaxGroup)),
	}
	ext := map[string]bool{}
	for _, e := range strings.Fields(c.text(dev, true, clDeviceExtensions)) {
		ext[e] = true
	}
	i.PCI = c.pci(dev, ext)
	if strings.HasPrefix(i.Platform, "NVIDIA") {
		sm := int(10*c.number(dev, clDeviceNVMajor) + c.number(dev, clDeviceNVMinor))
		if sm >= 61 { // dp4a
			i.Features.Nvidia = sm
		}
	}
	if ext["cl_intel_subgroups"] && ext["cl_intel_required_subgroup_size"] && !i.CPU {
		i.Features.Intel = 16
		var sizes [8]uintptr
		var used uintptr
		if c.getDeviceInfo(dev, clDeviceIntelSizes, unsafe.Sizeof(sizes), unsafe.Pointer(&sizes), &used) == 0 {
			for _, s := range sizes[:used/unsafe.Sizeof(used)] {
				if s == 8 {
					i.Features.Intel = 8
				}
			}
		}
		i.Features.DPAS = ext["cl_intel_subgroup_matrix_multiply_accumulate"]
	}
	return i
}

func (c *clAPI) pci(dev uintptr, ext map[string]bool) string {
	var v [4]uint32
	switch {
	case ext["cl_khr_pci_bus_info"]:
		if c.getDeviceInfo(dev, clDevicePCI, 16, unsafe.Pointer(&v), nil) == 0 {
			return fmt.Sprintf("%04x:%02x:%02x.%x", v[0], v[1], v[2], v[3])
		}
	case ext["cl_nv_device_attribute_query"]:
		slot := c.number(dev, clDeviceNVSlot)
		return fmt.Sprintf("%04x:%02x:%02x.%x", c.number(dev, clDeviceNVDomain), c.number(dev, clDeviceNVBus), slot>>3, slot&7)
	case ext["cl_amd_device_attribute_query"]:
		var t [24]byte // type, 17 unused, bus, device, function
		if c.getDeviceInfo(dev, clDeviceAMDTopo, 24, unsafe.Pointer(&t), nil) == 0 {
			return fmt.Sprintf("0000:%02x:%02x.%x", t[21], t[22], t[23])
		}
	}
	return ""
}

func (openclDriver) open(i Info, o Options) (backend, error) {
	cl, err := loadCL()
	if err != nil {
		return nil, err
	}
	b := &openclBackend{cl: cl, info: i, cache: o.Cache, kernels: map[handle]*clKernel{}, seqs: map[handle][]clOp{}, maps: map[handle]uintptr{}}
	at := 0
	err = cl.each(func(_, dev uintptr) {
		if at == i.Index {
			b.dev = dev
		}
		at++
	})
	if err != nil {
		return nil, err
	}
	if b.dev == 0 {
		return nil, fmt.Errorf("OpenCL device %d: %w", i.Index, ErrNoDevice)
	}
	var code int32
	b.ctx = cl.createContext(nil, 1, &b.dev, 0, 0, &code)
	if code != 0 {
		return nil, cl.status("clCreateContext", code)
	}
	b.queue = cl.createQueue(b.ctx, b.dev, 0, &code)
	if code != 0 {
		cl.releaseContext(b.ctx)
		return nil, cl.status("clCreateCommandQueue", code)
	}
	return b, nil
}

type openclBackend struct {
	cl    *clAPI
	info  Info
	cache string

	dev, ctx, queue uintptr
	mu              sync.Mutex
	kernels         map[handle]*clKernel // guarded by mu
	maps            map[handle]uintptr   // pinned buffer -> mapped address
	seqs            map[handle][]clOp
	next            handle
	recording       bool
	ops             []clOp
	events          [2]uintptr
	work            clWork
}

// clWork is memory that C reads during a call. It lies on the heap, as a
// goroutine's stack may move.
type clWork struct {
	global, local [3]uintptr
	value         [8]byte
	mem           handle
	event         uintptr
	pattern       [4]byte
}

type clKernel struct {
	program uintptr
	name    string
}

// clOp is one recorded command: a kernel with its arguments set, or a copy.
type clOp struct {
	kernel        uintptr
	global, local [3]uintptr
	run           func() error // for copies and fills
}

func (b *openclBackend) memory() (free, total int64, known bool) {
	if strings.HasPrefix(b.info.Platform, "AMD") {
		var kib [2]uintptr
		if b.cl.getDeviceInfo(b.dev, clDeviceAMDFree, unsafe.Sizeof(kib), unsafe.Pointer(&kib), nil) == 0 {
			return int64(kib[0]) << 10, b.info.Memory, true
		}
	}
	return 0, b.info.Memory, false
}

func (b *openclBackend) alloc(n int64) (handle, error) {
	var code int32
	m := b.cl.createBuffer(b.ctx, clMemReadWrite, uintptr(n), 0, &code)
	if code != 0 {
		return 0, b.cl.status("clCreateBuffer", code)
	}
	// Some drivers take the memory only at the first use, and fail there. Use
	// it here, where the failure has a name.
	err := b.fill(handle(m), 0, min(n, 4), 0)
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		b.cl.releaseMem(m)
		if e, ok := err.(*Error); ok && e.Kind == ErrLost && e.Code == -5 {
			e.Kind = ErrMemory
		}
		return 0, err
	}
	return handle(m), nil
}

func (b *openclBackend) slice(base handle, off, n int64) (handle, error) {
	var code int32
	region := [2]uintptr{uintptr(off), uintptr(n)}
	m := b.cl.createSubBuffer(uintptr(base), clMemReadWrite, clRegion, &region, &code)
	return handle(m), b.cl.status("clCreateSubBuffer", code)
}

func (b *openclBackend) release(s handle) { b.cl.releaseMem(uintptr(s)) }
func (b *openclBackend) free(m handle)    { b.cl.releaseMem(uintptr(m)) }

// pin maps a buffer that the driver keeps in host memory. Copies from the
// mapped address are the fast ones on NVIDIA, and legal everywhere.
func (b *openclBackend) pin(n int64) ([]byte, handle, error) {
	var code int32
	m := b.cl.createBuffer(b.ctx, clMemReadWrite|clMemAllocHostPtr, uintptr(n), 0, &code)
	if code != 0 {
		return nil, 0, b.cl.status("clCreateBuffer", code)
	}
	p := b.cl.mapBuffer(b.queue, m, 1, clMapRead|clMapWrite, 0, uintptr(n), 0, 0, 0, &code)
	if code != 0 || p == 0 {
		b.cl.releaseMem(m)
		return nil, 0, b.cl.status("clEnqueueMapBuffer", code)
	}
	b.maps[handle(m)] = p
	return foreign(p, n), handle(m), nil
}

func (b *openclBackend) unpin(m handle) {
	b.cl.unmap(b.queue, uintptr(m), b.maps[m], 0, 0, 0)
	b.cl.call(b.cl.finish, b.queue)
	b.cl.releaseMem(uintptr(m))
	delete(b.maps, m)
}

// adopt wraps memory in a buffer and maps it: of a mapped buffer that was made of
// memory, the address is that memory's. Two contexts can each have such a buffer
// of the same bytes as long as no command but copies from and to the address uses
// them.
func (b *openclBackend) adopt(mem []byte) (handle, error) {
	var code int32
	n := uintptr(len(mem))
	m := b.cl.createBuffer(b.ctx, clMemReadWrite|clMemUseHostPtr, n, uintptr(unsafe.Pointer(&mem[0])), &code)
	if code != 0 {
		return 0, b.cl.status("clCreateBuffer", code)
	}
	p := b.cl.mapBuffer(b.queue, m, 1, clMapRead|clMapWrite, 0, n, 0, 0, 0, &code)
	if code != 0 {
		b.cl.releaseMem(m)
		return 0, b.cl.status("clEnqueueMapBuffer", code)
	}
	b.maps[handle(m)] = p
	if p != uintptr(unsafe.Pointer(&mem[0])) {
		b.unpin(handle(m))
		return 0, ErrNotShared
	}
	return handle(m), nil
}

func (b *openclBackend) unadopt(m handle) { b.unpin(m) }

// foreign views n bytes of C memory at p.
func foreign(p uintptr, n int64) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

func (b *openclBackend) attach() (func(), error) { return func() {}, nil }

func (b *openclBackend) launch(l *launch) error {
	k := uintptr(l.kernel)
	if b.recording {
		// Arguments belong to the kernel object, so every recorded launch has
		// one of its own.
		b.mu.Lock()
		src := b.kernels[l.kernel]
		b.mu.Unlock()
		own, err := b.newKernel(src.program, src.name)
		if err != nil {
			return err
		}
		k = own
	}
	w := &b.work
	for i := range l.args {
		a := &l.args[i]
		var code int32
		if a.size == 0 {
			w.mem = a.buf.ref
			code = b.cl.call(b.cl.setKernelArg, k, uintptr(i), unsafe.Sizeof(w.mem), uintptr(unsafe.Pointer(&w.mem)))
		} else {
			w.value = a.val
			code = b.cl.call(b.cl.setKernelArg, k, uintptr(i), uintptr(a.size), uintptr(unsafe.Pointer(&w.value)))
		}
		if code != 0 {
			err := b.cl.status("clSetKernelArg", code).(*Error)
			err.Detail = fmt.Sprintf("argument %d of %s", i, l.name)
			return err
		}
	}
	for i := range 3 {
		w.local[i] = uintptr(l.local[i])
		w.global[i] = uintptr(l.groups[i]) * uintptr(l.local[i])
	}
	if b.recording {
		b.ops = append(b.ops, clOp{kernel: k, global: w.global, local: w.local})
		return nil
	}
	return b.start(k)
}

// start enqueues kernel k over work.global.
func (b *openclBackend) start(k uintptr) error {
	w := &b.work
	return b.cl.status("clEnqueueNDRangeKernel", b.cl.call(b.cl.enqueueKernel, b.queue, k, 3, 0,
		uintptr(unsafe.Pointer(&w.global)), uintptr(unsafe.Pointer(&w.local)), 0, 0, 0))
}

// do runs a copy or a fill, or takes it down.
func (b *openclBackend) do(op func() error) error {
	if b.recording {
		b.ops = append(b.ops, clOp{run: op})
		return nil
	}
	return op()
}

func (b *openclBackend) write(dst handle, off int64, src []byte) error {
	return b.do(func() error {
		return b.cl.status("clEnqueueWriteBuffer", b.cl.call(b.cl.enqueueWrite, b.queue, uintptr(dst), 0,
			uintptr(off), uintptr(len(src)), uintptr(unsafe.Pointer(&src[0])), 0, 0, 0))
	})
}

func (b *openclBackend) read(dst []byte, src handle, off int64) error {
	return b.do(func() error {
		return b.cl.status("clEnqueueReadBuffer", b.cl.call(b.cl.enqueueRead, b.queue, uintptr(src), 0,
			uintptr(off), uintptr(len(dst)), uintptr(unsafe.Pointer(&dst[0])), 0, 0, 0))
	})
}

func (b *openclBackend) copy(dst handle, doff int64, src handle, soff, n int64) error {
	return b.do(func() error {
		return b.cl.status("clEnqueueCopyBuffer", b.cl.call(b.cl.enqueueCopy, b.queue, uintptr(src), uintptr(dst),
			uintptr(soff), uintptr(doff), uintptr(n), 0, 0, 0))
	})
}

func (b *openclBackend) fill(dst handle, off, n int64, value byte) error {
	// The pattern may be 4 bytes wide only where offset and size allow it.
	width := uintptr(4)
	if off%4 != 0 || n%4 != 0 {
		width = 1
	}
	return b.do(func() error {
		w := &b.work
		w.pattern = [4]byte{value, value, value, value}
		return b.cl.status("clEnqueueFillBuffer", b.cl.call(b.cl.enqueueFill, b.queue, uintptr(dst),
			uintptr(unsafe.Pointer(&w.pattern)), width, uintptr(off), uintptr(n), 0, 0, 0))
	})
}

func (b *openclBackend) mark(place int) error {
	w := &b.work
	if err := b.cl.status("clEnqueueMarkerWithWaitList", b.cl.call(b.cl.enqueueMarker, b.queue, 0, 0, uintptr(unsafe.Pointer(&w.event)))); err != nil {
		return err
	}
	b.events[place] = w.event
	return b.cl.status("clFlush", b.cl.call(b.cl.flush, b.queue))
}

func (b *openclBackend) settle(place int) error {
	w := &b.work
	if b.events[place] == 0 {
		return nil
	}
	w.event, b.events[place] = b.events[place], 0
	code := b.cl.call(b.cl.waitForEvents, 1, uintptr(unsafe.Pointer(&w.event)))
	b.cl.releaseEvent(w.event)
	return b.cl.status("clWaitForEvents", code)
}

func (b *openclBackend) finish() error {
	return b.cl.status("clFinish", b.cl.call(b.cl.finish, b.queue))
}

func (b *openclBackend) record() error {
	b.recording, b.ops = true, nil
	return nil
}

func (b *openclBackend) recorded() (handle, error) {
	b.recording = false
	b.next++
	b.seqs[b.next] = b.ops
	b.ops = nil
	return b.next, nil
}

func (b *openclBackend) replay(s handle) error {
	ops := b.seqs[s]
	for i := range ops {
		op := &ops[i]
		if op.run != nil {
			if err := op.run(); err != nil {
				return err
			}
			continue
		}
		b.work.global, b.work.local = op.global, op.local
		if err := b.start(op.kernel); err != nil {
			return err
		}
	}
	return b.cl.status("clFlush", b.cl.call(b.cl.flush, b.queue))
}

func (b *openclBackend) unrecord(s handle) {
	for _, op := range b.seqs[s] {
		if op.kernel != 0 {
			b.cl.releaseKernel(op.kernel)
		}
	}
	delete(b.seqs, s)
}

func (b *openclBackend) close() {
	b.settle(0)
	b.settle(1)
	b.cl.releaseQueue(b.queue)
	b.cl.releaseContext(b.ctx)
}

// cacheKey names a compiled module: the text, what it was compiled with, and
// the device and driver that it is for.
func cacheKey(kind string, i Info, parts ...string) string {
	h := sha256.New()
	put := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, s := range append([]string{kind, i.Name, i.Platform, i.Version, i.API}, parts...) {
		put(s)
	}
	return fmt.Sprintf("%s-%x", kind, h.Sum(nil)[:16])
}
