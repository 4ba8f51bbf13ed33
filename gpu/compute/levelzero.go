package compute

import (
	"fmt"
	"runtime"
	"unsafe"

	"outcrop/gpu/kernels"
)

// LevelZero is the driver for Intel cards. Kernels are SPIR-V made ahead of time
// from the OpenCL text. Single launches and copies go to an immediate command
// list, sequences are command lists that are executed again and again.
func LevelZero() Driver { return zeDriver{loadZe} }

type zeDriver struct{ load func() (*zeAPI, error) }

func (zeDriver) Name() string { return "levelzero" }

// zeAt is a device with the driver it belongs to.
type zeAt struct{ driver, device uintptr }

func (z *zeAPI) list() ([]zeAt, error) {
	n := new(uint32)
	if err := z.call("zeDriverGet", uintptr(unsafe.Pointer(n)), 0); err != nil {
		return nil, err
	}
	drivers := make([]uintptr, max(*n, 1))
	if err := z.call("zeDriverGet", uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(&drivers[0]))); err != nil {
		return nil, err
	}
	var out []zeAt
	for _, d := range drivers[:*n] {
		k := new(uint32)
		if z.call("zeDeviceGet", d, uintptr(unsafe.Pointer(k)), 0) != nil || *k == 0 {
			continue
		}
		devs := make([]uintptr, *k)
		if err := z.call("zeDeviceGet", d, uintptr(unsafe.Pointer(k)), uintptr(unsafe.Pointer(&devs[0]))); err != nil {
			return nil, err
		}
		for _, dev := range devs {
			out = append(out, zeAt{d, dev})
		}
	}
	return out, nil
}

func (d zeDriver) Devices() ([]Info, error) {
	z, err := d.load()
	if err != nil {
		return nil, err
	}
	all, err := z.list()
	if err != nil {
		return nil, err
	}
	var list []Info
	for i, a := range all {
		info, err := z.describe(a)
		if err != nil {
			return list, err
		}
		info.Index = i
		list = append(list, info)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("Level Zero: %w", ErrNoDevice)
	}
	return list, nil
}

func (z *zeAPI) describe(a zeAt) (Info, error) {
	p := &zeDeviceProps{stype: zeStructDevice}
	if err := z.call("zeDeviceGetProperties", a.device, uintptr(unsafe.Pointer(p))); err != nil {
		return Info{}, err
	}
	c := &zeComputeProps{stype: zeStructCompute}
	if err := z.call("zeDeviceGetComputeProperties", a.device, uintptr(unsafe.Pointer(c))); err != nil {
		return Info{}, err
	}
	info := Info{
		Driver: "levelzero", Name: cString(p.name[:]), Vendor: p.vendor, CPU: p.kind != zeGPU,
		MaxAlloc: int64(p.maxAlloc), Local: int64(c.local), Align: 256, MaxGroup: int(c.maxGroup),
		Units: int(max(p.slices, 1) * max(p.subslicesPerSlice, 1)),
	}
	n := new(uint32)
	if z.call("zeDeviceGetMemoryProperties", a.device, uintptr(unsafe.Pointer(n)), 0) == nil && *n > 0 {
		mem := make([]zeMemoryProps, *n)
		for i := range mem {
			mem[i].stype = zeStructMemory
		}
		if z.call("zeDeviceGetMemoryProperties", a.device, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(&mem[0]))) == nil {
			for _, m := range mem[:*n] {
				info.Memory += int64(m.total)
			}
		}
	}
	v := new(uint32)
	if z.call("zeDriverGetApiVersion", a.driver, uintptr(unsafe.Pointer(v))) == nil {
		info.API = fmt.Sprintf("Level Zero %d.%d", *v>>16, *v&0xffff)
	}
	// ze_driver_properties_t: type, next, 16 bytes of uuid, version
	props := new([5]uint64)
	props[0] = 1
	if z.call("zeDriverGetProperties", a.driver, uintptr(unsafe.Pointer(props))) == nil {
		v := uint32(props[4])
		info.Version = fmt.Sprintf("%d.%d.%d", v>>24, v>>16&0xff, v&0xffff)
	}
	if z.f["zeDevicePciGetPropertiesExt"] != 0 {
		pci := &zePCIProps{stype: zeStructPCI}
		if z.call("zeDevicePciGetPropertiesExt", a.device, uintptr(unsafe.Pointer(pci))) == nil {
			info.PCI = fmt.Sprintf("%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.device, pci.function)
		}
	}
	for _, s := range c.sizes[:min(c.nSizes, 8)] {
		if s == 8 {
			info.Features.Intel = 8
		}
	}
	return info, nil
}

