//go:build slow && linux

package compute_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// TestAUB runs a decode step of a small model through Intel's real drivers
// without a card: in AUB mode NEO compiles and accepts everything and writes the
// command stream away; kernels do not run.
func TestAUB(t *testing.T) {
	found, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so*")
	if len(found) == 0 {
		t.Skip("Intel's drivers are not installed (Debian: apt install intel-opencl-icd libze1)")
	}
	for _, driver := range []string{"opencl", "levelzero"} {
		t.Run(driver, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestAUBChild$", "-test.v")
			cmd.Env = append(os.Environ(), "OUTCROP_AUB="+driver, "NEOReadDebugKeys=1", "SetCommandStreamReceiver=1", "ProductFamilyOverride=dg2",
				"HardwareInfoOverride=8x4x16", "ForceDeviceId=0x56a0", "AUBDumpCaptureFileName="+os.DevNull)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestAUBChild") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAUBChild(t *testing.T) {
	name := os.Getenv("OUTCROP_AUB")
	if name == "" {
		t.Skip("is run by TestAUB")
	}
	for _, drv := range compute.Drivers() {
		if drv.Name() != name {
			continue
		}
		infos, err := drv.Devices()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			if i.CPU {
				continue
			}
			t.Logf("%s, %s, %s, %d units, %d bytes, largest %d", i, i.API, i.Version, i.Units, i.Memory, i.MaxAlloc)
			d, err := compute.Open(drv, i, compute.Options{})
			if err != nil {
				t.Fatal(err)
			}
			step(t, d)
			if err := d.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			return
		}
	}
	t.Fatalf("driver %s has no card in AUB mode", name)
}

// step records one layer of a dense model in eight launches, and replays it.
func step(t *testing.T, d *compute.Device) {
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const dim, ff, heads, kv, hd, ctx = 256, 512, 4, 2, 64, 64
	set, err := ops.New(d)
	ok(err)
	arena := d.Arena(4 << 20)
	get := func(n int) *compute.Buffer {
		b, err := arena.Alloc(int64(n))
		ok(err)
		return b
	}
	matrix := func(typ uint32, rows, cols int) *ops.Mul {
		size, err := ops.WeightSize(typ, rows, cols)
		ok(err)
		w, err := ops.NewWeight(typ, rows, cols, 1, get(int(size)))
		ok(err)
		m, err := set.Mul(w, 1)
		ok(err)
		return m
	}
	const q4k, q6k = 12, 14
	qkv, o, gateUp, down := matrix(q4k, (heads+2*kv)*hd, dim), matrix(q4k, dim, heads*hd), matrix(q4k, 2*ff, dim), matrix(q6k, dim, ff)
	rows, err := set.Rows()
	ok(err)
	att, err := set.Attention(ops.Heads{Query: heads, KV: kv, Key: hd, Value: hd, Rot: hd, Neox: true, Scale: 0.125, Eps: 1e-6})
	ok(err)
	acts := func(cols int) *ops.Acts {
		a, err := ops.NewActs(arena, 1, cols, false, true)
		ok(err)
		return a
	}
	x, y, norm, xb, ab, hb := get(4*dim), get(4*(heads+2*kv)*hd), get(4*dim), acts(dim), acts(heads*hd), acts(ff)
	kb, vb := ops.CacheBytes(kv, hd, hd, ctx, false)
	cut := func(off, n int) *compute.Buffer {
		b, err := y.Slice(int64(4*off), int64(4*n))
		ok(err)
		return b
	}
	s := &ops.Step{Tokens: 1, Q: y, K: cut(heads*hd, kv*hd), V: cut((heads+kv)*hd, kv*hd), LdQ: (heads + 2*kv) * hd, LdK: (heads + 2*kv) * hd, LdV: (heads + 2*kv) * hd,
		CS: get(4 * hd), State: get(8), Splits: 2, Cache: &ops.Cache{Heads: kv, Key: hd, Value: hd, Context: ctx, K: get(int(kb)), V: get(int(vb))}}
	s.Parts, s.To = get(int(att.PartsBytes(1, 2))), ab
	seq, err := d.Record(func(q *compute.Queue) error {
		for _, op := range []func() error{
			func() error { return rows.Norm(q, 1, ops.Norm{X: x, N: dim, W: norm, Eps: 1e-6, To: xb}) },
			func() error { return qkv.Run(q, xb, 1, ops.Out{Y: y, Ld: s.LdQ}) },
			func() error { return att.Run(q, rows, s) },
			func() error { return o.Run(q, ab, 1, ops.Out{Y: x, Ld: dim, Flags: ops.Add}) },
			func() error { return rows.Norm(q, 1, ops.Norm{X: x, N: dim, W: norm, Eps: 1e-6, To: xb}) },
			func() error { return gateUp.RunGLU(q, xb, 1, ops.GLU{To: hb}) },
			func() error { return down.Run(q, hb, 1, ops.Out{Y: x, Ld: dim, Flags: ops.Add}) },
		} {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	})
	ok(err)
	got := make([]byte, 4*dim)
	for range 2 {
		ok(d.Do(func(q *compute.Queue) error {
			if err := q.Write(x, 0, got); err != nil {
				return err
			}
			if err := q.Replay(seq); err != nil {
				return err
			}
			return q.Read(got, x, 0)
		}))
	}
}
