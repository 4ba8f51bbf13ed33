package compute

import (
	"fmt"
	"sync"
	"unsafe"
)

// Names and numbers of OpenCL 1.2 (Khronos, cl.h) and of the vendor queries
// that are used here (cl_ext.h).
const (
	clTypeCPU = 1 << 1

	clMemReadWrite    = 1 << 0
	clMemUseHostPtr   = 1 << 3
	clMemAllocHostPtr = 1 << 4
	clMapRead         = 1
	clMapWrite        = 2
	clRegion          = 0x1220 // CL_BUFFER_CREATE_TYPE_REGION

	clPlatformVersion = 0x0901
	clPlatformName    = 0x0902

	clDeviceType       = 0x1000
	clDeviceVendorID   = 0x1001
	clDeviceUnits      = 0x1002
	clDeviceMaxGroup   = 0x1004
	clDeviceMaxAlloc   = 0x1010
	clDeviceAlign      = 0x1019 // bits
	clDeviceGlobal     = 0x101f
	clDeviceLocal      = 0x1023
	clDeviceName       = 0x102b
	clDeviceDriver     = 0x102d
	clDeviceVersion    = 0x102f
	clDeviceExtensions = 0x1030
	clDevicePCI        = 0x410f // cl_khr_pci_bus_info: domain, bus, device, function
	clDeviceNVMajor    = 0x4000 // cl_nv_device_attribute_query
	clDeviceNVMinor    = 0x4001
	clDeviceNVBus      = 0x4008
	clDeviceNVSlot     = 0x4009
	clDeviceNVDomain   = 0x400a
	clDeviceAMDTopo    = 0x4037 // cl_amd_device_attribute_query
	clDeviceAMDFree    = 0x4039 // KiB, two values
	clDeviceIntelSizes = 0x4108 // cl_intel_required_subgroup_size

	clProgramSizes    = 0x1165
	clProgramBinaries = 0x1166
	clBuildLog        = 0x1183
)

// cl is the OpenCL loader, bound once.
type clAPI struct {
	library

	getPlatformIDs          func(n uint32, list *uintptr, count *uint32) int32
	getPlatformInfo         func(p uintptr, what uint32, size uintptr, value unsafe.Pointer, used *uintptr) int32
	getDeviceIDs            func(p uintptr, kind uint64, n uint32, list *uintptr, count *uint32) int32
	getDeviceInfo           func(d uintptr, what uint32, size uintptr, value unsafe.Pointer, used *uintptr) int32
	createContext           func(props *uintptr, n uint32, devs *uintptr, notify, user uintptr, code *int32) uintptr
	releaseContext          func(c uintptr) int32
	createQueue             func(c, d uintptr, props uint64, code *int32) uintptr
	releaseQueue            func(q uintptr) int32
	createBuffer            func(c uintptr, flags uint64, n uintptr, host uintptr, code *int32) uintptr
	createSubBuffer         func(m uintptr, flags uint64, kind uint32, region *[2]uintptr, code *int32) uintptr
	releaseMem              func(m uintptr) int32
	mapBuffer               func(q, m uintptr, blocking uint32, flags uint64, off, n uintptr, nwait uint32, wait, event uintptr, code *int32) uintptr
	unmap                   func(q, m, p uintptr, nwait uint32, wait, event uintptr) int32
	createProgram           func(c uintptr, n uint32, text *uintptr, size *uintptr, code *int32) uintptr
	createProgramWithBinary func(c uintptr, n uint32, dev *uintptr, size *uintptr, bin *uintptr, status *int32, code *int32) uintptr
	buildProgram            func(p uintptr, n uint32, dev *uintptr, options string, notify, user uintptr) int32
	getBuildInfo            func(p, d uintptr, what uint32, size uintptr, value unsafe.Pointer, used *uintptr) int32
	getProgramInfo          func(p uintptr, what uint32, size uintptr, value unsafe.Pointer, used *uintptr) int32
	releaseProgram          func(p uintptr) int32
	createKernel            func(p uintptr, name string, code *int32) uintptr
	releaseKernel           func(k uintptr) int32
	releaseEvent            func(e uintptr) int32

	// hot calls, through SyscallN: a third of the cost of a registered func
	// (92 of 400 ns measured for clSetKernelArg)
	setKernelArg, enqueueKernel, enqueueWrite, enqueueRead, enqueueCopy, enqueueFill uintptr
	enqueueMarker, waitForEvents, flush, finish                                      uintptr
}

