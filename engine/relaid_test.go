package engine

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/guard"
	"outcrop/engine/quant"
)

// gridPack is the starter with its gate and up experts replaced by random
// IQ3_S blocks: nonsense, but the same nonsense for every layout.
func gridPack(t *testing.T) *Pack {
	t.Helper()
	src, err := gguf.Open("../assets/starter/starter.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	w := gguf.NewWriter()
	for _, k := range src.Meta().Keys() {
		v, _ := src.Meta().Any(k)
		w.Set(k, v)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	f, err := quant.Of(quant.IQ3_S)
	if err != nil {
		t.Fatal(err)
	}
	for _, ten := range src.Tensors() {
		typ, data := ten.Type, src.Data(ten)
		if strings.Contains(ten.Name, "ffn_gate_exps") || strings.Contains(ten.Name, "ffn_up_exps") {
			typ = quant.IQ3_S
			data = make([]byte, int(ten.Shape[0]*ten.Shape[1]*ten.Shape[2])/f.Block*f.Bytes)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			for b := 0; b < len(data); b += f.Bytes {
				d := quant.F32ToF16(0.0005)
				data[b], data[b+1] = byte(d), byte(d>>8)
			}
		}
		w.Add(ten.Name, typ, ten.Shape, data)
	}
	path := filepath.Join(t.TempDir(), "grid.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// The second layout changes speed, never the answer; and it goes when the
// guard asks, in the middle of an answer.
func TestRelaidSameAnswer(t *testing.T) {
	p := gridPack(t)
	f, _ := quant.Of(quant.IQ3_S)
	grows := f.Faster(256) != nil // this processor has a larger, faster layout
	load := func(relay int64) *Model {
		m, err := Load(t.Context(), p, Options{Threads: 2, Draft: "off", Relay: relay})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	plain := load(0)
	want, _, err := answerOf(t, plain, 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := plain.Telemetry().Relaid; n != 0 {
		t.Errorf("%d bytes laid out anew without being asked", n)
	}
	m := load(1 << 40)
	full := m.Telemetry().Relaid
	if full == 0 {
		t.Fatal("nothing was laid out anew")
	}
	if got, _, err := answerOf(t, m, 20, nil); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	got, _, err := answerOf(t, m, 20, func(i int) {
		if i == 7 {
			m.Relieve(guard.Decision{Step: guard.ShrinkRAM})
		}
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("dropped in between: %v, %v; want %v", got, err, want)
	}
	if n := m.Telemetry().Relaid; n != 0 {
		t.Errorf("%d bytes are still held after the guard asked for them", n)
	}
	// Without room to grow there are plain copies only; with less, none.
	if some := load(p.Size()).Telemetry().Relaid; some == 0 || grows && some >= full {
		t.Errorf("room for plain copies: %d of %d bytes", some, full)
	}
	if none := load(p.Size() - 1).Telemetry().Relaid; none != 0 {
		t.Errorf("%d bytes of copies without room for them", none)
	}
}
