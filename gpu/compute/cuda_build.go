package compute

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"outcrop/gpu/kernels"
)

// build makes machine code of a module and loads it.
func (b *cudaBackend) build(src source) (handle, error) {
	options := src.options()
	made := kernels.Built(kernels.Ahead(src.Module), kernels.PTXOptions)
	key := cacheKey("cubin", b.info, src.text(), options, made, os.Getenv(CompilerVariable), fmt.Sprint(src.Registers))
	if code := readCache(src.cache, key); code != nil {
		if m, err := b.load(code); err == nil {
			return m, nil
		}
	}
	ptx, err := b.ptx(src, options)
	if err != nil {
		return 0, err
	}
	ptx = registers(ptx, src.Registers)
	if b.cu.links != nil {
		code, err := b.cu.link(ptx, 0)
		if errors.Is(err, ErrBuild) {
			return 0, err
		}
		if err == nil {
			if m, err := b.load(code); err == nil {
				writeCache(src.cache, key, code)
				return m, nil
			}
		}
	}
	return b.load(ptx)
}

// ptx gives the text that was made ahead of time, else what NVIDIA's OpenCL compiler
// makes; the other way round where CompilerVariable says so.
func (b *cudaBackend) ptx(src source, options string) ([]byte, error) {
	embedded := func() ([]byte, error) { return kernels.PTX(src.Module, b.info.Features.Nvidia) }
	bridge := func() ([]byte, error) {
		key := cacheKey("ptx", b.info, src.text(), options)
		if ptx := readCache(src.cache, key); ptx != nil {
			return ptx, nil
		}
		ptx, err := b.compile(src, options)
		if err == nil {
			writeCache(src.cache, key, ptx)
		}
		return ptx, err
	}
	first, second := embedded, bridge
	if os.Getenv(CompilerVariable) == "opencl" {
		first, second = bridge, embedded
	}
	ptx, err := first()
	if err == nil || errors.Is(err, ErrBuild) {
		return ptx, err
	}
	ptx, other := second()
	if other == nil || errors.Is(other, ErrBuild) {
		return ptx, other
	}
	return nil, &Error{API: "CUDA", Call: "build", Name: "no PTX", Kind: ErrBuild, Detail: fmt.Sprintf("%v; %v", err, other)}
}

// CompilerVariable, set to opencl, has CUDA take its kernels from NVIDIA's OpenCL compiler
// even where they are embedded, to compare the two.
const CompilerVariable = "OUTCROP_GPU_COMPILER"

var envRegister = regexp.MustCompile(`%envreg(\d+)`)

// compile has NVIDIA's OpenCL compiler make PTX of a module. Its binaries are
// readable PTX; the only thing in it that the driver API does not define are the
// %envreg registers, which hold launch offsets, so 0 here.
func (b *cudaBackend) compile(src source, options string) ([]byte, error) {
	b.bridge.Do(func() { b.compiler, b.noCompiler = b.openCompiler() })
	if b.noCompiler != nil {
		return nil, b.noCompiler
	}
	src.cache = ""
	p, err := b.compiler.build(src)
	if err != nil {
		return nil, err
	}
	defer b.compiler.unbuild(p)
	text := strings.TrimRight(string(b.compiler.binary(uintptr(p))), "\x00")
	if !strings.Contains(text, ".version") || !strings.Contains(text, ".entry") {
		return nil, fmt.Errorf("NVIDIA's OpenCL gave %d bytes that are not PTX", len(text))
	}
	for _, r := range envRegister.FindAllStringSubmatch(text, -1) {
		// 0 to 5 are the offsets of groups and of items; others hold sizes of the
		// launch, and 0 in their place makes loops endless (seen).
		if n, _ := strconv.Atoi(r[1]); n > 5 {
			return nil, &Error{API: "CUDA", Call: "build", Name: "launch register", Kind: ErrBuild,
				Detail: src.Name + " reads " + r[0] + ": kernels must not ask for the size of the launch (common.cl has groups_x)"}
		}
	}
	return append(envRegister.ReplaceAll([]byte(text), []byte("0")), 0), nil
}

func (b *cudaBackend) openCompiler() (*openclBackend, error) {
	infos, err := openclDriver{}.Devices()
	if err != nil {
		return nil, err
	}
	for _, i := range infos {
		if i.Features.Nvidia != 0 && i.PCI == b.info.PCI {
			c, err := openclDriver{}.open(i, Options{})
			if err != nil {
				return nil, err
			}
			return c.(*openclBackend), nil
		}
	}
	return nil, fmt.Errorf("no OpenCL device at %s", b.info.PCI)
}

// load gives PTX text, which ends in a NUL, to the driver.
func (b *cudaBackend) load(ptx []byte) (handle, error) {
	if len(ptx) == 0 || ptx[len(ptx)-1] != 0 {
		ptx = append(ptx, 0)
	}
	log := make([]byte, 8192)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&log[0])
	pin.Pin(&ptx[0])
	options := [2]int32{cuJITErrorLog, cuJITErrorLogSize}
	values := [2]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	var m uintptr
	code := b.cu.moduleLoad(&m, unsafe.Pointer(&ptx[0]), 2, &options[0], &values[0])
	if code != 0 {
		err := b.cu.status("cuModuleLoadDataEx", code).(*Error)
		err.Detail = cString(log)
		return 0, err
	}
	return handle(m), nil
}

func (b *cudaBackend) unbuild(m handle) { b.cu.moduleUnload(uintptr(m)) }

func (b *cudaBackend) kernel(m handle, name string) (handle, error) {
	var f uintptr
	code := b.cu.moduleFunction(&f, uintptr(m), name)
	return handle(f), b.cu.status("cuModuleGetFunction", code)
}

func (b *cudaBackend) unkernel(handle) {}
