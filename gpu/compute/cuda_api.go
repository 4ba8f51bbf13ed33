package compute

import (
	"fmt"
	"sync"
	"unsafe"
)

// Numbers of the CUDA driver API (cuda.h).
const (
	cuAttrMaxGroup = 1
	cuAttrLocal    = 8
	cuAttrUnits    = 16
	cuAttrBus      = 33
	cuAttrSlot     = 34
	cuAttrDomain   = 50
	cuAttrMajor    = 75
	cuAttrMinor    = 76

	cuJITErrorLog     = 5
	cuJITErrorLogSize = 6
	cuJITTarget       = 9

	cuCaptureThreadLocal = 1
	cuEventNoTiming      = 2
)

// cudaAPI is libcuda, bound once. No toolkit is needed.
type cudaAPI struct {
	library

	init          func(flags uint32) int32
	driverVersion func(v *int32) int32
	deviceCount   func(n *int32) int32
	deviceGet     func(dev *int32, i int32) int32
	deviceName    func(name *byte, n int32, dev int32) int32
	deviceMemory  func(n *uintptr, dev int32) int32
	deviceAttr    func(v *int32, attr, dev int32) int32
	errorName     func(code int32, name *uintptr) int32

	ctxRetain  func(ctx *uintptr, dev int32) int32
	ctxRelease func(dev int32) int32
	ctxSet     func(ctx uintptr) int32
	memInfo    func(free, total *uintptr) int32
	memAlloc   func(p *uintptr, n uintptr) int32
	memFree    func(p uintptr) int32
	hostAlloc  func(p *uintptr, n uintptr, flags uint32) int32
	hostFree   func(p uintptr) int32
	// nil where missing
	hostRegister   func(p, n uintptr, flags uint32) int32
	hostUnregister func(p uintptr) int32

	streamCreate  func(s *uintptr, flags uint32) int32
	streamDestroy func(s uintptr) int32
	eventCreate   func(e *uintptr, flags uint32) int32
	eventDestroy  func(e uintptr) int32

	moduleLoad     func(m *uintptr, image unsafe.Pointer, n uint32, options *int32, values *uintptr) int32
	moduleUnload   func(m uintptr) int32
	moduleFunction func(f *uintptr, m uintptr, name string) int32

	captureBegin  func(s uintptr, mode int32) int32
	captureEnd    func(s uintptr, g *uintptr) int32
	instantiate   func(exec *uintptr, g uintptr, flags uint64) int32
	instantiateV2 func(exec *uintptr, g uintptr, node *uintptr, log *byte, n uintptr) int32
	execDestroy   func(exec uintptr) int32
	graphDestroy  func(g uintptr) int32

	links *cudaLinker // nil: the driver makes no machine code to keep

	// hot calls, through SyscallN
	launchKernel, htod, dtoh, dtod, set8, set32     uintptr
	streamSync, eventRecord, eventSync, graphLaunch uintptr
	launchEx                                        uintptr // 0 before CUDA 11.8
}

