package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// floats encodes values as F32 tensor data.
func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// everyKind sets one key of each type of value.
func everyKind() (keys []string, vals map[string]any) {
	vals = map[string]any{
		"a.uint8": uint8(200), "a.int8": int8(-100), "a.uint16": uint16(60000), "a.int16": int16(-30000),
		"a.uint32": uint32(4e9), "a.int32": int32(-2e9), "a.float32": float32(1.5), "a.bool": true,
		"a.string": "Grüße\x00\xff", "a.uint64": uint64(1 << 63), "a.int64": int64(-1 << 62), "a.float64": 0.1,
		"a.empty": "",
		"b.uint8": []uint8{1, 255}, "b.int8": []int8{-1, 2}, "b.uint16": []uint16{1, 65535}, "b.int16": []int16{-5},
		"b.uint32": []uint32{1, 2, 1 << 31}, "b.int32": []int32{-7}, "b.float32": []float32{0.25, -1}, "b.bool": []bool{true, false},
		"b.string": []string{"", "x", "yz"}, "b.uint64": []uint64{1 << 63}, "b.int64": []int64{-9}, "b.float64": []float64{1e300},
		"b.none": []string{}, "b.zero": []int32{},
	}
	for k := range vals {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys, vals
}

func save(t *testing.T, w *gguf.Writer, path string) {
	t.Helper()
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		w := gguf.NewWriter()
		w.Version = version
		keys, vals := everyKind()
		for _, k := range keys {
			w.Set(k, vals[k])
		}
		w.Set("general.alignment", uint32(64))
		w.Add("one", quant.F32, []int64{3}, floats(1, 2, 3))
		w.Add("two", quant.F32, []int64{2, 3, 1, 1}, floats(1, 2, 3, 4, 5, 6))
		w.Add("q", quant.Q8_0, []int64{64, 2}, bytes.Repeat([]byte{7}, 4*34))
		path := filepath.Join(t.TempDir(), "m.gguf")
		save(t, w, path)
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Version() != int(version) {
			t.Errorf("version %d, want %d", f.Version(), version)
		}
		if got := f.Meta().Keys(); !slices.Equal(got, append(slices.Clone(keys), "general.alignment")) {
			t.Errorf("keys %v", got)
		}
		for _, k := range keys {
			got, ok := f.Meta().Any(k)
			if !ok || !reflect.DeepEqual(got, vals[k]) {
				t.Errorf("key %s: got %#v, want %#v", k, got, vals[k])
			}
		}
		if len(f.Tensors()) != 3 || f.Tensor("none") != nil {
			t.Errorf("tensors %v", f.Tensors())
		}
		two := f.Tensor("two")
		if !slices.Equal(two.Shape, []int64{2, 3, 1, 1}) || two.Bytes != 24 || two.Offset%64 != 0 || two.Values() != 6 {
			t.Errorf("two is %+v", two)
		}
		if !bytes.Equal(f.Data(two), floats(1, 2, 3, 4, 5, 6)) {
			t.Errorf("data of two: %v", f.Data(two))
		}
		if d := f.Data(f.Tensor("q")); len(d) != 136 || d[135] != 7 {
			t.Errorf("data of q: %v", d)
		}
		for a := gguf.Normal; a <= gguf.Sequential; a++ {
			if err := f.Advise(two, 0, two.Bytes, a); err != nil {
				t.Errorf("%v: %v", a, err)
			}
		}
		if f.Advise(two, 20, 5, gguf.WillNeed) == nil || f.Advise(two, -1, 5, gguf.WillNeed) == nil {
			t.Error("advice past the end is accepted")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error("second close:", err)
		}
		if f.Data(two) != nil {
			t.Error("data after close")
		}
		if err := f.Advise(two, 0, 1, gguf.WillNeed); err == nil {
			t.Error("advice after close is accepted")
		}
		if s, err := f.Meta().String("a.string"); err != nil || s != vals["a.string"] {
			t.Errorf("metadata after close: %q, %v", s, err)
		}
	}
}

