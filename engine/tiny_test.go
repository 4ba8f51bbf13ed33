package engine

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// Tiny models for tests: real GGUF files with seeded random weights, or with
// weights that speak a script.

const tinyVocab = 256 + 4

// Special tokens of tiny models, after one token per byte. The last token is
// the only merge.
const (
	tinyEnd token.ID = 256 + iota // end of text
	tinyStart
	tinyTurn // end of turn
)

type tinySpec struct {
	arch    string // llama, qwen35 or gpt-oss
	dim     int
	layers  int
	seed    uint64
	edit    func(w *gguf.Writer)         // changes keys last
	tensors map[string]func(x []float32) // changes values by name
	skip    map[string]bool              // leaves tensors out
	shapes  map[string][]int64           // other shapes
	next    func(id token.ID) token.ID   // script: what follows a token; nil: random weights
	noise   float32                      // of random weights, 0: 0.3
	half    string                       // tensors with this in their name are F16
}

// byteTokens is the printable alphabet of byte-level BPE (GPT-2).
func byteTokens() []string {
	toks := make([]string, 256)
	n := rune(256)
	for b := range 256 {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			toks[b] = string(rune(b))
		default:
			toks[b] = string(n)
			n++
		}
	}
	return toks
}

// bytesOf gives the ids of a text: one per byte.
func bytesOf(s string) []token.ID {
	var ids []token.ID
	for _, b := range []byte(s) {
		ids = append(ids, token.ID(b))
	}
	return ids
}

func floatBytes(x []float32) []byte {
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return b
}

