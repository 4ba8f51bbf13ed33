package kernels

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// What the modules of All are built with ahead of time.
var (
	SPIRVOptions = []string{"-cl-std=CL1.2", "-cl-mad-enable", "-DINTEL=8"}
	PTXOptions   = []string{"-cl-std=CL1.2", "-cl-mad-enable", "-DNVIDIA=61"}
)

// Built names the result of building m with options: module, dot, hash of all
// that went in.
func Built(m Module, options []string) string {
	h := sha256.New()
	h.Write([]byte(strings.Join(options, " ") + "\n" + strings.Join(m.Defines, " ") + "\n" + m.Text))
	return fmt.Sprintf("%s.%x", m.Name, h.Sum(nil)[:8])
}

// ptx.zip and spirv.zip hold the modules of All, built by gen. A test compares
// their entries with the sources.
var (
	//go:embed ptx.zip
	ptxZip []byte
	//go:embed spirv.zip
	spirvZip []byte
)

// PTX gives the text of a module for compute capability 6.1 and newer.
func PTX(m Module) ([]byte, error) { return built(ptxZip, m, PTXOptions) }

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