var loadCUDA = sync.OnceValues(func() (*cudaAPI, error) {
	ref, err := openLibrary(cudaNames...)
	if err != nil {
		return nil, fmt.Errorf("load the CUDA driver: %w: %v", ErrNoDriver, err)
	}
	c := &cudaAPI{library: newLibrary(ref)}
	c.need(&c.init, "cuInit")
	c.need(&c.driverVersion, "cuDriverGetVersion")
	c.need(&c.deviceCount, "cuDeviceGetCount")
	c.need(&c.deviceGet, "cuDeviceGet")
	c.need(&c.deviceName, "cuDeviceGetName")
	c.need(&c.deviceMemory, "cuDeviceTotalMem_v2")
	c.need(&c.deviceAttr, "cuDeviceGetAttribute")
	c.need(&c.errorName, "cuGetErrorName")
	c.need(&c.ctxRetain, "cuDevicePrimaryCtxRetain")
	if !c.want(&c.ctxRelease, "cuDevicePrimaryCtxRelease_v2") {
		c.need(&c.ctxRelease, "cuDevicePrimaryCtxRelease")
	}
	c.need(&c.ctxSet, "cuCtxSetCurrent")
	c.need(&c.memInfo, "cuMemGetInfo_v2")
	c.need(&c.memAlloc, "cuMemAlloc_v2")
	c.need(&c.memFree, "cuMemFree_v2")
	c.need(&c.hostAlloc, "cuMemHostAlloc")
	c.need(&c.hostFree, "cuMemFreeHost")
	c.need(&c.streamCreate, "cuStreamCreate")
	c.need(&c.streamDestroy, "cuStreamDestroy_v2")
	c.need(&c.eventCreate, "cuEventCreate")
	c.need(&c.eventDestroy, "cuEventDestroy_v2")
	c.need(&c.moduleLoad, "cuModuleLoadDataEx")
	c.need(&c.moduleUnload, "cuModuleUnload")
	c.need(&c.moduleFunction, "cuModuleGetFunction")
	c.launchKernel = c.addr("cuLaunchKernel")
	c.htod = c.addr("cuMemcpyHtoDAsync_v2")
	c.dtoh = c.addr("cuMemcpyDtoHAsync_v2")
	c.dtod = c.addr("cuMemcpyDtoDAsync_v2")
	c.set8 = c.addr("cuMemsetD8Async")
	c.set32 = c.addr("cuMemsetD32Async")
	c.streamSync = c.addr("cuStreamSynchronize")
	c.eventRecord = c.addr("cuEventRecord")
	c.eventSync = c.addr("cuEventSynchronize")
	if err := c.check("the CUDA driver"); err != nil {
		return nil, err
	}
	c.launchEx = c.addr("cuLaunchKernelEx")
	c.want(&c.hostRegister, "cuMemHostRegister_v2")
	c.want(&c.hostUnregister, "cuMemHostUnregister")
	c.links = c.linker()
	c.missing = nil
	// Graphs came with CUDA 10; without them a sequence is launched one by one.
	if c.want(&c.captureBegin, "cuStreamBeginCapture_v2") && c.want(&c.captureEnd, "cuStreamEndCapture") {
		if !c.want(&c.instantiate, "cuGraphInstantiateWithFlags") {
			c.want(&c.instantiateV2, "cuGraphInstantiate_v2")
		}
		c.want(&c.execDestroy, "cuGraphExecDestroy")
		c.want(&c.graphDestroy, "cuGraphDestroy")
		c.graphLaunch = c.addr("cuGraphLaunch")
		c.missing = nil
	}
	if code := c.init(0); code != 0 {
		return nil, c.status("cuInit", code)
	}
	return c, nil
})

// graphs tells whether sequences can be CUDA graphs.
func (c *cudaAPI) graphs() bool {
	return c.graphLaunch != 0 && (c.instantiate != nil || c.instantiateV2 != nil) && c.execDestroy != nil && c.graphDestroy != nil
}

func (c *cudaAPI) call(fn uintptr, args ...uintptr) int32 {
	return int32(c.invoke(fn, args...))
}

func (c *cudaAPI) status(call string, code int32) error {
	if code == 0 {
		return nil
	}
	e := &Error{API: "CUDA", Call: call, Code: int64(code)}
	var p uintptr
	if c.errorName(code, &p) == 0 && p != 0 {
		e.Name = cStringAt(p)
	}
	switch code {
	case 2:
		e.Kind = ErrMemory
	case 3, 34, 36, 802, 803, 804:
		e.Kind = ErrNoDriver
	case 100, 101:
		e.Kind = ErrNoDevice
	case 200, 209, 218, 220, 221, 222, 223, 300:
		e.Kind = ErrBuild
	case 500:
		e.Kind = ErrMissing
	case 4, 46, 201, 214, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999:
		// The context is of no use after any of these (cuda.h).
		e.Kind = ErrLost
	}
	return e
}
