// Command gen builds the kernels ahead of time, for drivers that have no
// compiler of OpenCL C:
//
//	go run ./gpu/kernels/gen -spirv gpu/kernels/spirv.zip -ptx gpu/kernels/ptx.zip
//	go run ./gpu/kernels/gen -text DIR       writes the assembled sources
//
// SPIR-V is made by ocloc (Debian package intel-opencl-icd), PTX by clang-15
// with libclc (clang-15, libclc-15). Each archive names its entries by the hash
// of what was compiled, so a source that has changed since is not found, and
// only what has changed is built again: remove an archive to build all of it.
package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"outcrop/gpu/kernels"
)

func main() {
	spirv := flag.String("spirv", "", "archive of SPIR-V to write")
	ptx := flag.String("ptx", "", "archive of PTX to write")
	text := flag.String("text", "", "folder to write sources to")
	only := flag.String("only", "", "modules whose name begins so")
	device := flag.String("device", "dg2", "ocloc's device for -spirv")
	flag.Parse()
	if err := run(*spirv, *ptx, *text, *only, *device); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(spirv, ptx, text, only, device string) error {
	begin := func(from []kernels.Module) (list []kernels.Module) {
		for _, m := range from {
			if strings.HasPrefix(m.Name, only) {
				list = append(list, m)
			}
		}
		return list
	}
	if text != "" {
		for _, m := range begin(kernels.All(32)) {
			if err := os.WriteFile(filepath.Join(text, m.Name+".cl"), []byte(m.Text), 0o644); err != nil {
				return err
			}
		}
	}
	if spirv != "" {
		err := archive(spirv, begin(kernels.All(8)), kernels.SPIRVOptions, func(tmp string, m kernels.Module) ([]byte, error) { return toSPIRV(tmp, device, m) })
		if err != nil {
			return err
		}
	}
	if ptx != "" {
		units := map[string]bool{}
		for _, m := range kernels.Units() {
			units[m.Name] = true
		}
		list := begin(append(kernels.All(32), kernels.Units()...))
		for i := range list {
			list[i] = kernels.Ahead(list[i])
		}
		return archive(ptx, list, kernels.PTXOptions, func(tmp string, m kernels.Module) ([]byte, error) {
			if units[m.Name] {
				return toPTX(tmp, m, "sm_80", "+ptx70")
			}
			return toPTX(tmp, m, "sm_61", "+ptx60")
		})
	}
	return nil
}

// archive builds each module, as many at once as there are processors, and packs the
// results.
func archive(path string, list []kernels.Module, options []string, build func(tmp string, m kernels.Module) ([]byte, error)) error {
	// what was built from the same text before is taken over
	before := map[string]*zip.File{}
	if old, err := os.ReadFile(path); err == nil {
		if z, err := zip.NewReader(bytes.NewReader(old), int64(len(old))); err == nil {
			for _, f := range z.File {
				before[f.Name] = f
			}
		}
	}
	type result struct {
		b   []byte
		err error
	}
	made := make([]chan result, len(list))
	slots := make(chan struct{}, runtime.NumCPU())
	for i, m := range list {
		if before[kernels.Built(m, options)] != nil {
			continue
		}
		made[i] = make(chan result, 1)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			tmp, err := os.MkdirTemp("", "gen")
			if err != nil {
				made[i] <- result{nil, err}
				return
			}
			defer os.RemoveAll(tmp)
			b, err := build(tmp, m)
			made[i] <- result{b, err}
		}()
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z := zip.NewWriter(f)
	var broken []error // all of them are told at once: a run takes minutes
	for i, m := range list {
		name := kernels.Built(m, options)
		if made[i] == nil {
			if err := z.Copy(before[name]); err != nil {
				return err
			}
			continue
		}
		r := <-made[i]
		if r.err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", m.Name, r.err))
			continue
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Unix(0, 0)})
		if err != nil {
			return err
		}
		if _, err := w.Write(r.b); err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes\n", m.Name, len(r.b))
	}
	return errors.Join(append(broken, z.Close(), f.Close())...)
}

func source(tmp string, m kernels.Module) (string, error) {
	path := filepath.Join(tmp, "k.cl")
	return path, os.WriteFile(path, []byte(m.Text), 0o644)
}

func defines(m kernels.Module, options []string) []string {
	list := append([]string{}, options...)
	for _, d := range m.Defines {
		list = append(list, "-D"+d)
	}
	return list
}

func toSPIRV(tmp, device string, m kernels.Module) ([]byte, error) {
	src, err := source(tmp, m)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(tmp, "o")
	os.RemoveAll(out)
	options := defines(m, kernels.SPIRVOptions)
	if m.Large {
		options = append(options, "-cl-intel-256-GRF-per-thread")
	}
	cmd := exec.Command("ocloc", "compile", "-device", device, "-file", src, "-out_dir", out, "-options", strings.Join(options, " "))
	log, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(log), "spilled around") {
		return nil, fmt.Errorf("ocloc: %v\n%s", err, log)
	}
	found, err := filepath.Glob(filepath.Join(out, "*.spv"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("ocloc wrote %v\n%s", found, log)
	}
	return os.ReadFile(found[0])
}

func toPTX(tmp string, m kernels.Module, target, version string) ([]byte, error) {
	src, err := source(tmp, m)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(tmp, "k.ptx")
	args := append([]string{
		"-target", "nvptx64--nvidiacl", "-Xclang", "-target-cpu", "-Xclang", target, "-Xclang", "-target-feature", "-Xclang", version,
		"-x", "cl", "-Xclang", "-finclude-default-header", "-O3", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", "/usr/lib/clc/nvptx64--nvidiacl.bc",
		"-S", src, "-o", out,
	}, defines(m, kernels.PTXOptions)...)
	log, err := exec.Command("clang-15", args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("clang-15: %v\n%s", err, log)
	}
	return os.ReadFile(out)
}
