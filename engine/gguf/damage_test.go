package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// raw writes headers by hand, right or wrong.
type raw []byte

func (b raw) u8(v uint8) raw   { return append(b, v) }
func (b raw) u32(v uint32) raw { return binary.LittleEndian.AppendUint32(b, v) }
func (b raw) u64(v uint64) raw { return binary.LittleEndian.AppendUint64(b, v) }
func (b raw) str(s string) raw { return append(b.u64(uint64(len(s))), s...) }
func (b raw) pad(n int) raw    { return append(b, make([]byte, n)...) }

// head is the start of a file of version 3.
func head(tensors, pairs uint64) raw {
	return raw("GGUF").u32(3).u64(tensors).u64(pairs)
}

// tensor writes an entry.
func (b raw) tensor(name string, typ uint32, offset uint64, shape ...uint64) raw {
	b = b.str(name).u32(uint32(len(shape)))
	for _, d := range shape {
		b = b.u64(d)
	}
	return b.u32(typ).u64(offset)
}

const (
	tUint32 = 4
	tBool   = 7
	tString = 8
	tArray  = 9
)

// TestDamage opens files that are broken in one way each. Every one must end
// in an error that names the fault, soon, and with little memory. Numbers such
// as llama.cpp#3957 are the public threads in which a reader crashed, hung or
// took the file.
func TestDamage(t *testing.T) {
	deep := head(0, 1).str("k").u32(tArray)
	for range 100000 {
		deep = deep.u32(tArray).u64(1)
	}
	many := head(0, 1).str("k").u32(tArray).u32(tString).u64(1 << 20)
	for _, c := range []struct {
		name string
		data []byte
		want string
		is   error
	}{
		{"empty", nil, "the file is empty", gguf.ErrNotGGUF},
		{"magic only", []byte("GGUF"), "version needs 4 bytes", gguf.ErrTruncated},
		{"half a magic", []byte("GG"), "only 2 bytes", gguf.ErrTruncated},
		{"other magic", []byte("BLOB0000000000000000000000000000"), `begins with "BLOB"`, gguf.ErrNotGGUF},
		{"ggjt", []byte("tjgg\x03\x00\x00\x00"), "older GGML format", gguf.ErrNotGGUF},
		{"html", []byte("\n<!DOCTYPE html><html>404"), "web page", gguf.ErrNotGGUF},
		{"lfs pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 5\n"), "Git LFS pointer", gguf.ErrNotGGUF},
		{"zip", []byte("PK\x03\x04rest"), "zip", gguf.ErrNotGGUF},
		{"gzip", []byte("\x1f\x8b\x08\x00"), "gzip", gguf.ErrNotGGUF},
		{"zstd", []byte("\x28\xb5\x2f\xfd0"), "zstd", gguf.ErrNotGGUF},
		{"safetensors", append(binary.LittleEndian.AppendUint64(nil, 40), `{"a":{"dtype":"F32"}}`...), "safetensors", gguf.ErrNotGGUF},
		{"json", []byte(`{"a": 1}`), "JSON", gguf.ErrNotGGUF},
		{"version 0", raw("GGUF").u32(0).pad(32), "version 0 is not supported", nil},
		{"version 1", raw("GGUF").u32(1).pad(32), "version 1 is not supported", nil},
		{"version 4", raw("GGUF").u32(4).pad(32), "version 4 is not supported", nil},
		{"big-endian, llama.cpp#3957", raw("GGUF").u32(3 << 24).pad(32), "big-endian GGUF is not supported", nil},
		{"big-endian magic", raw("FUGG").u32(3 << 24).pad(32), "big-endian GGUF is not supported", nil},

		{"no counts", raw("GGUF").u32(3), "tensor count needs 8 bytes", gguf.ErrTruncated},
		{"2^63 pairs", head(0, 1<<63).pad(64), "9223372036854775808 metadata pairs do not fit", gguf.ErrTruncated},
		{"2^64-1 tensors", head(math.MaxUint64, 0).pad(64), "18446744073709551615 tensors do not fit", gguf.ErrTruncated},
		{"no pair", head(0, 1), "do not fit", gguf.ErrTruncated},
		{"key of 2^40 bytes, ollama#17042", head(0, 1).u64(1 << 40).pad(20), "key 1 of 1 needs 1099511627776 bytes", gguf.ErrTruncated},
		{"key of 2^64-1 bytes", head(0, 1).u64(math.MaxUint64).pad(20), "needs 18446744073709551615 bytes", gguf.ErrTruncated},
		{"long key", head(0, 1).str(strings.Repeat("k", 70000)).u32(tUint32).u32(1), "is 70000 bytes long", nil},
		{"string of 2^40 bytes", head(0, 1).str("k").u32(tString).u64(1 << 40).pad(20), "needs 1099511627776 bytes", gguf.ErrTruncated},
		{"cut string", head(0, 1).str("k").u32(tString).u64(21).pad(20), `the value of key "k" needs 21 bytes`, gguf.ErrTruncated},
		{"cut number", head(0, 1).str("k").u32(12).pad(4), "needs 8 bytes", gguf.ErrTruncated},
		{"unknown value type", head(0, 1).str("k").u32(13).pad(8), `key "k" has unknown value type 13`, nil},
		{"unknown element type", head(0, 1).str("k").u32(tArray).u32(99).u64(1).pad(8), "unknown element type 99", nil},
		{"bool of 2", head(0, 1).str("k").u32(tBool).u8(2).pad(8), "bool of value 2", nil},
		{"bool of 3 in an array", head(0, 1).str("k").u32(tArray).u32(tBool).u64(2).u8(1).u8(3), "bool of value 3 at element 1", nil},
		{"array of 2^63 bytes, llama.cpp PR27188", head(0, 1).str("k").u32(tArray).u32(0).u64(1 << 63).pad(1), "array of 9223372036854775808 uint8", gguf.ErrTruncated},
		{"array of 2^60 strings", head(0, 1).str("k").u32(tArray).u32(tString).u64(1 << 60).pad(64), "array of 1152921504606846976 string", gguf.ErrTruncated},
		{"array of 2^61 float64", head(0, 1).str("k").u32(tArray).u32(12).u64(1 << 61).pad(64), "array of 2305843009213693952 float64", gguf.ErrTruncated},
		{"array that ends early", many.pad(8 << 20)[:8<<20], "array of 1048576 string", gguf.ErrTruncated},
		{"string in an array that ends early", head(0, 1).str("k").u32(tArray).u32(tString).u64(2).str("a").u64(1 << 50).pad(8), "needs 1125899906842624 bytes", gguf.ErrTruncated},
		{"array of arrays", head(0, 1).str("k").u32(tArray).u32(tArray).u64(1).u32(0).u64(1).u8(1), "array of arrays", nil},
		{"100000 arrays deep", deep.u32(0).u64(0), "array of arrays", nil},
		{"2^62 arrays of arrays", head(0, 1).str("k").u32(tArray).u32(tArray).u64(1 << 62).pad(64), "array of arrays", nil},
		{"key twice", head(0, 2).str("k").u32(tUint32).u32(1).str("k").u32(tUint32).u32(2), `key "k" appears twice`, nil},

		{"alignment 0", head(0, 1).str("general.alignment").u32(tUint32).u32(0), "general.alignment is 0", nil},
		{"alignment 48", head(0, 1).str("general.alignment").u32(tUint32).u32(48), "general.alignment is 48", nil},
		{"alignment 2^31", head(0, 1).str("general.alignment").u32(tUint32).u32(1 << 31), "at most 1073741824", nil},
		{"alignment of type string", head(0, 1).str("general.alignment").u32(tString).str("32"), `key "general.alignment" has type string, wanted an integer`, nil},
		{"alignment below 0", head(0, 1).str("general.alignment").u32(5).u32(math.MaxUint32), "is -1", nil},

		{"5 dimensions", head(1, 0).tensor("t", 0, 0, 1, 1, 1, 1, 1).pad(64), "has 5 dimensions", nil},
		{"1e6 dimensions, llama.cpp#25378", head(1, 0).str("t").u32(1000000).pad(64), "has 1000000 dimensions", nil},
		{"2^32-1 dimensions", head(1, 0).str("t").u32(math.MaxUint32).pad(64), "has 4294967295 dimensions", nil},
		{"dimension of 0, ggml PR1517", head(1, 0).tensor("t", 0, 0, 4, 0).pad(64), "0 values in dimension 1", nil},
		{"negative dimension", head(1, 0).tensor("t", 0, 0, 4, math.MaxUint64).pad(64), "more values than can be counted", nil},
		{"product wraps to 0, llama.cpp PR18674", head(1, 0).tensor("t", 0, 0, 1<<32, 1<<32).pad(64), "more values than can be counted", nil},
		{"product wraps to 4", head(1, 0).tensor("t", 0, 0, 1<<62+1, 4).pad(64), "more values than can be counted", nil},
		{"bytes overflow", head(1, 0).tensor("t", 0, 0, 1<<62).pad(64), "size in bytes overflows", nil},
		{"unknown type, llama.cpp#11975", head(1, 0).tensor("blk.0.x", 77, 0, 32).pad(64), `tensor "blk.0.x": unknown tensor type 77: a newer version`, gguf.ErrUnknownType},
		{"removed type", head(1, 0).tensor("t", 4, 0, 32).pad(64), "unknown tensor type 4", gguf.ErrUnknownType},
		{"type of 2^32-1", head(1, 0).tensor("t", math.MaxUint32, 0, 32).pad(64), "unknown tensor type 4294967295", gguf.ErrUnknownType},
		{"rows of half a block", head(1, 0).tensor("t", 8, 0, 48).pad(128), "rows of 48 values are not whole blocks of 32", nil},
		{"data past the end", head(1, 0).tensor("t", 0, 0, 100).pad(64), `tensor "t" needs bytes 0 to 400`, gguf.ErrTruncated},
		{"no data", head(1, 0).tensor("t", 0, 0, 1), `needs bytes 0 to 4 of the data section, 0 are there`, gguf.ErrTruncated},
		{"offset of 2^50", head(1, 0).tensor("t", 0, 1<<50, 1).pad(64), "needs bytes 1125899906842624", gguf.ErrTruncated},
		{"offset of 2^63", head(1, 0).tensor("t", 0, 1<<63, 1).pad(64), "offset 9223372036854775808 overflows", nil},
		{"largest offset", head(1, 0).tensor("t", 0, math.MaxInt64&^31, 1).pad(64), "needs bytes", gguf.ErrTruncated},
		{"offset off the alignment", head(1, 0).tensor("t", 0, 4, 1).pad(128), "not a multiple of the alignment 32", nil},
		{"overlap", head(2, 0).tensor("a", 0, 0, 16).tensor("b", 0, 32, 4).pad(256), `tensors "a" and "b" overlap`, nil},
		{"same place", head(2, 0).tensor("a", 0, 0, 4).tensor("b", 0, 0, 4).pad(256), "overlap", nil},
		{"tensor twice", head(2, 0).tensor("a", 0, 0, 4).tensor("a", 0, 32, 4).pad(256), `tensor "a" appears twice`, nil},
		{"cut directory", head(2, 0).tensor("a", 0, 0, 4).str("b").u32(1).u64(4), "", gguf.ErrTruncated},
		{"name of 2^40 bytes", head(1, 0).u64(1 << 40).pad(64), "tensor entry 1 of 1 needs 1099511627776 bytes", gguf.ErrTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			f, err := gguf.Open(path)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if err == nil {
				f.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("error %q does not name the file", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %q is not %q", err, c.is)
			}
			if took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("took %d MiB", used>>20)
			}
		})
	}
}