func TestGetters(t *testing.T) {
	w := gguf.NewWriter()
	keys, vals := everyKind()
	for _, k := range keys {
		w.Set(k, vals[k])
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	save(t, w, path)
	m, err := gguf.ReadMeta(path)
	if err != nil {
		t.Fatal(err)
	}
	get := func(v any, err error) any {
		if err != nil {
			return err.Error()
		}
		return v
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"uint of int16", get(m.Uint("a.int16")), `key "a.int16" is -30000, a value of 0 or more is needed`},
		{"uint of uint64", get(m.Uint("a.uint64")), uint64(1 << 63)},
		{"int of uint64", get(m.Int("a.uint64")), `key "a.uint64" is 9223372036854775808, which is too large`},
		{"int of int8", get(m.Int("a.int8")), int64(-100)},
		{"int of string", get(m.Int("a.string")), `key "a.string" has type string, wanted an integer`},
		{"uint of array", get(m.Uint("b.int32")), `key "b.int32" has type array of 1 int32, wanted an integer`},
		{"float of float32", get(m.Float("a.float32")), 1.5},
		{"float of integer", get(m.Float("a.uint8")), 200.0},
		{"float of bool", get(m.Float("a.bool")), `key "a.bool" has type bool, wanted a number`},
		{"bool", get(m.Bool("a.bool")), true},
		{"bool of number", get(m.Bool("a.uint8")), `key "a.uint8" has type uint8, wanted bool`},
		{"string of number", get(m.String("a.uint8")), `key "a.uint8" has type uint8, wanted string`},
		{"strings", get(m.Strings("b.string")), []string{"", "x", "yz"}},
		{"strings of string", get(m.Strings("a.string")), `key "a.string" has type string, wanted array of string`},
		{"ints of scalar", get(m.Ints("a.uint16")), []int64{60000}},
		{"ints of array", get(m.Ints("b.uint32")), []int64{1, 2, 1 << 31}},
		{"ints too large", get(m.Ints("b.uint64")), `key "b.uint64" is 9223372036854775808 at element 0, which is too large`},
		{"ints of floats", get(m.Ints("b.float32")), `key "b.float32" has type array of 2 float32, wanted integers`},
		{"floats", get(m.Floats("b.float32")), []float64{0.25, -1}},
		{"floats of scalar", get(m.Floats("a.int16")), []float64{-30000}},
		{"floats of ints", get(m.Floats("b.int8")), []float64{-1, 2}},
		{"bools", get(m.Bools("b.bool")), []bool{true, false}},
		{"bools of scalar", get(m.Bools("a.bool")), []bool{true}},
		{"bools of ints", get(m.Bools("b.int8")), `key "b.int8" has type array of 2 int8, wanted bools`},
		{"type", m.Type("b.string"), "array of 3 string"},
		{"no type", m.Type("nothing"), ""},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %#v, want %#v", c.name, c.got, c.want)
		}
	}
	for name, err := range map[string]error{
		"string": second(m.String("nothing")), "uint": second(m.Uint("nothing")), "int": second(m.Int("nothing")),
		"float": second(m.Float("nothing")), "bool": second(m.Bool("nothing")), "strings": second(m.Strings("nothing")),
		"ints": second(m.Ints("nothing")), "floats": second(m.Floats("nothing")), "bools": second(m.Bools("nothing")),
	} {
		if !errors.Is(err, gguf.ErrNoKey) {
			t.Errorf("%s of an absent key: %v", name, err)
		}
	}
	if m.Has("nothing") || !m.Has("a.empty") {
		t.Error("Has is wrong")
	}
}

func second[T any](_ T, err error) error { return err }

func TestWriterMistakes(t *testing.T) {
	for name, do := range map[string]func(*gguf.Writer){
		"type of value":   func(w *gguf.Writer) { w.Set("k", 1) },
		"type of tensor":  func(w *gguf.Writer) { w.Add("t", 777, []int64{1}, nil) },
		"length":          func(w *gguf.Writer) { w.Add("t", quant.F32, []int64{2}, floats(1)) },
		"block":           func(w *gguf.Writer) { w.Add("t", quant.Q8_0, []int64{31}, nil) },
		"zero dimension":  func(w *gguf.Writer) { w.Add("t", quant.F32, []int64{0}, nil) },
		"five dimensions": func(w *gguf.Writer) { w.Add("t", quant.F32, []int64{1, 1, 1, 1, 1}, floats(1)) },
		"overflow":        func(w *gguf.Writer) { w.Add("t", quant.F32, []int64{1 << 40, 1 << 40}, nil) },
		"alignment":       func(w *gguf.Writer) { w.Set("general.alignment", uint32(48)) },
		"twice": func(w *gguf.Writer) {
			w.Add("t", quant.F32, []int64{1}, floats(1))
			w.Add("t", quant.F32, []int64{1}, floats(1))
		},
	} {
		w := gguf.NewWriter()
		do(w)
		if _, err := w.WriteTo(&bytes.Buffer{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWriterIsDeterministic(t *testing.T) {
	build := func() []byte {
		w := gguf.NewWriter()
		w.Set("x", uint8(1))
		w.Set("y", "why")
		w.Set("x", uint16(2))
		w.Add("t", quant.F32, []int64{1}, floats(1))
		var b bytes.Buffer
		n, err := w.WriteTo(&b)
		if err != nil || n != int64(b.Len()) {
			t.Fatal(n, b.Len(), err)
		}
		return b.Bytes()
	}
	if !bytes.Equal(build(), build()) {
		t.Error("two equal files differ")
	}
}

func TestStarter(t *testing.T) {
	path := filepath.Join("..", "..", "assets", "starter", "starter.gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the starter pack is not in this tree:", err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if arch, err := f.Meta().String("general.architecture"); err != nil || arch != "qwen35moe" {
		t.Errorf("architecture %q, %v", arch, err)
	}
	if f.Tensor("token_embd.weight") == nil {
		t.Error("no token_embd.weight")
	}
}
