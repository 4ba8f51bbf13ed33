package compute

import (
	"fmt"
	"runtime"
	"unsafe"
)

// cudaLinker is the part of the driver API that makes machine code without
// loading it. It works on as many threads as ask, where loading PTX makes one module
// at a time of a process (11 modules on an H200: 1.0 s and 3.8 s), and what it makes
// can be kept. Drivers without it load PTX and keep machine code themselves.
type cudaLinker struct {
	create   func(n uint32, options *int32, values *uintptr, state *uintptr) int32
	add      func(state uintptr, kind int32, data unsafe.Pointer, size uintptr, name string, n uint32, options *int32, values *uintptr) int32
	complete func(state uintptr, code *uintptr, size *uintptr) int32
	destroy  func(state uintptr) int32
}

// linker binds what is needed for link; nil where the driver lacks it.
func (c *cudaAPI) linker() *cudaLinker {
	l := &cudaLinker{}
	if !c.want(&l.create, "cuLinkCreate_v2") || !c.want(&l.add, "cuLinkAddData_v2") || !c.want(&l.complete, "cuLinkComplete") || !c.want(&l.destroy, "cuLinkDestroy") {
		return nil
	}
	return l
}

// link makes machine code of PTX for the device whose context the thread has, or for
// another compute capability, ten times its number.
func (c *cudaAPI) link(ptx []byte, capability int) ([]byte, error) {
	l := c.links
	if l == nil {
		return nil, fmt.Errorf("cuLinkCreate: %w: the CUDA driver lacks it", ErrNoDriver)
	}
	if len(ptx) == 0 || ptx[len(ptx)-1] != 0 {
		ptx = append(ptx[:len(ptx):len(ptx)], 0)
	}
	log := make([]byte, 8192)
	options, values, n := &[3]int32{cuJITErrorLog, cuJITErrorLogSize, cuJITTarget}, &[3]uintptr{0, uintptr(len(log)), uintptr(capability)}, uint32(3)
	if capability == 0 {
		n = 2
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&log[0])
	pin.Pin(&ptx[0])
	pin.Pin(options) // read until the end, not only by the call
	pin.Pin(values)
	values[0] = uintptr(unsafe.Pointer(&log[0]))
	fail := func(call string, code int32) error {
		err := c.status(call, code).(*Error)
		err.Detail = cString(log)
		return err
	}
	var state uintptr
	if code := l.create(n, &options[0], &values[0], &state); code != 0 {
		return nil, c.status("cuLinkCreate", code)
	}
	defer l.destroy(state)
	const isPTX = 1 // CU_JIT_INPUT_PTX
	if code := l.add(state, isPTX, unsafe.Pointer(&ptx[0]), uintptr(len(ptx)), "module", 0, nil, nil); code != 0 {
		return nil, fail("cuLinkAddData", code)
	}
	var at, size uintptr
	if code := l.complete(state, &at, &size); code != 0 {
		return nil, fail("cuLinkComplete", code)
	}
	return append([]byte(nil), foreign(at, int64(size))...), nil // the driver's goes with state
}
