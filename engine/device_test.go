//go:build slow

package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"outcrop/engine/token"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
)

// devices opens n contexts on the first device for tests, each its own.
func devices(t *testing.T, n int) []*compute.Device {
	t.Helper()
	computetest.Prepare()
	want := os.Getenv("OUTCROP_TEST_GPU")
	var out []*compute.Device
	for _, drv := range compute.Drivers() {
		infos, err := drv.Devices()
		if err != nil || want != "" && want != "1" && want != drv.Name() {
			continue
		}
		for _, i := range infos {
			if (want == "") != i.CPU {
				continue
			}
			for len(out) < n {
				out = append(out, computetest.Open(t, drv, i))
			}
			return out
		}
	}
	t.Skip("no device to test on (Debian: apt install pocl-opencl-icd)")
	return nil
}

// deviceLimit is the relative RMS that logits through a device may differ from
// the reference: keys and values are kept as halves, sums are in another order.
const deviceLimit = 1e-3

// deviceBounds are tighter limits of the reference models, about twice what was
// measured on PoCL. Models in block formats are held to twice their own distance
// from floats instead, Gemmas to 2e-3: the library's GELU goes through a table of
// halves.
var deviceBounds = map[string]float64{
	"deepseek2": 5e-4, "deepseek2-yarn": 7e-4, // attention on the CPU
	"glm4moe": 3.5e-4, "gpt-oss": 1e-3,
	"llama": 4e-4, "llama-moe": 4e-4, "llama-ropefreqs": 1e-3,
	"qwen2": 5e-4, "qwen3": 3.5e-4, "qwen3moe": 4e-4,
	"qwen35": 5e-5, "qwen35-nextn": 5e-5, "qwen35moe": 5e-5, "qwen35moe-fused": 5e-5, "qwen35moe-nextn": 6e-5,
	"qwen3next": 7e-5,
	"qwen4exp":  4e-5, "qwen4exp-all": 4e-5, "qwen4exp-ratio1": 5e-5, // streams and a sparse index on the CPU
	"gemma3": 1.5e-3, "gemma2": 4e-4, "gemma4": 2e-3, "gemma4+moe": 2e-3, "gemma4+ple": 1.7e-3,
	"ernie4_5-moe": 1e-3, "granite": 7e-5, "granitemoe": 7e-5, "olmoe": 7e-4, "qwen2moe": 1e-3, "smollm3": 1e-3,
	"lfm2": 1e-5, "lfm2moe": 1e-5, // convolutions on the CPU
}

// deviceParity compares the logits of a reference model through a placement.
func deviceParity(t *testing.T, f *fixture, o Options) {
	t.Helper()
	p, err := OpenPack(f.model())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	o.Threads, o.Context = 2, 256
	m := load(t, f.model(), o)
	for _, s := range m.OnCPU() {
		t.Log(s)
	}
	ses := session(t, m)
	got := logitsOf(t, ses, f)
	limit, pass := deviceLimit, func(int) bool { return true }
	bound, known := deviceBounds[filepath.Base(f.dir)]
	switch {
	case f.quantised:
		limit = 2 * f.toFloat
		if f.near != nil {
			limit = 2 * f.toFloatNear
			pass = func(pos int) bool { return !slices.Contains(f.near, pos) }
		}
	case strings.HasPrefix(p.Arch, "gemma"):
		limit = 2e-3 // the library's GELU goes through an F16 table
	case o.KV == "q8":
		limit = 3e-2 // 8 bits with a scale for 32 values
	case !known:
		t.Errorf("no bound is written for %s", filepath.Base(f.dir))
	}
	if known && o.KV == "" {
		limit = bound
	}
	if f.exact != nil {
		pass = func(pos int) bool { return slices.Contains(f.exact, pos) }
	}
	d, worst := f.distance(got, m.Vocab(), pass)
	t.Logf("relative RMS %.2e (limit %.1e), worst at position %d", d, limit, worst)
	if !(d <= limit) {
		t.Errorf("logits: relative RMS %.3e, want at most %.1e; worst at position %d", d, limit, worst)
	}
	if rep, ok := m.Check(); ok {
		t.Logf("check mode: %d blocks, worst %s", rep.Compared, rep.Worst)
		if rep.First != nil && !f.quantised {
			t.Errorf("check mode: %s", rep.First)
		}
	}
	if f.tieOrder {
		return
	}
	ses.Reset()
	ids, _, _ := generate(t, ses, Request{Prompt: f.prompt, MaxTokens: len(f.greedy), IgnoreEOG: true})
	if n := same(ids, f.greedy); n < len(f.greedy) && !f.quantised {
		t.Errorf("greedy ids part after %d of %d (smallest margin %.3g)", n, len(f.greedy), f.margin)
	}
}

