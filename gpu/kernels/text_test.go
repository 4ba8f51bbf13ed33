package kernels_test

import (
	"regexp"
	"strings"
	"testing"

	"outcrop/gpu/kernels"
)

// TestPlainText looks for what PoCL's compiler takes and others do not, or what
// breaks only on a card.
func TestPlainText(t *testing.T) {
	for _, c := range []struct{ pattern, why string }{
		{`__VA_ARGS__|#define\s+\w+\([^)]*\.\.\.`, "variadic macros are an error in NVIDIA's OpenCL (seen)"},
		{`get_global_size|get_num_groups\((?:[^0]|0\)[^)])`, "sizes of the launch are lost on the way to CUDA; common.cl has groups_x"},
		{`\bdouble\b`, "Arc has no double precision"},
		{`\b(sub_group_barrier|dot_acc_sat|work_group_reduce\w*)\b`, "not in OpenCL C 1.2"},
	} {
		re := regexp.MustCompile(c.pattern)
		for _, m := range kernels.All(32) {
			if found := re.FindString(m.Text); found != "" {
				t.Errorf("%s has %q: %s", m.Name, found, c.why)
				break
			}
		}
	}
}

// TestWaits: a module that says so has BEGIN or WAIT in every kernel, as a launch
// of it may begin before the one before it has ended.
func TestWaits(t *testing.T) {
	kernel := regexp.MustCompile(`(?m)^(?:__kernel|KERNEL(?:_N)?\()[^{;]*\{`)
	modules := append(kernels.All(32), kernels.Flash(128, 128, true), kernels.Halve(), kernels.Many(), kernels.Sample(), kernels.Chunks(128))
	for _, l := range kernels.Layouts() {
		modules = append(modules, kernels.MMA(l), kernels.Half(l, kernels.HalfTiles))
	}
	for _, m := range modules {
		if !m.Waits {
			continue
		}
		starts := kernel.FindAllStringIndex(m.Text, -1)
		if len(starts) == 0 {
			t.Errorf("%s: no kernel found", m.Name)
		}
		for i, s := range starts {
			end := len(m.Text)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			if !strings.Contains(m.Text[s[1]:end], "BEGIN\n") && !strings.Contains(m.Text[s[1]:end], "BEGIN //") {
				t.Errorf("%s: this kernel does not wait: %s", m.Name, strings.Fields(m.Text[s[0]:s[1]])[:4])
			}
		}
	}
}

// TestArchives: what was built ahead of time was built from this text.
func TestArchives(t *testing.T) {
	for _, a := range []struct {
		what  string
		lanes int
		get   func(kernels.Module) ([]byte, error)
	}{{"spirv", 8, kernels.SPIRV}, {"ptx", 32, kernels.PTX}} {
		for _, m := range kernels.All(a.lanes) {
			if b, err := a.get(m); err != nil || len(b) == 0 {
				t.Errorf("%s of %s: %d bytes, %v; go run ./gpu/kernels/gen -%s gpu/kernels/%s.zip", a.what, m.Name, len(b), err, a.what, a.what)
			}
		}
	}
}
