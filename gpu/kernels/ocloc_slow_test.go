//go:build slow && linux

package kernels_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/gpu/kernels"
)

// TestOcloc compiles for Intel's cards what decode and prompts need most: it
// builds, nothing spills, the four-byte products of the text are dp4a, and prompts use the
// matrix units (DPAS).
func TestOcloc(t *testing.T) {
	if _, err := exec.LookPath("ocloc"); err != nil {
		t.Skip("ocloc is not installed (Debian: apt install intel-opencl-icd)")
	}
	q4k, _ := kernels.LayoutOf(12)
	q6k, _ := kernels.LayoutOf(14)
	iq4, _ := kernels.LayoutOf(20)
	mxfp4, _ := kernels.LayoutOf(39)
	modules := []kernels.Module{kernels.Rows(), kernels.Quantize(), kernels.Sample(), kernels.Halve(), kernels.Delta(128), kernels.Chunks(128), kernels.Mul(q4k, 1, 8), kernels.Mul(q6k, 1, 8), kernels.Mul(iq4, 1, 8), kernels.Mul(mxfp4, 1, 8), kernels.Mul(q4k, 8, 8), kernels.MatMul(q4k)}
	for _, dev := range []struct {
		name, lanes string
		value       int
	}{{"dg2-g10", "8", 8}, {"dg2-g11", "8", 8}, {"dg2-g12", "8", 8}, {"pvc", "16", 16}} {
		tiles := kernels.DPASTiles(dev.value)
		list := append(modules[:len(modules):len(modules)], kernels.Half(q4k, tiles), kernels.Half(q6k, tiles), kernels.Attend(kernels.Attention{Key: 128, Value: 128, Rows: kernels.AttendRows(128, dev.value)}))
		for _, m := range list {
			dir := t.TempDir()
			src := filepath.Join(dir, "k.cl")
			if err := os.WriteFile(src, []byte(m.Text), 0o644); err != nil {
				t.Fatal(err)
			}
			options := "-cl-std=CL1.2 -cl-mad-enable -DINTEL=" + dev.lanes
			for _, d := range m.Defines {
				options += " -D" + d
			}
			want := "dp4a"
			if strings.HasPrefix(m.Name, "half") {
				want = "dpas"
				options += " -DDPAS=1"
			}
			if m.Large {
				options += " -cl-intel-256-GRF-per-thread"
			}
			cmd := exec.Command("ocloc", "compile", "-device", dev.name, "-file", src, "-out_dir", filepath.Join(dir, "o"), "-options", options)
			dump := filepath.Join(dir, "dump")
			cmd.Env = append(os.Environ(), "IGC_ShaderDumpEnable=1", "IGC_DumpToCustomDir="+dump)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "spilled around") || !strings.Contains(string(out), "Build succeeded") {
				t.Errorf("%s for %s: %v\n%s", m.Name, dev.name, err, out)
				continue
			}
			if !strings.HasPrefix(m.Name, "mul") && !strings.HasPrefix(m.Name, "matmul") && want == "dp4a" {
				continue
			}
			files, _ := filepath.Glob(filepath.Join(dump, "*.asm"))
			n, moved := 0, 0
			for _, f := range files {
				b, _ := os.ReadFile(f)
				n += strings.Count(string(b), want)
				moved += strings.Count(string(b), "<4>:b ")
			}
			if strings.HasPrefix(m.Name, "mul_") && moved > n {
				t.Errorf("%s for %s: %d bytes are moved for %d dp4a (common.cl, dot4)", m.Name, dev.name, moved, n)
			}
			if n == 0 {
				t.Errorf("%s for %s: no %s in %d assembly files", m.Name, dev.name, want, len(files))
			}
			t.Logf("%s for %s: %d %s", m.Name, dev.name, n, want)
		}
	}
}
