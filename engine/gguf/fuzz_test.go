package gguf

import (
	"bytes"
	"errors"
	"testing"

	"outcrop/engine/quant"
)

// FuzzParse feeds the reader with damaged files. It must not panic, and what
// it takes must lie inside the file.
func FuzzParse(f *testing.F) {
	for _, version := range []uint32{2, 3} {
		w := NewWriter()
		w.Version = version
		w.Set("general.alignment", uint32(32))
		w.Set("s", "text")
		w.Set("b", true)
		w.Set("n", []int16{1, 2, 3})
		w.Set("list", []string{"a", "", "ccc"})
		w.Set("split.count", uint16(2))
		w.Add("x", quant.F32, []int64{2, 2}, make([]byte, 16))
		w.Add("y", quant.Q8_0, []int64{32}, make([]byte, 34))
		var b bytes.Buffer
		if _, err := w.WriteTo(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := parse(data)
		if err != nil {
			if h != nil {
				t.Error("a header beside an error")
			}
			return
		}
		for _, key := range h.meta.Keys() {
			if _, ok := h.meta.Any(key); !ok || h.meta.Type(key) == "" {
				t.Errorf("key %q has no value", key)
			}
			for _, err := range []error{
				second(h.meta.String(key)), second(h.meta.Uint(key)), second(h.meta.Int(key)), second(h.meta.Float(key)), second(h.meta.Bool(key)),
				second(h.meta.Strings(key)), second(h.meta.Ints(key)), second(h.meta.Floats(key)), second(h.meta.Bools(key)),
			} {
				if errors.Is(err, ErrNoKey) {
					t.Errorf("key %q is not found", key)
				}
			}
		}
		h.meta.split()
		for _, x := range h.tensors {
			if x.Offset < h.dataStart || x.Bytes < 1 || x.Offset+x.Bytes > int64(len(data)) || x.Values() < 1 {
				t.Errorf("tensor %+v lies outside", x)
			}
			_ = data[x.Offset : x.Offset+x.Bytes]
		}
	})
}

func second[T any](_ T, err error) error { return err }