func TestDeviceParity(t *testing.T) {
	devs := devices(t, 1)
	for _, f := range fixtures(t) {
		t.Run(filepath.Base(f.dir), func(t *testing.T) { deviceParity(t, f, Options{Devices: devs}) })
	}
}

// TestDeviceFamilies: the same for the families whose models the test writes.
// Most have parts without kernels, which the CPU computes.
func TestDeviceFamilies(t *testing.T) {
	devs := devices(t, 1)
	dirs, err := os.ReadDir(filepath.Join("testdata", "families"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		t.Run(d.Name(), func(t *testing.T) {
			f := readFixture(t, filepath.Join("testdata", "families", d.Name()))
			arch, variant, _ := strings.Cut(d.Name(), "+")
			f.file = familyModel(t, arch, variant)
			deviceParity(t, f, Options{Devices: devs})
		})
	}
}

// someFixtures gives reference models by name, as far as they are there.
func someFixtures(t *testing.T, names ...string) []*fixture {
	t.Helper()
	var out []*fixture
	for _, f := range fixtures(t) {
		if slices.Contains(names, filepath.Base(f.dir)) {
			out = append(out, f)
		}
	}
	return out
}

// TestDevicePlacements: layers on several devices, one context each; half of
// the layers with the CPU; routed experts with the CPU; small chunks; check
// mode, where every block must agree.
func TestDevicePlacements(t *testing.T) {
	devs := devices(t, 3)
	for _, f := range someFixtures(t, "qwen3moe", "qwen35-nextn", "qwen35moe-iq3_s", "deepseek2", "qwen4exp") {
		p, err := OpenPack(f.model())
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.specification()
		if err != nil {
			t.Fatal(err)
		}
		n := len(s.layers)
		p.Close()
		for name, o := range map[string]Options{
			"split":   {Devices: devs, Placement: Placement{Layers: []int{n - 2, 1, 1}}},
			"half":    {Devices: devs[:1], Placement: Placement{Layers: []int{n / 2}}},
			"experts": {Devices: devs[:2], Placement: Placement{CPUExperts: true}},
			"slots":   {Devices: devs[:1], ExpertRAM: -1, SlotBytes: 160 << 10, Placement: Placement{CPUExperts: true}},
			"check":   {Devices: devs[:1], Check: true, Chunk: 5},
			"f32":     {Devices: devs[:1], KV: "f32"}, // has no kernels: attention on the CPU
			"q8":      {Devices: devs[:1], KV: "q8"},
		} {
			if f.quantised && (name == "f32" || name == "q8") {
				continue // one of floats shows it in less time
			}
			if name == "slots" {
				if e := s.layers[0].expert; e.count == 0 || e.ff%32 != 0 {
					continue // slots take no other widths
				}
				if f.quantised {
					o.SlotBytes = 2 << 20
				}
			}
			t.Run(filepath.Base(f.dir)+"/"+name, func(t *testing.T) { deviceParity(t, f, o) })
		}
	}
}

// TestDeviceDrafts: windows of drafts change nothing, recurrent states on the
// device go back with them, and prompts are reused from snapshots.
func TestDeviceDrafts(t *testing.T) {
	devs := devices(t, 1)
	for _, f := range someFixtures(t, "qwen35-nextn", "qwen3moe") {
		t.Run(filepath.Base(f.dir), func(t *testing.T) {
			var want []token.ID
			for _, by := range []string{"off", "lookup", "auto"} {
				m := load(t, f.model(), Options{Devices: devs, Threads: 2, Context: 256, Draft: by})
				s := session(t, m)
				// A prompt that repeats itself, so that there is something to look up.
				prompt := append(append([]token.ID{}, f.prompt[:20]...), f.prompt[:20]...)
				ids, _, res := generate(t, s, Request{Prompt: prompt, MaxTokens: 40, IgnoreEOG: true})
				t.Logf("%s: %d of %d drafts right", by, res.Accepted, res.Drafted)
				if want == nil {
					want = ids
				}
				if n := same(ids, want); n < len(want) {
					t.Errorf("drafts %s: ids part after %d of %d", by, n, len(want))
				}
				again, _, res := generate(t, s, Request{Prompt: prompt, MaxTokens: 40, IgnoreEOG: true})
				if n := same(again, want); n < len(want) || res.Reused == 0 {
					t.Errorf("drafts %s, again: %d tokens reused, ids part after %d of %d", by, res.Reused, n, len(want))
				}
			}
		})
	}
}