// TestSmallest opens files that are unusual but right.
func TestSmallest(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"nothing in it", head(0, 0)},
		{"a scalar", head(1, 0).tensor("t", 0, 0).pad(64)},
		{"no padding at the end", head(1, 0).tensor("t", 0, 0, 1).pad(12 + 4)[:24+33+7+4]},
		{"tensors out of order", head(2, 0).tensor("b", 0, 32, 1).tensor("a", 0, 0, 1).pad(128)},
		{"empty key and name", head(1, 1).str("").u32(tUint32).u32(1).tensor("", 0, 0, 1).pad(64)},
	} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, x := range f.Tensors() {
			if len(f.Data(x)) != 4 {
				t.Errorf("%s: %d bytes of %q", c.name, len(f.Data(x)), x.Name)
			}
		}
		f.Close()
	}
}

// TestEveryCut opens a good file cut at every length: llama.cpp-like readers
// took such files and read past their end.
func TestEveryCut(t *testing.T) {
	w := gguf.NewWriter()
	keys, vals := everyKind()
	for _, k := range keys {
		w.Set(k, vals[k])
	}
	w.Add("a", quant.F32, []int64{8}, make([]byte, 32))
	w.Add("b", quant.F32, []int64{8}, make([]byte, 32))
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	for n := range b.Len() {
		if err := os.WriteFile(path, b.Bytes()[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err == nil {
			f.Close()
			t.Fatalf("a file cut to %d of %d bytes is taken", n, b.Len())
		}
	}
}

// TestUnknownTypeStillListed makes sure that the metadata of a file of the
// future can be read even though the model cannot.
func TestUnknownTypeStillListed(t *testing.T) {
	data := head(1, 1).str("general.architecture").u32(tString).str("future").tensor("t", 99, 0, 32).pad(64)
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gguf.Open(path); !errors.Is(err, gguf.ErrUnknownType) {
		t.Fatal(err)
	}
	m, err := gguf.ReadMeta(path)
	if err != nil {
		t.Fatal(err)
	}
	if arch, _ := m.String("general.architecture"); arch != "future" {
		t.Errorf("architecture %q", arch)
	}
}

func TestWrongPaths(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ path, want string }{
		{dir, "it is a folder"},
		{filepath.Join(dir, "absent.gguf"), "no such file"},
		{filepath.Join(dir, "big.gguf.part1of2"), "cut in parts: join them first"},
	} {
		if strings.Contains(c.path, "part1") {
			if err := os.WriteFile(c.path, head(0, 0), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := gguf.Open(c.path)
		if err == nil || runtime.GOOS != "windows" && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.path, err)
		}
		if c.path != dir && strings.HasSuffix(c.path, ".gguf") && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v is not ErrNotExist", err)
		}
	}
}
