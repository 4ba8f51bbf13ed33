package kernels_test

import (
	"fmt"
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
	for _, m := range append(kernels.All(32), kernels.Units()...) {
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
	check := func(what string, list []kernels.Module, get func(kernels.Module) ([]byte, error)) {
		for _, m := range list {
			if b, err := get(m); err != nil || len(b) == 0 {
				t.Errorf("%s of %s: %d bytes, %v; go run ./gpu/kernels/gen -%s gpu/kernels/%s.zip", what, m.Name, len(b), err, what, what)
			}
		}
	}
	check("spirv", kernels.All(8), kernels.SPIRV)
	check("ptx", append(kernels.All(32), kernels.Units()...), func(m kernels.Module) ([]byte, error) { return kernels.PTX(m, 90) })
}

// TestPTX: the text is that of the card's capability: launches overlap from 9.0 on,
// matrix units are there from 8.0 on.
func TestPTX(t *testing.T) {
	layout := kernels.Layouts()[0]
	for _, m := range []kernels.Module{kernels.Rows(), kernels.Half(layout, kernels.HalfTiles), kernels.MMA(layout), kernels.Flash(128, 128, false)} {
		least := 80
		if m.Name == "rows" {
			least = 61
		}
		for _, capability := range []int{61, 75, 80, 89, 90, 120} {
			b, err := kernels.PTX(m, capability)
			if capability < least {
				if err == nil {
					t.Errorf("%s for %d: no error, it needs %d", m.Name, capability, least)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s for %d: %v", m.Name, capability, err)
				continue
			}
			target, version := fmt.Sprintf(".target sm_%d", least), "7.0"
			if least == 61 {
				version = "6.0"
			}
			if capability >= 90 {
				target, version = ".target sm_90", "7.8"
			}
			for _, want := range []string{target + "\n", ".version " + version + "\n", ".entry "} {
				if !strings.Contains(string(b), want) {
					t.Errorf("%s for %d lacks %q", m.Name, capability, want)
				}
			}
			if n := strings.Count(string(b), "div.rn.f32"); n > 0 {
				t.Errorf("%s for %d has %d divisions by a loop", m.Name, capability, n)
			}
			if n := strings.Count(string(b), "griddepcontrol.wait;"); (n > 0) != (capability >= 90) {
				t.Errorf("%s for %d waits for the launch before in %d places", m.Name, capability, n)
			}
		}
	}
}