func (d zeDriver) open(i Info, _ Options) (backend, error) {
	z, err := d.load()
	if err != nil {
		return nil, err
	}
	all, err := z.list()
	if err != nil {
		return nil, err
	}
	if i.Index >= len(all) {
		return nil, fmt.Errorf("Level Zero device %d: %w", i.Index, ErrNoDevice)
	}
	if i.Features.Intel != 8 {
		return nil, fmt.Errorf("%s: %w: the kernels made ahead of time need subgroups of 8; OpenCL compiles for others", i.Name, ErrNoDevice)
	}
	b := &zeBackend{z: z, info: i, at: all[i.Index], seqs: map[handle]*zeSequence{}, work: &zeWork{}}
	if err := b.start(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

type zeBackend struct {
	z    *zeAPI
	info Info
	at   zeAt

	ctx, list, queue, pool uintptr
	events                 [3]uintptr // two places of mark, one of finish
	marked                 [2]bool
	queued                 bool // a sequence was executed and not waited for
	seqs                   map[handle]*zeSequence
	next                   handle
	recording              uintptr // command list
	work                   *zeWork
}

// zeWork is memory that C reads during a call, on the heap.
type zeWork struct {
	groups  [3]uint32
	value   [8]byte
	mem     uintptr
	pattern uint32
	lists   [1]uintptr
	out     uintptr
}

type zeSequence struct{ list uintptr }

// create makes an object: the last argument of such calls is where its handle
// goes.
//
//go:uintptrescapes
func (b *zeBackend) create(to *uintptr, name string, args ...uintptr) error {
	w := b.work // on the heap
	w.out = 0
	if err := b.z.call(name, append(args, uintptr(unsafe.Pointer(&w.out)))...); err != nil {
		return err
	}
	*to = w.out
	return nil
}

func (b *zeBackend) start() error {
	if err := b.create(&b.ctx, "zeContextCreate", b.at.driver, uintptr(unsafe.Pointer(&zeDesc{stype: zeStructContext}))); err != nil {
		return err
	}
	ordinal, err := b.computeGroup()
	if err != nil {
		return err
	}
	desc := &zeQueueDesc{stype: zeStructQueue, ordinal: ordinal, mode: zeAsync}
	if err := b.create(&b.list, "zeCommandListCreateImmediate", b.ctx, b.at.device, uintptr(unsafe.Pointer(desc))); err != nil {
		return err
	}
	if err := b.create(&b.queue, "zeCommandQueueCreate", b.ctx, b.at.device, uintptr(unsafe.Pointer(desc))); err != nil {
		return err
	}
	pool := &zeDesc{stype: zeStructEventPool, a: zeHostVisible, b: uint32(len(b.events))}
	if err := b.create(&b.pool, "zeEventPoolCreate", b.ctx, uintptr(unsafe.Pointer(pool)), 1, uintptr(unsafe.Pointer(&b.at.device))); err != nil {
		return err
	}
	for i := range b.events {
		e := &zeDesc{stype: zeStructEvent, a: uint32(i), b: zeHostScope, c: zeHostScope}
		if err := b.create(&b.events[i], "zeEventCreate", b.pool, uintptr(unsafe.Pointer(e))); err != nil {
			return err
		}
	}
	return nil
}

// computeGroup finds the queue group that runs kernels.
func (b *zeBackend) computeGroup() (uint32, error) {
	n := new(uint32)
	if err := b.z.call("zeDeviceGetCommandQueueGroupProperties", b.at.device, uintptr(unsafe.Pointer(n)), 0); err != nil || *n == 0 {
		return 0, err
	}
	groups := make([]zeGroupProps, *n)
	for i := range groups {
		groups[i].stype = zeStructGroup
	}
	if err := b.z.call("zeDeviceGetCommandQueueGroupProperties", b.at.device, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(&groups[0]))); err != nil {
		return 0, err
	}
	for i, g := range groups {
		if g.flags&zeComputeGroup != 0 {
			return uint32(i), nil
		}
	}
	return 0, nil
}

func (b *zeBackend) memory() (free, total int64, known bool) { return 0, b.info.Memory, false }

func (b *zeBackend) alloc(n int64) (handle, error) {
	// The relaxed descriptor lets devices before Xe2 give more than 4 GiB minus
	// 8 KiB; chunks stay below that anyway, and drivers refuse less with it.
	relaxed := &zeDesc{stype: zeStructRelaxed, a: 1}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(relaxed)
	desc := &zeDesc{stype: zeStructDeviceMem, next: uintptr(unsafe.Pointer(relaxed))}
	p := new(uintptr)
	err := b.z.call("zeMemAllocDevice", b.ctx, uintptr(unsafe.Pointer(desc)), uintptr(n), 256, b.at.device, uintptr(unsafe.Pointer(p)))
	return handle(*p), err
}

func (b *zeBackend) slice(base handle, off, _ int64) (handle, error) { return base + handle(off), nil }
func (b *zeBackend) release(handle)                                  {}
func (b *zeBackend) free(p handle)                                   { b.z.call("zeMemFree", b.ctx, uintptr(p)) }

func (b *zeBackend) pin(n int64) ([]byte, handle, error) {
	desc := &zeDesc{stype: zeStructHostMem}
	p := new(uintptr)
	if err := b.z.call("zeMemAllocHost", b.ctx, uintptr(unsafe.Pointer(desc)), uintptr(n), 4096, uintptr(unsafe.Pointer(p))); err != nil {
		return nil, 0, err
	}
	if *p == 0 { // seen at 4 GiB on an A770: success and no memory
		return nil, 0, &Error{API: "Level Zero", Call: "zeMemAllocHost", Name: "no memory given", Kind: ErrMemory}
	}
	return foreign(*p, n), handle(*p), nil
}

func (b *zeBackend) unpin(p handle) { b.z.call("zeMemFree", b.ctx, uintptr(p)) }

// adopt: memory of others is known to a context only through an extension that is
// not asked for here; copies from it would go through the driver's own buffers.
func (b *zeBackend) adopt([]byte) (handle, error) { return 0, ErrNotShared }
func (b *zeBackend) unadopt(handle)               {}

func (b *zeBackend) attach() (func(), error) { return func() {}, nil }

func (b *zeBackend) build(src source) (handle, error) {
	il, err := kernels.SPIRV(src.Module)
	if err != nil {
		return 0, &Error{API: "Level Zero", Call: "build", Name: "no SPIR-V", Kind: ErrBuild, Detail: err.Error()}
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&il[0])
	desc := &zeModuleDesc{stype: zeStructModule, size: uintptr(len(il)), input: uintptr(unsafe.Pointer(&il[0]))}
	if src.Large {
		flags := []byte("-ze-opt-large-register-file\x00")
		pin.Pin(&flags[0])
		desc.flags = uintptr(unsafe.Pointer(&flags[0]))
	}
	m, log := new(uintptr), new(uintptr)
	err = b.z.call("zeModuleCreate", b.ctx, b.at.device, uintptr(unsafe.Pointer(desc)), uintptr(unsafe.Pointer(m)), uintptr(unsafe.Pointer(log)))
	if err != nil {
		if e, ok := err.(*Error); ok {
			e.Kind, e.Detail = ErrBuild, b.buildLog(*log)
		}
		return 0, err
	}
	if *log != 0 {
		b.z.call("zeModuleBuildLogDestroy", *log)
	}
	return handle(*m), nil
}

func (b *zeBackend) buildLog(log uintptr) string {
	if log == 0 {
		return ""
	}
	defer b.z.call("zeModuleBuildLogDestroy", log)
	n := new(uintptr)
	if b.z.call("zeModuleBuildLogGetString", log, uintptr(unsafe.Pointer(n)), 0) != nil || *n == 0 || *n > 1<<24 {
		return ""
	}
	text := make([]byte, *n)
	if b.z.call("zeModuleBuildLogGetString", log, uintptr(unsafe.Pointer(n)), uintptr(unsafe.Pointer(&text[0]))) != nil {
		return ""
	}
	return cString(text)
}

func (b *zeBackend) unbuild(m handle) { b.z.call("zeModuleDestroy", uintptr(m)) }

func (b *zeBackend) kernel(m handle, name string) (handle, error) {
	text := append([]byte(name), 0)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&text[0])
	desc := &zeKernelDesc{stype: zeStructKernel, name: uintptr(unsafe.Pointer(&text[0]))}
	k := new(uintptr)
	err := b.z.call("zeKernelCreate", uintptr(m), uintptr(unsafe.Pointer(desc)), uintptr(unsafe.Pointer(k)))
	return handle(*k), err
}

