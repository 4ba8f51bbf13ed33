//go:build slow

package engine

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/gpu/compute"
)

// TestCheckNamesFault: check mode names the operation whose weights were
// damaged on the device, and nothing before it.
func TestCheckNamesFault(t *testing.T) {
	devs := devices(t, 1)
	for _, f := range someFixtures(t, "qwen3", "qwen3moe", "qwen35-nextn", "qwen3-q8_0") {
		p, err := OpenPack(f.model())
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.specification()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		last := len(s.layers) - 1
		// Each fault is put into the last layer, so that all before it must agree.
		faults := map[string]struct {
			of   func(l *cardLayer) *compute.Buffer
			want string
		}{
			"norm":  {func(l *cardLayer) *compute.Buffer { return l.ffnNorm }, ": norm"},
			"value": {func(l *cardLayer) *compute.Buffer { return weightOf(&l.v) }, "attention: value"},
			"output": {func(l *cardLayer) *compute.Buffer {
				if l.mixer == deltaNet {
					return weightOf(&l.out)
				}
				return weightOf(&l.o)
			}, ": output"},
			"down":    {func(l *cardLayer) *compute.Buffer { return weightOf(&l.down) }, "feed-forward: down"},
			"router":  {func(l *cardLayer) *compute.Buffer { return weightOf(&l.router) }, "experts: router"},
			"experts": {func(l *cardLayer) *compute.Buffer { return weightOf(&l.expDown) }, "experts: experts"},
		}
		for name, x := range faults {
			t.Run(filepath.Base(f.dir)+"/"+name, func(t *testing.T) {
				m := load(t, f.model(), Options{Devices: devs, Threads: 2, Context: 256, Check: true})
				ses := session(t, m)
				l := &m.cards.runs[0].layers[last]
				b := x.of(l)
				if b == nil {
					t.Skip("the layer has none")
				}
				damage(t, b)
				// The damaged expert may not be among the chosen of a few tokens, so
				// the whole prompt goes in.
				if _, err := ses.Logits(context.Background(), f.prompt); err != nil {
					t.Fatal(err)
				}
				rep, _ := m.Check()
				if rep.First == nil {
					t.Fatalf("nothing found: %s", rep)
				}
				if rep.First.Layer != last || !strings.HasSuffix(rep.First.Op, x.want) {
					t.Errorf("first deviation %s, want layer %d%s", rep.First, last, x.want)
				}
			})
		}
	}
}

func weightOf(w *cardMatrix) *compute.Buffer {
	if w.none() {
		return nil
	}
	return w.mul.Weight().Buf
}

// damage turns a bit in every byte of the first part of a buffer that holds
// numbers: signs and exponents change, nothing becomes infinite.
func damage(t *testing.T, b *compute.Buffer) {
	t.Helper()
	raw := make([]byte, min(b.Len(), 1<<12)&^3)
	err := b.Device().Do(func(q *compute.Queue) error {
		if err := q.Read(raw, b, 0); err != nil {
			return err
		}
		for i := range raw {
			if i%4 >= 2 { // the upper half of a float, or every other byte of integers
				raw[i] ^= 0x08
			}
		}
		return q.Write(b, 0, raw)
	})
	if err != nil {
		t.Fatal(err)
	}
}
