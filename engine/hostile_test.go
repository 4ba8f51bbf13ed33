package engine

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/engine/gguf"
)

// TestHostileMetadata: what is wrong in a file is an error that names it,
// never a panic.
func TestHostileMetadata(t *testing.T) {
	set := func(key string, v any) func(*gguf.Writer) {
		return func(w *gguf.Writer) { w.Set(key, v) }
	}
	for _, c := range []struct {
		name string
		spec tinySpec
		want string // part of the error
	}{
		{"no layers", tinySpec{edit: set("llama.block_count", uint32(0))}, "block_count"},
		{"too many layers", tinySpec{edit: set("llama.block_count", uint32(1<<31))}, "block_count"},
		{"more layers than tensors", tinySpec{edit: set("llama.block_count", uint32(3))}, "blk.2.attn_norm.weight is missing"},
		{"zero heads", tinySpec{edit: set("llama.attention.head_count", uint32(0))}, "head_count"},
		{"zero key heads", tinySpec{edit: set("llama.attention.head_count_kv", uint32(0))}, "key heads"},
		{"heads that do not divide", tinySpec{edit: set("llama.attention.head_count_kv", uint32(3))}, "4 heads cannot share 3"},
		{"huge width", tinySpec{edit: set("llama.embedding_length", uint64(1)<<60)}, "embedding_length"},
		{"other width", tinySpec{edit: set("llama.embedding_length", uint32(128))}, "token_embd.weight has shape [64 260], want [128 260]"},
		{"zero width", tinySpec{edit: set("llama.embedding_length", uint32(0))}, "embedding_length"},
		{"width as text", tinySpec{edit: set("llama.embedding_length", "64")}, "embedding_length"},
		{"negative", tinySpec{edit: set("llama.feed_forward_length", int32(-1))}, "feed_forward_length"},
		{"array of the wrong length", tinySpec{edit: set("llama.feed_forward_length", []uint32{1, 2, 3})}, "has 3 values, want 1 or 2"},
		{"odd rotation", tinySpec{edit: set("llama.rope.dimension_count", uint32(7))}, "rope.dimension_count"},
		{"rotation wider than a head", tinySpec{edit: set("llama.rope.dimension_count", uint32(18))}, "rope.dimension_count"},
		{"base of zero", tinySpec{edit: set("llama.rope.freq_base", float32(0))}, "freq_base"},
		{"base that is no number", tinySpec{edit: set("llama.rope.freq_base", float32(math.NaN()))}, "freq_base"},
		{"unknown scaling", tinySpec{edit: set("llama.rope.scaling.type", "magic")}, `"magic"`},
		{"yarn without factor", tinySpec{edit: set("llama.rope.scaling.type", "yarn")}, "yarn"},
		{"no epsilon but infinity", tinySpec{edit: set("llama.attention.layer_norm_rms_epsilon", float32(math.Inf(1)))}, "epsilon"},
		{"experts that are not there", tinySpec{edit: func(w *gguf.Writer) {
			w.Set("llama.expert_count", uint32(8))
			w.Set("llama.expert_used_count", uint32(2))
		}}, "ffn_gate_inp.weight is missing"},
		{"more experts used than there are", tinySpec{edit: func(w *gguf.Writer) {
			w.Set("llama.expert_count", uint32(2))
			w.Set("llama.expert_used_count", uint32(4))
		}}, "4 experts are used of 2"},
		{"missing tensor", tinySpec{skip: map[string]bool{"blk.1.attn_k.weight": true}}, "tensor blk.1.attn_k.weight is missing, want shape [64 32]"},
		{"no embedding", tinySpec{skip: map[string]bool{"token_embd.weight": true}}, "token_embd.weight"},
		{"wrong shape", tinySpec{shapes: map[string][]int64{"blk.0.ffn_down.weight": {64, 96}}}, "tensor blk.0.ffn_down.weight has shape [64 96], want [96 64]"},
		{"extra dimension", tinySpec{shapes: map[string][]int64{"output_norm.weight": {64, 2}}}, "tensor output_norm.weight has shape [64 2], want [64]"},
		{"state heads that do not divide", tinySpec{arch: "qwen35", edit: set("qwen35.ssm.group_count", uint32(3))}, "4 value heads cannot share 3"},
		{"inner size that does not fit", tinySpec{arch: "qwen35", edit: set("qwen35.ssm.inner_size", uint32(65))}, "inner_size"},
		{"interval of zero", tinySpec{arch: "qwen35", edit: set("qwen35.full_attention_interval", uint32(0))}, "full_attention_interval"},
		{"as many drafts as layers", tinySpec{arch: "qwen35", edit: set("qwen35.nextn_predict_layers", uint32(2))}, "nextn_predict_layers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := OpenPack(c.spec.write(t))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			p.Info() // must not panic either
			m, err := Load(context.Background(), p, Options{Threads: 1})
			if err == nil {
				m.Close()
				t.Fatal("loaded")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want it to contain %q", err, c.want)
			}
		})
	}
}