func (b *zeBackend) unkernel(k handle) { b.z.call("zeKernelDestroy", uintptr(k)) }

// target is the list that commands go to: the one being recorded, or the
// immediate one, once what was queued beside it has ended.
func (b *zeBackend) target() (uintptr, error) {
	if b.recording != 0 {
		return b.recording, nil
	}
	return b.list, b.settleQueue()
}

func (b *zeBackend) settleQueue() error {
	if !b.queued {
		return nil
	}
	b.queued = false
	return b.z.call("zeCommandQueueSynchronize", b.queue, zeForever)
}

// do appends a command and a barrier: commands keep their order.
//
//go:uintptrescapes
func (b *zeBackend) do(name string, args ...uintptr) error {
	list, err := b.target()
	if err != nil {
		return err
	}
	if err := b.z.call(name, append([]uintptr{list}, args...)...); err != nil {
		return err
	}
	return b.z.call("zeCommandListAppendBarrier", list, 0, 0, 0)
}

func (b *zeBackend) launch(l *launch) error {
	w, k := b.work, uintptr(l.kernel)
	if err := b.z.call("zeKernelSetGroupSize", k, uintptr(l.local[0]), uintptr(l.local[1]), uintptr(l.local[2])); err != nil {
		return err
	}
	for i := range l.args {
		a := &l.args[i]
		size, p := uintptr(a.size), uintptr(unsafe.Pointer(&w.value))
		if a.size == 0 {
			w.mem = uintptr(a.buf.ref)
			size, p = unsafe.Sizeof(w.mem), uintptr(unsafe.Pointer(&w.mem))
		} else {
			w.value = a.val
		}
		if err := b.z.call("zeKernelSetArgumentValue", k, uintptr(i), size, p); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	w.groups = l.groups
	return b.do("zeCommandListAppendLaunchKernel", k, uintptr(unsafe.Pointer(&w.groups)), 0, 0, 0)
}

func (b *zeBackend) write(dst handle, off int64, src []byte) error {
	return b.do("zeCommandListAppendMemoryCopy", uintptr(dst)+uintptr(off), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)), 0, 0, 0)
}

