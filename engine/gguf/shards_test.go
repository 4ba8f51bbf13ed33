package gguf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// writeShards writes a model of n shards, one tensor each, and returns their paths.
func writeShards(t *testing.T, dir string, n int, change func(i int, w *gguf.Writer)) []string {
	t.Helper()
	var paths []string
	for i := range n {
		w := gguf.NewWriter()
		if i == 0 {
			w.Set("general.architecture", "llama")
		}
		w.Set("split.no", uint16(i))
		w.Set("split.count", uint16(n))
		w.Set("split.tensors.count", int32(n))
		w.Add(fmt.Sprintf("t%d", i), quant.F32, []int64{1}, floats(float32(i)))
		if change != nil {
			change(i, w)
		}
		path := filepath.Join(dir, fmt.Sprintf("model-%05d-of-%05d.gguf", i+1, n))
		save(t, w, path)
		paths = append(paths, path)
	}
	return paths
}

func TestShards(t *testing.T) {
	paths := writeShards(t, t.TempDir(), 3, nil)
	for _, from := range paths {
		f, err := gguf.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		if arch, err := f.Meta().String("general.architecture"); err != nil || arch != "llama" {
			t.Errorf("from %s: architecture %q, %v", filepath.Base(from), arch, err)
		}
		if len(f.Shards()) != 3 || len(f.Tensors()) != 3 {
			t.Fatalf("%d shards, %d tensors", len(f.Shards()), len(f.Tensors()))
		}
		for i, s := range f.Shards() {
			if s.Path != paths[i] || int64(len(s.Mapped)) != s.Size {
				t.Errorf("shard %d is %s of %d bytes, %d mapped", i, s.Path, s.Size, len(s.Mapped))
			}
			x := f.Tensor(fmt.Sprintf("t%d", i))
			if x.Shard != i || string(f.Data(x)) != string(floats(float32(i))) {
				t.Errorf("tensor %d: %+v %v", i, x, f.Data(x))
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestShardFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		change func(i int, w *gguf.Writer)
		after  func(paths []string) (open string)
		want   []string
	}{
		{"missing", 4, nil, func(p []string) string { os.Remove(p[1]); os.Remove(p[3]); return p[2] },
			[]string{"2 of 4 shards are missing", "model-00002-of-00004.gguf, model-00004-of-00004.gguf"}},
		{"many missing", 30, nil, func(p []string) string {
			for _, x := range p[1:] {
				os.Remove(x)
			}
			return p[0]
		}, []string{"29 of 30 shards are missing", "and 21 more"}},
		{"renamed, mesh-llm#311", 2, nil, func(p []string) string {
			to := filepath.Join(filepath.Dir(p[0]), "mine.gguf")
			os.Rename(p[0], to)
			return to
		}, []string{"shard 1 of 2", "must end in -00001-of-00002.gguf"}},
		{"swapped names", 2, nil, func(p []string) string {
			os.Rename(p[0], p[0]+".x")
			os.Rename(p[1], p[0])
			os.Rename(p[0]+".x", p[1])
			return p[0]
		}, []string{"metadata says it is shard 2 of 2", "-00002-of-00002.gguf"}},
		{"a stranger among them", 3, func(i int, w *gguf.Writer) {
			if i == 2 {
				w.Set("split.tensors.count", int32(9))
			}
		}, nil, []string{"split.tensors.count is 9", "different models"}},
		{"wrong number", 3, func(i int, w *gguf.Writer) {
			if i == 1 {
				w.Set("split.no", uint16(2))
			}
		}, nil, []string{"by its name it is shard 2 of 3, by its metadata 3"}},
		{"other count", 3, func(i int, w *gguf.Writer) {
			if i == 2 {
				w.Set("split.count", uint16(4))
				w.Set("split.no", uint16(3))
			}
		}, nil, []string{"one of 4 shards"}},
		{"number past the count", 2, func(i int, w *gguf.Writer) { w.Set("split.no", uint16(i+2)) }, nil, []string{"split.no is 2, with 2 shards it is at most 1"}},
		{"no number", 2, func(i int, w *gguf.Writer) {
			if i == 0 {
				w.Set("split.no", "first")
			}
		}, nil, []string{`key "split.no" has type string`}},
		{"tensors missing", 2, func(i int, w *gguf.Writer) { w.Set("split.tensors.count", int32(5)) }, nil, []string{"hold 2 tensors, split.tensors.count says 5"}},
		{"negative total", 2, func(i int, w *gguf.Writer) { w.Set("split.tensors.count", int32(-1)) }, nil, []string{"split.tensors.count", "-1"}},
		{"tensor in two shards", 2, func(i int, w *gguf.Writer) { w.Add("same", quant.F32, []int64{1}, floats(1)) }, nil, []string{`tensor "same" is in shard 1 and in shard 2`}},
		{"count of 2^60", 1, func(i int, w *gguf.Writer) { w.Set("split.count", uint64(1<<60)) }, nil, []string{"split.count is 1152921504606846976"}},
		{"second is damaged", 3, nil, func(p []string) string {
			os.WriteFile(p[1], []byte("<html>"), 0o600)
			return p[2]
		}, []string{"web page", "model-00002-of-00003.gguf"}},
		{"second is cut", 3, nil, func(p []string) string {
			os.Truncate(p[1], 60)
			return p[0]
		}, []string{"truncated", "model-00002-of-00003.gguf"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			paths := writeShards(t, t.TempDir(), c.n, c.change)
			open := paths[0]
			if c.after != nil {
				open = c.after(paths)
			}
			f, err := gguf.Open(open)
			if err == nil {
				f.Close()
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// TestNotSplit opens single files whose names look like shards.
func TestNotSplit(t *testing.T) {
	for _, name := range []string{"best-of-breed.gguf", "model-00006-of-00005.gguf", "model-00000-of-00002.gguf", "model-00001-of-00002.gguf"} {
		w := gguf.NewWriter()
		w.Set("general.architecture", "llama")
		w.Set("split.count", uint16(1))
		path := filepath.Join(t.TempDir(), name)
		save(t, w, path)
		f, err := gguf.Open(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(f.Shards()) != 1 {
			t.Errorf("%s: %d shards", name, len(f.Shards()))
		}
		f.Close()
	}
}

func TestShardName(t *testing.T) {
	for _, c := range []struct {
		path, prefix string
		no, count    int
		ok           bool
	}{
		{"/a/b/m-00002-of-00003.gguf", "/a/b/m", 2, 3, true},
		{"m-Q4_K-00001-of-00001.gguf", "m-Q4_K", 1, 1, true},
		{"-00001-of-00002.gguf", "", 1, 2, true},
		{"best-of-breed.gguf", "", 0, 0, false},
		{"m-00000-of-00002.gguf", "", 0, 0, false},
		{"m-00006-of-00005.gguf", "", 0, 0, false},
		{"m-1-of-2.gguf", "", 0, 0, false},
		{"m-00001-of-00002.gguf.part", "", 0, 0, false},
		{"m-00001-of-00002", "", 0, 0, false},
	} {
		prefix, no, count, ok := gguf.ShardName(c.path)
		if prefix != c.prefix || no != c.no || count != c.count || ok != c.ok {
			t.Errorf("%s: %q %d %d %v", c.path, prefix, no, count, ok)
		}
	}
}
