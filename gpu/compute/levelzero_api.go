package compute

import (
	"fmt"
	"sync"
)

// Numbers and structures of Level Zero 1.3 (ze_api.h). Go lays the structs out
// as 64-bit C does.
const (
	zeStructDevice    = 0x3
	zeStructCompute   = 0x4
	zeStructGroup     = 0x6
	zeStructMemory    = 0x7
	zeStructContext   = 0xd
	zeStructQueue     = 0xe
	zeStructList      = 0xf
	zeStructEventPool = 0x10
	zeStructEvent     = 0x11
	zeStructDeviceMem = 0x15
	zeStructHostMem   = 0x16
	zeStructModule    = 0x1b
	zeStructKernel    = 0x1d
	zeStructPCI       = 0x10008
	zeStructRelaxed   = 0x20001

	zeGPU          = 1 // type of a device
	zeComputeGroup = 1 // flag of a queue group
	zeAsync        = 2 // mode of a queue
	zeHostScope    = 4 // of an event
	zeHostVisible  = 1 // event pool
	zeForever      = ^uintptr(0)
)

type zeDeviceProps struct {
	stype                                                                  uint32
	next                                                                   uintptr
	kind, vendor, device, flags, sub, clock                                uint32
	maxAlloc                                                               uint64
	contexts, priority, threadsPerEU, simd, eus, subslicesPerSlice, slices uint32
	timer                                                                  uint64
	bits, kernelBits                                                       uint32
	uuid                                                                   [16]byte
	name                                                                   [256]byte
}

type zeComputeProps struct {
	stype                                 uint32
	next                                  uintptr
	maxGroup, maxX, maxY, maxZ            uint32
	countX, countY, countZ, local, nSizes uint32
	sizes                                 [8]uint32
}

type zeMemoryProps struct {
	stype             uint32
	next              uintptr
	flags, clock, bus uint32
	total             uint64
	name              [256]byte
}

type zeGroupProps struct {
	stype   uint32
	next    uintptr
	flags   uint32
	pattern uint64
	queues  uint32
}

type zePCIProps struct {
	stype                         uint32
	next                          uintptr
	domain, bus, device, function uint32
	gen, width                    int32
	bandwidth                     int64
}

type zeQueueDesc struct {
	stype                                 uint32
	next                                  uintptr
	ordinal, index, flags, mode, priority uint32
}

// zeDesc is the form of the descriptors that hold up to three numbers.
type zeDesc struct {
	stype   uint32
	next    uintptr
	a, b, c uint32
}

type zeModuleDesc struct {
	stype     uint32
	next      uintptr
	format    uint32
	size      uintptr
	input     uintptr
	flags     uintptr
	constants uintptr
}

type zeKernelDesc struct {
	stype uint32
	next  uintptr
	flags uint32
	name  uintptr
}

// zeAPI is the Level Zero loader. All calls go through SyscallN: every argument
// is a number or a pointer.
type zeAPI struct {
	library
	f map[string]uintptr
}

var zeCalls = []string{
	"zeInit", "zeDriverGet", "zeDriverGetApiVersion", "zeDriverGetProperties", "zeDeviceGet", "zeDeviceGetProperties", "zeDeviceGetComputeProperties",
	"zeDeviceGetMemoryProperties", "zeDeviceGetCommandQueueGroupProperties", "zeContextCreate", "zeContextDestroy",
	"zeMemAllocDevice", "zeMemAllocHost", "zeMemFree", "zeCommandListCreateImmediate", "zeCommandListCreate", "zeCommandListClose",
	"zeCommandListDestroy", "zeCommandQueueCreate", "zeCommandQueueDestroy", "zeCommandQueueExecuteCommandLists", "zeCommandQueueSynchronize",
	"zeEventPoolCreate", "zeEventPoolDestroy", "zeEventCreate", "zeEventDestroy", "zeEventHostSynchronize", "zeEventHostReset",
	"zeCommandListAppendSignalEvent", "zeCommandListAppendBarrier", "zeCommandListAppendLaunchKernel", "zeCommandListAppendMemoryCopy",
	"zeCommandListAppendMemoryFill", "zeModuleCreate", "zeModuleDestroy", "zeModuleBuildLogGetString", "zeModuleBuildLogDestroy",
	"zeKernelCreate", "zeKernelDestroy", "zeKernelSetGroupSize", "zeKernelSetArgumentValue",
}