func TestUnknownArch(t *testing.T) {
	p, err := OpenPack(tinySpec{edit: func(w *gguf.Writer) { w.Set("general.architecture", "mamba9") }}.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if in := p.Info(); in.Known || !strings.Contains(in.Problem, "mamba9") || in.Params == 0 {
		t.Errorf("info of an unknown family: %+v", in)
	}
	_, err = Load(context.Background(), p, Options{})
	if !errors.Is(err, ErrUnknownArch) || !strings.Contains(err.Error(), `"mamba9"`) || !strings.Contains(err.Error(), "qwen35moe") {
		t.Errorf("error is %v, want one that names the family and the known ones", err)
	}
}

func TestOpenPackPaths(t *testing.T) {
	file := tinySpec{}.write(t)
	dir := filepath.Dir(file)
	p, err := OpenPack(dir)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "tiny llama" || p.Arch != "llama" || p.Path != dir {
		t.Errorf("pack of a folder: %+v", p)
	}
	p.Close()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.gguf"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPack(dir); err == nil || !strings.Contains(err.Error(), "other.gguf") {
		t.Errorf("a folder of two models: %v", err)
	}
	if _, err := OpenPack(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no .gguf file") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := OpenPack(filepath.Join(dir, "none.gguf")); err == nil {
		t.Error("a missing file opened")
	}
}

func TestPackName(t *testing.T) {
	for in, want := range map[string]string{
		"/a/Qwen3-30B-Q4_K_M.gguf":                 "Qwen3-30B-Q4_K_M",
		"/a/Qwen3-235B-Q4_K_M-00002-of-00003.gguf": "Qwen3-235B-Q4_K_M",
		"/a/one-of-many.gguf":                      "one-of-many",
		"x":                                        "x",
	} {
		if got := packName(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	m := starter(t, Options{Threads: 1})
	in := m.Pack().Info()
	// Figures of the starter's README.
	if in.Params != 16171424 || in.Layers != 8 || in.DraftLayers != 1 || in.Experts != 16 || in.ExpertsUsed != 2 ||
		in.Vocab != 4096 || in.Context != 2048 || !in.ChatTemplate || in.Recurrent != 6 {
		t.Errorf("%+v", in)
	}
	// 6.24 M without the draft block and with both token matrices: the engine
	// reads one row of the embedding, so 4,095 rows of 256 less.
	if want := int64(6240000 - 4095*256); in.ActiveParams < want-30000 || in.ActiveParams > want+30000 {
		t.Errorf("%d active parameters, want about %d", in.ActiveParams, want)
	}
	// Two attention layers and the draft block, 2 heads of 64 for key and value.
	if in.KVPerToken["f16"] != 3*2*2*64*2 {
		t.Errorf("%d bytes of cache per token", in.KVPerToken["f16"])
	}
	if in.Dense+in.Expert > in.Bytes || in.Dense+in.Expert < in.Bytes-200_000 {
		t.Errorf("%d + %d bytes of tensors in a file of %d", in.Dense, in.Expert, in.Bytes)
	}
}

func TestWorkersCount(t *testing.T) {
	files := map[string]string{
		"/sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,4\n",
		"/sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1,5\n",
		"/sys/devices/system/cpu/cpu4/topology/thread_siblings_list": "0,4\n",
		"/proc/self/cgroup":               "0::/user/app\n",
		"/sys/fs/cgroup/user/app/cpu.max": "max 100000\n",
		"/sys/fs/cgroup/user/cpu.max":     "150000 100000\n",
	}
	read := func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
	if n := physicalCores(read, []int{0, 1, 4}); n != 2 {
		t.Errorf("%d cores behind CPUs 0, 1 and 4, want 2", n)
	}
	if n := physicalCores(read, []int{0, 1, 9}); n != 3 {
		t.Errorf("%d cores with one of unknown topology, want 3", n)
	}
	files["/sys/devices/cpu_core/cpus"] = "0-1\n"
	if n := physicalCores(read, []int{0, 1, 2, 3}); n != 2 {
		t.Errorf("%d cores of a processor with two fast ones, want 2", n)
	}
	if n := cpuQuota(read); n != 2 {
		t.Errorf("quota of 1.5 CPUs counts as %d, want 2", n)
	}
	if n := len(parseCPUList("0-3,8,10-11,x")); n != 7 {
		t.Errorf("list has %d CPUs, want 7", n)
	}
	if DefaultThreads() < 1 {
		t.Error("no threads")
	}
}
