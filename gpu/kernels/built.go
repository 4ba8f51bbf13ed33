package kernels

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// What the modules of All are built with ahead of time. PTX is made for compute
// capability 9.0 and adapted to others by PTX.
var (
	SPIRVOptions = []string{"-cl-std=CL1.2", "-cl-mad-enable", "-DINTEL=8"}
	PTXOptions   = []string{"-cl-std=CL1.2", "-cl-mad-enable", "-DNVIDIA=90"}
)

// Built names the result of building m with options: module, dot, hash of all
// that went in.
func Built(m Module, options []string) string {
	h := sha256.New()
	h.Write([]byte(strings.Join(options, " ") + "\n" + strings.Join(m.Defines, " ") + "\n" + m.Text))
	return fmt.Sprintf("%s.%x", m.Name, h.Sum(nil)[:8])
}

// ptx.zip and spirv.zip hold the modules of All, ptx.zip those of Units as well, built
// by gen. A test compares their entries with the sources.
var (
	//go:embed ptx.zip
	ptxZip []byte
	//go:embed spirv.zip
	spirvZip []byte
)

var (
	ptxVersion = regexp.MustCompile(`(?m)^\.version \d+\.\d+`)
	ptxTarget  = regexp.MustCompile(`(?m)^\.target sm_(\d+)`)
	ptxDivide  = regexp.MustCompile(`\bdiv\.rn\.f32\b`)
	ptxOverlap = regexp.MustCompile(`griddepcontrol\.\w+;`)
)

// Ahead is a module as it is made into PTX ahead of time.
func Ahead(m Module) Module {
	m.Text = join("ahead.cl") + m.Text
	return m
}

// PTX gives the text of a module for a compute capability, ten times its number: 61
// and newer, 80 and newer for modules of Units. The instructions by which launches overlap
// (griddepcontrol, PTX ISA 7.8) want 9.0 as the target; for older cards they are
// left out. Divisions are at most 2 ulp off, as OpenCL C allows and NVIDIA's own
// compiler does it, not rounded right by a loop.
func PTX(m Module, capability int) ([]byte, error) {
	text, err := built(ptxZip, Ahead(m), PTXOptions)
	if err != nil {
		return nil, err
	}
	text = ptxDivide.ReplaceAll(text, []byte("div.full.f32"))
	least := 0
	if t := ptxTarget.FindSubmatch(text); t != nil {
		least, _ = strconv.Atoi(string(t[1]))
	}
	switch {
	case least == 0 || capability < least:
		return nil, fmt.Errorf("module %s was built for capability %d, the card has %d", m.Name, least, capability)
	case capability < 90:
		return ptxOverlap.ReplaceAll(text, nil), nil
	}
	return ptxTarget.ReplaceAll(ptxVersion.ReplaceAll(text, []byte(".version 7.8")), []byte(".target sm_90")), nil
}

// SPIRV gives a module for Intel cards with subgroups of 8.
func SPIRV(m Module) ([]byte, error) { return built(spirvZip, m, SPIRVOptions) }

func built(archive []byte, m Module, options []string) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("the embedded kernels are damaged: %w", err)
	}
	f, err := z.Open(Built(m, options))
	if err != nil {
		return nil, fmt.Errorf("module %s was not built ahead of time", m.Name)
	}
	defer f.Close()
	return io.ReadAll(f)
}