// loadCL binds the loader. It is done once: libraries of this kind do not like
// to be unloaded.
var loadCL = sync.OnceValues(func() (*clAPI, error) {
	ref, err := openLibrary(openclNames...)
	if err != nil {
		return nil, fmt.Errorf("load the OpenCL loader: %w: %v", ErrNoDriver, err)
	}
	c := &clAPI{library: newLibrary(ref)}
	c.need(&c.getPlatformIDs, "clGetPlatformIDs")
	c.need(&c.getPlatformInfo, "clGetPlatformInfo")
	c.need(&c.getDeviceIDs, "clGetDeviceIDs")
	c.need(&c.getDeviceInfo, "clGetDeviceInfo")
	c.need(&c.createContext, "clCreateContext")
	c.need(&c.releaseContext, "clReleaseContext")
	// clCreateCommandQueueWithProperties is OpenCL 2.0 and a call through a
	// null pointer on a 1.2 platform; this one is everywhere.
	c.need(&c.createQueue, "clCreateCommandQueue")
	c.need(&c.releaseQueue, "clReleaseCommandQueue")
	c.need(&c.createBuffer, "clCreateBuffer")
	c.need(&c.createSubBuffer, "clCreateSubBuffer")
	c.need(&c.releaseMem, "clReleaseMemObject")
	c.need(&c.mapBuffer, "clEnqueueMapBuffer")
	c.need(&c.unmap, "clEnqueueUnmapMemObject")
	c.need(&c.createProgram, "clCreateProgramWithSource")
	c.need(&c.createProgramWithBinary, "clCreateProgramWithBinary")
	c.need(&c.buildProgram, "clBuildProgram")
	c.need(&c.getBuildInfo, "clGetProgramBuildInfo")
	c.need(&c.getProgramInfo, "clGetProgramInfo")
	c.need(&c.releaseProgram, "clReleaseProgram")
	c.need(&c.createKernel, "clCreateKernel")
	c.need(&c.releaseKernel, "clReleaseKernel")
	c.need(&c.releaseEvent, "clReleaseEvent")
	c.setKernelArg = c.addr("clSetKernelArg")
	c.enqueueKernel = c.addr("clEnqueueNDRangeKernel")
	c.enqueueWrite = c.addr("clEnqueueWriteBuffer")
	c.enqueueRead = c.addr("clEnqueueReadBuffer")
	c.enqueueCopy = c.addr("clEnqueueCopyBuffer")
	c.enqueueFill = c.addr("clEnqueueFillBuffer")
	c.enqueueMarker = c.addr("clEnqueueMarkerWithWaitList")
	c.waitForEvents = c.addr("clWaitForEvents")
	c.flush = c.addr("clFlush")
	c.finish = c.addr("clFinish")
	return c, c.check("the OpenCL loader")
})

func (c *clAPI) call(fn uintptr, args ...uintptr) int32 {
	return int32(c.invoke(fn, args...))
}

// text reads an info string of a platform (dev false) or device.
func (c *clAPI) text(obj uintptr, dev bool, what uint32) string {
	get := c.getPlatformInfo
	if dev {
		get = c.getDeviceInfo
	}
	var n uintptr
	if get(obj, what, 0, nil, &n) != 0 || n == 0 || n > 1<<20 {
		return ""
	}
	b := make([]byte, n)
	if get(obj, what, n, unsafe.Pointer(&b[0]), nil) != 0 {
		return ""
	}
	return cString(b)
}

func (c *clAPI) number(dev uintptr, what uint32) int64 {
	var v uint64
	var used uintptr
	if c.getDeviceInfo(dev, what, 8, unsafe.Pointer(&v), &used) != 0 {
		return 0
	}
	if used == 4 {
		v &= 1<<32 - 1
	}
	return int64(v)
}