func (b *zeBackend) read(dst []byte, src handle, off int64) error {
	return b.do("zeCommandListAppendMemoryCopy", uintptr(unsafe.Pointer(&dst[0])), uintptr(src)+uintptr(off), uintptr(len(dst)), 0, 0, 0)
}

func (b *zeBackend) copy(dst handle, doff int64, src handle, soff, n int64) error {
	return b.do("zeCommandListAppendMemoryCopy", uintptr(dst)+uintptr(doff), uintptr(src)+uintptr(soff), uintptr(n), 0, 0, 0)
}

func (b *zeBackend) fill(dst handle, off, n int64, value byte) error {
	b.work.pattern = uint32(value) * 0x01010101
	width := uintptr(4)
	if off%4 != 0 || n%4 != 0 {
		width = 1
	}
	return b.do("zeCommandListAppendMemoryFill", uintptr(dst)+uintptr(off), uintptr(unsafe.Pointer(&b.work.pattern)), width, uintptr(n), 0, 0, 0)
}

func (b *zeBackend) mark(place int) error {
	if err := b.settleQueue(); err != nil {
		return err
	}
	b.marked[place] = true
	return b.z.call("zeCommandListAppendSignalEvent", b.list, b.events[place])
}

func (b *zeBackend) settle(place int) error {
	if !b.marked[place] {
		return nil
	}
	b.marked[place] = false
	return b.await(b.events[place])
}