// write makes the file and returns its path.
func (c tinySpec) write(t testing.TB) string {
	t.Helper()
	if c.dim == 0 {
		c.dim = 64
	}
	if c.layers == 0 {
		c.layers = 2
	}
	if c.arch == "" {
		c.arch = "llama"
	}
	if c.noise == 0 {
		c.noise = 0.3
	}
	const heads, kv, hd, ff = 4, 2, 16, 96
	w := gguf.NewWriter()
	key := func(k string, v any) { w.Set(c.arch+"."+k, v) }
	w.Set("general.architecture", c.arch)
	w.Set("general.name", "tiny "+c.arch)
	key("block_count", uint32(c.layers))
	key("context_length", uint32(512))
	key("embedding_length", uint32(c.dim))
	key("feed_forward_length", uint32(ff))
	key("attention.head_count", uint32(heads))
	key("attention.head_count_kv", uint32(kv))
	key("attention.key_length", uint32(hd))
	key("attention.value_length", uint32(hd))
	key("attention.layer_norm_rms_epsilon", float32(1e-5))
	key("rope.dimension_count", uint32(hd))
	key("rope.freq_base", float32(10000))
	if c.arch == "qwen35" {
		key("ssm.conv_kernel", uint32(4))
		key("ssm.state_size", uint32(16))
		key("ssm.group_count", uint32(2))
		key("ssm.time_step_rank", uint32(4))
		key("ssm.inner_size", uint32(64))
		key("full_attention_interval", uint32(2))
	}
	if c.arch == "gpt-oss" {
		key("context_length", uint32(8192))
		key("attention.sliding_window", uint32(40))
		key("expert_count", uint32(4))
		key("expert_used_count", uint32(2))
		key("expert_feed_forward_length", uint32(32))
	}
	toks, types := byteTokens(), make([]int32, tinyVocab)
	toks = append(toks, "<|end|>", "<|start|>", "<|turn|>", "qz")
	for i := range types {
		types[i] = 1
		if i >= 256 && i < tinyVocab-1 {
			types[i] = 3
		}
	}
	w.Set("tokenizer.ggml.model", "gpt2")
	w.Set("tokenizer.ggml.pre", "qwen2")
	w.Set("tokenizer.ggml.tokens", toks)
	w.Set("tokenizer.ggml.token_type", types)
	w.Set("tokenizer.ggml.merges", []string{"q z"})
	w.Set("tokenizer.ggml.eos_token_id", uint32(tinyEnd))
	w.Set("tokenizer.ggml.eot_token_id", uint32(tinyTurn))

	rng := rand.New(rand.NewPCG(c.seed, 7))
	add := func(name string, kind byte, shape ...int64) {
		if c.skip[name] {
			return
		}
		if s, ok := c.shapes[name]; ok {
			shape = s
		}
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			switch kind {
			case 'n': // norm
				x[i] = 1 + 0.1*float32(rng.NormFloat64())
				if c.next != nil {
					x[i] = 1
				}
			case 'a': // decay
				x[i] = -float32(0.2 + rng.Float64())
			case 'w':
				if c.next == nil {
					x[i] = c.noise * float32(rng.NormFloat64())
				}
			case 'e': // embedding
				x[i] = float32(rng.NormFloat64())
			}
		}
		if f := c.tensors[name]; f != nil {
			f(x)
		}
		if c.half != "" && strings.Contains(name, c.half) {
			h := make([]uint16, len(x))
			quant.ToF16(h, x)
			raw := make([]byte, 0, 2*len(h))
			for _, v := range h {
				raw = binary.LittleEndian.AppendUint16(raw, v)
			}
			w.Add(name, quant.F16, shape, raw)
			return
		}
		w.Add(name, quant.F32, shape, floatBytes(x))
	}
	d := int64(c.dim)
	var embed []float32
	keepEmbed := c.tensors["token_embd.weight"]
	if c.tensors == nil {
		c.tensors = map[string]func([]float32){}
	}
	c.tensors["token_embd.weight"] = func(x []float32) {
		if keepEmbed != nil {
			keepEmbed(x)
		}
		embed = x
	}
	add("token_embd.weight", 'e', d, tinyVocab)
	if c.next != nil {
		c.tensors["output.weight"] = func(x []float32) {
			for id := range token.ID(tinyVocab) {
				row := int(c.next(id)) * c.dim
				for i := range c.dim {
					x[row+i] += embed[int(id)*c.dim+i]
				}
			}
		}
	}
	add("output.weight", 'w', d, tinyVocab)
	add("output_norm.weight", 'n', d)
	for il := range c.layers {
		blk := "blk." + string(rune('0'+il)) + "."
		add(blk+"attn_norm.weight", 'n', d)
		if c.arch == "qwen35" && (il+1)%2 != 0 {
			add(blk+"attn_qkv.weight", 'w', d, 128)
			add(blk+"attn_gate.weight", 'w', d, 64)
			add(blk+"ssm_conv1d.weight", 'w', 4, 128)
			add(blk+"ssm_dt.bias", 'w', 4)
			add(blk+"ssm_a", 'a', 4)
			add(blk+"ssm_alpha.weight", 'w', d, 4)
			add(blk+"ssm_beta.weight", 'w', d, 4)
			add(blk+"ssm_norm.weight", 'n', 16)
			add(blk+"ssm_out.weight", 'w', 64, d)
		} else {
			q := int64(heads * hd)
			if c.arch == "qwen35" {
				q *= 2
				add(blk+"attn_q_norm.weight", 'n', hd)
				add(blk+"attn_k_norm.weight", 'n', hd)
			}
			add(blk+"attn_q.weight", 'w', d, q)
			add(blk+"attn_k.weight", 'w', d, kv*hd)
			add(blk+"attn_v.weight", 'w', d, kv*hd)
			add(blk+"attn_output.weight", 'w', heads*hd, d)
		}
		if c.arch != "llama" {
			add(blk+"post_attention_norm.weight", 'n', d)
		} else {
			add(blk+"ffn_norm.weight", 'n', d)
		}
		if c.arch == "gpt-oss" {
			add(blk+"attn_sinks.weight", 'w', heads)
			add(blk+"ffn_gate_inp.weight", 'w', d, 4)
			add(blk+"ffn_gate_exps.weight", 'w', d, 32, 4)
			add(blk+"ffn_up_exps.weight", 'w', d, 32, 4)
			add(blk+"ffn_down_exps.weight", 'w', 32, d, 4)
			continue
		}
		add(blk+"ffn_gate.weight", 'w', d, ff)
		add(blk+"ffn_up.weight", 'w', d, ff)
		add(blk+"ffn_down.weight", 'w', ff, d)
	}
	if c.edit != nil {
		c.edit(w)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// tiny loads a tiny model with random weights.
func tiny(t testing.TB, arch string, o Options) *Model {
	return load(t, tinySpec{arch: arch, seed: 3}.write(t), o)
}

// speaker loads a model that says text after the token start, byte by byte,
// and then end. Bytes in the text must be different from each other.
func speaker(t testing.TB, start byte, text string, end token.ID, o Options) *Model {
	ids := append(append([]token.ID{token.ID(start)}, bytesOf(text)...), end)
	return load(t, tinySpec{dim: 256, seed: 1, next: func(id token.ID) token.ID {
		for i, x := range ids[:len(ids)-1] {
			if x == id {
				return ids[i+1]
			}
		}
		return id
	}}.write(t), o)
}
