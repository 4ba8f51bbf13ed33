package doctor

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// Engine is what an external engine's binary tells about itself.
type Engine struct {
	Path      string   `json:"path"`
	Needed    []string `json:"needed"`     // shared libraries it is linked to
	SYCL      bool     `json:"sycl"`       // a SYCL program
	LevelZero bool     `json:"level_zero"` // imports zeMemAllocHost, or is linked to the Level Zero loader
	CUDA      bool     `json:"cuda"`
	HIP       bool     `json:"hip"`
	Vulkan    bool     `json:"vulkan"`
}

// ReadEngine looks at an ELF binary (Linux) without running it. Distributions
// split the Level Zero library from its headers, and a build without the headers
// succeeds and then fails in silence, so the binary is what tells.
func ReadEngine(path string) (Engine, error) {
	f, err := elf.Open(path)
	if err != nil {
		return Engine{}, fmt.Errorf("read engine %s: %w", path, err)
	}
	defer f.Close()
	e := Engine{Path: path}
	libs, err := f.ImportedLibraries()
	if err != nil {
		return Engine{}, fmt.Errorf("read engine %s: list of libraries: %w", path, err)
	}
	e.Needed = libs
	has := func(prefix string) bool {
		return slices.ContainsFunc(libs, func(l string) bool { return strings.HasPrefix(l, prefix) })
	}
	e.SYCL = has("libsycl.so") || has("libggml-sycl")
	e.LevelZero = has("libze_loader.so")
	e.CUDA = has("libcuda.so") || has("libcudart.so") || has("libggml-cuda")
	e.HIP = has("libamdhip64.so") || has("libggml-hip")
	e.Vulkan = has("libvulkan.so") || has("libggml-vulkan")
	// A static binary has no dynamic symbols, which is no error here.
	syms, err := f.ImportedSymbols()
	if err == nil {
		for _, s := range syms {
			if s.Name == "zeMemAllocHost" {
				e.LevelZero = true
			}
		}
	}
	return e, nil
}