var loadZe = sync.OnceValues(func() (*zeAPI, error) { return openZe(zeNames...) })

func openZe(names ...string) (*zeAPI, error) {
	ref, err := openLibrary(names...)
	if err != nil {
		return nil, fmt.Errorf("load the Level Zero loader: %w: %v", ErrNoDriver, err)
	}
	z := &zeAPI{library: newLibrary(ref), f: map[string]uintptr{}}
	for _, n := range zeCalls {
		z.f[n] = z.addr(n)
	}
	if err := z.check("the Level Zero loader"); err != nil {
		return nil, err
	}
	z.f["zeDevicePciGetPropertiesExt"] = z.addr("zeDevicePciGetPropertiesExt") // optional
	z.missing = nil
	if err := z.call("zeInit", 1); err != nil { // GPUs only
		return nil, err
	}
	return z, nil
}

// call makes one call. Pointers that are converted in its argument list stay
// where they are and alive until it returns.
//
//go:uintptrescapes
func (z *zeAPI) call(name string, args ...uintptr) error {
	return zeStatus(name, uint32(z.invoke(z.f[name], args...)))
}

func zeStatus(call string, code uint32) error {
	if code == 0 {
		return nil
	}
	e := &Error{API: "Level Zero", Call: call, Code: int64(code), Name: zeErrors[code]}
	switch code {
	case 0x70000001, 0x70000006:
		e.Kind = ErrLost
	case 0x70000002, 0x70000003:
		e.Kind = ErrMemory
	case 0x70000004, 0x70000005, 0x7800000f:
		e.Kind = ErrBuild
	case 0x78000009:
		e.Kind = ErrTooBig
	case 0x78000011:
		e.Kind = ErrMissing
	case 0x78000001, 0x78000002, 0x70020000, 0x70010000:
		e.Kind = ErrNoDriver
	}
	return e
}

var zeErrors = map[uint32]string{
	1: "ZE_RESULT_NOT_READY", 0x70000001: "ZE_RESULT_ERROR_DEVICE_LOST", 0x70000002: "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY",
	0x70000003: "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", 0x70000004: "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE",
	0x70000005: "ZE_RESULT_ERROR_MODULE_LINK_FAILURE", 0x70000006: "ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET",
	0x70010000: "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS", 0x70010001: "ZE_RESULT_ERROR_NOT_AVAILABLE",
	0x70020000: "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE", 0x78000001: "ZE_RESULT_ERROR_UNINITIALIZED",
	0x78000002: "ZE_RESULT_ERROR_UNSUPPORTED_VERSION", 0x78000003: "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE",
	0x78000004: "ZE_RESULT_ERROR_INVALID_ARGUMENT", 0x78000005: "ZE_RESULT_ERROR_INVALID_NULL_HANDLE",
	0x78000006: "ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE", 0x78000007: "ZE_RESULT_ERROR_INVALID_NULL_POINTER",
	0x78000008: "ZE_RESULT_ERROR_INVALID_SIZE", 0x78000009: "ZE_RESULT_ERROR_UNSUPPORTED_SIZE",
	0x7800000a: "ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT", 0x7800000b: "ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT",
	0x7800000c: "ZE_RESULT_ERROR_INVALID_ENUMERATION", 0x7800000f: "ZE_RESULT_ERROR_INVALID_NATIVE_BINARY",
	0x78000011: "ZE_RESULT_ERROR_INVALID_KERNEL_NAME", 0x78000013: "ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION",
	0x78000015: "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX", 0x78000016: "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE",
	0x7800001a: "ZE_RESULT_ERROR_OVERLAPPING_REGIONS", 0x7ffffffe: "ZE_RESULT_ERROR_UNKNOWN",
}
