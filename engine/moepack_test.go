package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// moeShape is a mixture-of-experts pack for tests of memory: real sizes,
// random weights in Q4_0.
type moeShape struct {
	layers, experts, used, dim, ff int
}

// expertBytes is what all experts of the pack take.
func (c moeShape) expertBytes() int64 {
	return int64(c.layers) * int64(c.experts) * 3 * int64(c.dim*c.ff) / 32 * 18
}

// write makes the file in dir. Layers share their bytes, so that a pack of any
// size takes little memory to make.
func (c moeShape) write(t testing.TB, dir string) string {
	t.Helper()
	const heads, hd = 4, 32
	w := gguf.NewWriter()
	w.Set("general.architecture", "qwen3moe")
	w.Set("general.name", fmt.Sprintf("moe %dx%d", c.layers, c.experts))
	for k, v := range map[string]any{
		"block_count": uint32(c.layers), "context_length": uint32(4096), "embedding_length": uint32(c.dim),
		"attention.head_count": uint32(heads), "attention.head_count_kv": uint32(heads),
		"attention.key_length": uint32(hd), "attention.value_length": uint32(hd),
		"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.freq_base": float32(1e6),
		"expert_count": uint32(c.experts), "expert_used_count": uint32(c.used), "expert_feed_forward_length": uint32(c.ff),
	} {
		w.Set("qwen3moe."+k, v)
	}
	toks := append(byteTokens(), "<|end|>")
	types := make([]int32, len(toks))
	for i := range types {
		types[i] = 1
	}
	w.Set("tokenizer.ggml.model", "gpt2")
	w.Set("tokenizer.ggml.pre", "qwen2")
	w.Set("tokenizer.ggml.tokens", toks)
	w.Set("tokenizer.ggml.token_type", types)
	w.Set("tokenizer.ggml.merges", []string{})
	w.Set("tokenizer.ggml.eos_token_id", uint32(len(toks)-1))
	rng := rand.New(rand.NewPCG(7, 7))
	made := map[string][]byte{}
	floats := func(name string, scale float64, one bool, shape ...int64) {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(scale * rng.NormFloat64())
			if one {
				x[i] = 1
			}
		}
		w.Add(name, quant.F32, shape, floatBytes(x))
	}
	// Blocks of 32 values: a half for the scale, then 16 bytes.
	blocks := func(kind, name string, scale float32, shape ...int64) {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		key := fmt.Sprint(kind, n)
		if made[key] == nil {
			b := make([]byte, n/32*18)
			d := halfBits(scale)
			for i := 0; i < len(b); i += 18 {
				binary.LittleEndian.PutUint16(b[i:], d)
				binary.LittleEndian.PutUint64(b[i+2:], rng.Uint64())
				binary.LittleEndian.PutUint64(b[i+10:], rng.Uint64())
			}
			made[key] = b
		}
		w.Add(name, quant.Q4_0, shape, made[key])
	}
	dim, ff, ex, q := int64(c.dim), int64(c.ff), int64(c.experts), int64(heads*hd)
	floats("token_embd.weight", 1, false, dim, int64(len(toks)))
	floats("output.weight", 0.05, false, dim, int64(len(toks)))
	floats("output_norm.weight", 0, true, dim)
	for il := range c.layers {
		p := fmt.Sprintf("blk.%d.", il)
		floats(p+"attn_norm.weight", 0, true, dim)
		floats(p+"ffn_norm.weight", 0, true, dim)
		floats(p+"attn_q_norm.weight", 0, true, hd)
		floats(p+"attn_k_norm.weight", 0, true, hd)
		for _, n := range []string{"q", "k", "v"} {
			blocks("qkv", p+"attn_"+n+".weight", 0.01, dim, q)
		}
		blocks("o", p+"attn_output.weight", 0.01, q, dim)
		floats(p+"ffn_gate_inp.weight", 0.05, false, dim, ex)
		blocks("up", p+"ffn_gate_exps.weight", 0.01, dim, ff, ex)
		blocks("up", p+"ffn_up_exps.weight", 0.01, dim, ff, ex)
		blocks("down", p+"ffn_down_exps.weight", 0.01, ff, dim, ex)
	}
	path := filepath.Join(dir, "moe.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// halfBits is a positive normal number as a half, cut off.
func halfBits(v float32) uint16 {
	e := 15
	for v < 1 {
		v *= 2
		e--
	}
	return uint16(e<<10) | uint16((v-1)*1024)
}
