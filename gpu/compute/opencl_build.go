package compute

import (
	"runtime"
	"unsafe"
)

func (b *openclBackend) build(src source) (handle, error) {
	options := src.options()
	key := cacheKey("opencl", b.info, src.text(), options)
	if bin := readCache(b.cache, key); bin != nil {
		if p, err := b.fromBinary(bin, options); err == nil {
			return p, nil
		}
		// stale or of another driver: compile anew and overwrite
	}
	text := append([]byte(src.text()), 0)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&text[0])
	ptr, n := uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)-1)
	var code int32
	p := b.cl.createProgram(b.ctx, 1, &ptr, &n, &code)
	runtime.KeepAlive(text)
	if code != 0 {
		return 0, b.cl.status("clCreateProgramWithSource", code)
	}
	if err := b.compile(p, options); err != nil {
		return 0, err
	}
	if b.cache != "" {
		if bin := b.binary(p); bin != nil {
			writeCache(b.cache, key, bin)
		}
	}
	return handle(p), nil
}

func (b *openclBackend) fromBinary(bin []byte, options string) (handle, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&bin[0])
	ptr, n := uintptr(unsafe.Pointer(&bin[0])), uintptr(len(bin))
	var status, code int32
	p := b.cl.createProgramWithBinary(b.ctx, 1, &b.dev, &n, &ptr, &status, &code)
	if code != 0 {
		return 0, b.cl.status("clCreateProgramWithBinary", code)
	}
	return handle(p), b.compile(p, options)
}

// compile builds p; on failure p is gone and the error holds the log.
func (b *openclBackend) compile(p uintptr, options string) error {
	code := b.cl.buildProgram(p, 1, &b.dev, options, 0, 0)
	if code == 0 {
		return nil
	}
	err := b.cl.status("clBuildProgram", code).(*Error)
	err.Kind = ErrBuild
	var n uintptr
	if b.cl.getBuildInfo(p, b.dev, clBuildLog, 0, nil, &n) == 0 && n > 1 && n < 1<<24 {
		log := make([]byte, n)
		if b.cl.getBuildInfo(p, b.dev, clBuildLog, n, unsafe.Pointer(&log[0]), nil) == 0 {
			err.Detail = cString(log)
		}
	}
	b.cl.releaseProgram(p)
	return err
}

// binary gives the compiled form of p: on NVIDIA that is PTX text.
func (b *openclBackend) binary(p uintptr) []byte {
	var n uintptr
	if b.cl.getProgramInfo(p, clProgramSizes, unsafe.Sizeof(n), unsafe.Pointer(&n), nil) != 0 || n == 0 || n > 1<<28 {
		return nil
	}
	bin := make([]byte, n)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&bin[0])
	ptr := uintptr(unsafe.Pointer(&bin[0]))
	if b.cl.getProgramInfo(p, clProgramBinaries, unsafe.Sizeof(ptr), unsafe.Pointer(&ptr), nil) != 0 {
		return nil
	}
	return bin
}

func (b *openclBackend) unbuild(p handle) { b.cl.releaseProgram(uintptr(p)) }

func (b *openclBackend) kernel(p handle, name string) (handle, error) {
	k, err := b.newKernel(uintptr(p), name)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kernels[handle(k)] = &clKernel{program: uintptr(p), name: name}
	return handle(k), nil
}

func (b *openclBackend) newKernel(p uintptr, name string) (uintptr, error) {
	var code int32
	k := b.cl.createKernel(p, name, &code)
	return k, b.cl.status("clCreateKernel", code)
}

func (b *openclBackend) unkernel(k handle) {
	b.cl.releaseKernel(uintptr(k))
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kernels, k)
}