func (b *zeBackend) await(event uintptr) error {
	if err := b.z.call("zeEventHostSynchronize", event, zeForever); err != nil {
		return err
	}
	return b.z.call("zeEventHostReset", event)
}

func (b *zeBackend) finish() error {
	if err := b.settleQueue(); err != nil {
		return err
	}
	if err := b.z.call("zeCommandListAppendSignalEvent", b.list, b.events[2]); err != nil {
		return err
	}
	return b.await(b.events[2])
}

func (b *zeBackend) record() error {
	out := new(uintptr)
	ordinal, err := b.computeGroup()
	if err != nil {
		return err
	}
	desc := &zeDesc{stype: zeStructList, a: ordinal}
	if err := b.z.call("zeCommandListCreate", b.ctx, b.at.device, uintptr(unsafe.Pointer(desc)), uintptr(unsafe.Pointer(out))); err != nil {
		return err
	}
	b.recording = *out
	return nil
}

func (b *zeBackend) recorded() (handle, error) {
	list := b.recording
	b.recording = 0
	if err := b.z.call("zeCommandListClose", list); err != nil {
		b.z.call("zeCommandListDestroy", list)
		return 0, err
	}
	b.next++
	b.seqs[b.next] = &zeSequence{list}
	return b.next, nil
}

func (b *zeBackend) replay(h handle) error {
	// The immediate list and the queue know nothing of each other.
	if !b.queued {
		if err := b.finish(); err != nil {
			return err
		}
	} else if err := b.settleQueue(); err != nil {
		return err
	}
	b.work.lists[0] = b.seqs[h].list
	if err := b.z.call("zeCommandQueueExecuteCommandLists", b.queue, 1, uintptr(unsafe.Pointer(&b.work.lists)), 0); err != nil {
		return err
	}
	b.queued = true
	return nil
}

func (b *zeBackend) unrecord(h handle) {
	if s := b.seqs[h]; s != nil {
		b.z.call("zeCommandListDestroy", s.list)
	}
	delete(b.seqs, h)
}

func (b *zeBackend) close() {
	for _, e := range b.events {
		if e != 0 {
			b.z.call("zeEventDestroy", e)
		}
	}
	for name, h := range map[string]uintptr{"zeEventPoolDestroy": b.pool, "zeCommandQueueDestroy": b.queue, "zeCommandListDestroy": b.list} {
		if h != 0 {
			b.z.call(name, h)
		}
	}
	if b.ctx != 0 {
		b.z.call("zeContextDestroy", b.ctx)
	}
}
