package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"outcrop/gpu/compute"
)

// TestKernelProgress: kernels are compiled side by side while weights are copied, and
// the progress of both counts up to its end.
func TestKernelProgress(t *testing.T) {
	path := tinySpec{arch: "qwen35", seed: 3}.write(t)
	c := newFakeCard()
	d := c.open(t)
	c.Break(compute.Fault{BuildTakes: 20 * time.Millisecond})
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	type at struct{ done, total int64 }
	last := map[string]at{}
	m, err := Load(context.Background(), p, Options{Devices: []*compute.Device{d}, Threads: 1, Progress: func(phase string, done, total int64) {
		before := last[phase]
		if done < before.done || total < before.total || done > total {
			t.Errorf("%s: %d of %d after %d of %d", phase, done, total, before.done, before.total)
		}
		last[phase] = at{done, total}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if k := last["kernels"]; k.total < 5 || k.done != k.total {
		t.Errorf("kernels: %d of %d at the end", k.done, k.total)
	}
	if u := last["upload"]; u.done == 0 || u.done != u.total {
		t.Errorf("upload: %d of %d at the end", u.done, u.total)
	}
	if _, most := c.Builds(); most < 2 {
		t.Errorf("%d modules were compiled at once", most)
	}
}

// TestCancelCompiling: a load that is given up while kernels are compiled ends at
// once, leaves nothing on the card, and the next one works.
func TestCancelCompiling(t *testing.T) {
	path := tinySpec{arch: "llama", seed: 3}.write(t)
	c := newFakeCard()
	d := c.open(t)
	c.Break(compute.Fault{BuildTakes: 1500 * time.Millisecond})
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	o := Options{Devices: []*compute.Device{d}, Threads: 1}
	m, err := Load(ctx, p, o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v, %v; want context.Canceled", m, err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("giving up took %v", took)
	}
	if used, pinned := d.Used(); used != 0 || pinned > 16<<20 {
		t.Errorf("%d device and %d pinned bytes are held", used, pinned)
	}
	c.Break(compute.Fault{})
	m, err = Load(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestUnitsFail: prompts run without matrix units whose kernels cannot be made, and
// telemetry says so.
func TestUnitsFail(t *testing.T) {
	path := tinySpec{arch: "llama", seed: 3, half: "attn_v"}.write(t)
	for _, fails := range []string{"", "halve"} {
		c := newFakeCard()
		c.nvidia = 90
		d := c.open(t)
		c.Break(compute.Fault{BuildFails: fails})
		p, err := OpenPack(path)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m, err := Load(context.Background(), p, Options{Devices: []*compute.Device{d}, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		slow := m.Telemetry().Device.Slow
		if fails == "" && len(slow) > 0 || fails != "" && (len(slow) != 1 || !strings.Contains(slow[0], "without the matrix units of fake card 0") || !strings.Contains(slow[0], "halve") || strings.Contains(slow[0], "\n")) {
			t.Errorf("%q does not build: %q", fails, slow)
		}
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if err := answerOn(s, faultPrompt); err != nil {
			t.Errorf("%q does not build: %v", fails, err)
		}
		s.Close()
		c.mu.Lock()
		plain, halved := c.launches["matmul"]+c.launches["matmul_few"], c.launches["halve_floats"]+c.launches["halve_rounded"]
		c.mu.Unlock()
		if (halved > 0) != (fails == "") || fails != "" && plain == 0 {
			t.Errorf("%q does not build: %d plain tiles, %d rows made halves", fails, plain, halved)
		}
	}
}