// cString cuts b at its NUL.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// cStringAt reads a NUL-terminated string of C, at most 256 bytes of it.
func cStringAt(p uintptr) string {
	var b []byte
	for i := uintptr(0); i < 256; i++ {
		c := foreign(p+i, 1)[0]
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}

// status turns a result into an error.
func (c *clAPI) status(call string, code int32) error {
	if code == 0 {
		return nil
	}
	e := &Error{API: "OpenCL", Call: call, Code: int64(code), Name: clNames[code]}
	switch code {
	case -4, -6:
		e.Kind = ErrMemory
	case -5:
		// NVIDIA and Intel give this when a kernel faulted as well as for want
		// of memory; after it the queue is unusable only when a wait says so.
		e.Kind = ErrMemory
		if call == "clFinish" || call == "clWaitForEvents" {
			e.Kind = ErrLost
		}
	case -11, -15, -17:
		e.Kind = ErrBuild
	case -46:
		e.Kind = ErrMissing
	case -61:
		e.Kind = ErrTooBig
	case -1, -1001:
		e.Kind = ErrNoDevice
	case -2, -9999, -36, -14:
		// -9999 is NVIDIA's word for an illegal access in a kernel; the queue
		// is invalid (-36) from then on.
		e.Kind = ErrLost
	}
	return e
}

var clNames = map[int32]string{
	-1: "CL_DEVICE_NOT_FOUND", -2: "CL_DEVICE_NOT_AVAILABLE", -3: "CL_COMPILER_NOT_AVAILABLE",
	-4: "CL_MEM_OBJECT_ALLOCATION_FAILURE", -5: "CL_OUT_OF_RESOURCES", -6: "CL_OUT_OF_HOST_MEMORY",
	-7: "CL_PROFILING_INFO_NOT_AVAILABLE", -8: "CL_MEM_COPY_OVERLAP", -9: "CL_IMAGE_FORMAT_MISMATCH",
	-10: "CL_IMAGE_FORMAT_NOT_SUPPORTED", -11: "CL_BUILD_PROGRAM_FAILURE", -12: "CL_MAP_FAILURE",
	-13: "CL_MISALIGNED_SUB_BUFFER_OFFSET", -14: "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
	-15: "CL_COMPILE_PROGRAM_FAILURE", -16: "CL_LINKER_NOT_AVAILABLE", -17: "CL_LINK_PROGRAM_FAILURE",
	-18: "CL_DEVICE_PARTITION_FAILED", -19: "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
	-30: "CL_INVALID_VALUE", -31: "CL_INVALID_DEVICE_TYPE", -32: "CL_INVALID_PLATFORM", -33: "CL_INVALID_DEVICE",
	-34: "CL_INVALID_CONTEXT", -35: "CL_INVALID_QUEUE_PROPERTIES", -36: "CL_INVALID_COMMAND_QUEUE",
	-37: "CL_INVALID_HOST_PTR", -38: "CL_INVALID_MEM_OBJECT", -42: "CL_INVALID_BINARY",
	-43: "CL_INVALID_BUILD_OPTIONS", -44: "CL_INVALID_PROGRAM", -45: "CL_INVALID_PROGRAM_EXECUTABLE",
	-46: "CL_INVALID_KERNEL_NAME", -47: "CL_INVALID_KERNEL_DEFINITION", -48: "CL_INVALID_KERNEL",
	-49: "CL_INVALID_ARG_INDEX", -50: "CL_INVALID_ARG_VALUE", -51: "CL_INVALID_ARG_SIZE",
	-52: "CL_INVALID_KERNEL_ARGS", -53: "CL_INVALID_WORK_DIMENSION", -54: "CL_INVALID_WORK_GROUP_SIZE",
	-55: "CL_INVALID_WORK_ITEM_SIZE", -56: "CL_INVALID_GLOBAL_OFFSET", -57: "CL_INVALID_EVENT_WAIT_LIST",
	-58: "CL_INVALID_EVENT", -59: "CL_INVALID_OPERATION", -61: "CL_INVALID_BUFFER_SIZE",
	-63: "CL_INVALID_GLOBAL_WORK_SIZE", -64: "CL_INVALID_PROPERTY", -66: "CL_INVALID_COMPILER_OPTIONS",
	-67: "CL_INVALID_LINKER_OPTIONS", -1001: "CL_PLATFORM_NOT_FOUND_KHR", -9999: "NVIDIA: illegal access in a kernel",
}
