package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// TestFamilies checks families without a stored model: the test writes each
// model from a seed, and testdata/families/NAME holds what llama.cpp (0.4.0,
// AVX2 code, F32 cache) computes with the same file.
func TestFamilies(t *testing.T) {
	dirs, err := os.ReadDir(filepath.Join("testdata", "families"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		t.Run(d.Name(), func(t *testing.T) {
			f := readFixture(t, filepath.Join("testdata", "families", d.Name()))
			arch, variant, _ := strings.Cut(d.Name(), "+")
			f.file = familyModel(t, arch, variant)
			f.check(t)
		})
	}
}

// familyModel writes a small model of a family with seeded random weights.
func familyModel(t *testing.T, arch, variant string) string {
	w := gguf.NewWriter()
	rng := rand.New(rand.NewPCG(9, 9))
	src, err := gguf.Open(fixturePath("llama-ropefreqs"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	w.Set("general.architecture", arch)
	w.Set("general.name", "random "+arch)
	for _, k := range src.Meta().Keys() {
		if strings.HasPrefix(k, "tokenizer.") {
			v, _ := src.Meta().Any(k)
			w.Set(k, v)
		}
	}
	key := func(k string, v any) { w.Set(arch+"."+k, v) }
	ten := func(name string, shape ...int64) {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		vals := make([]float32, n)
		for i := range vals {
			x := rng.NormFloat64()
			switch {
			case strings.Contains(name, "norm"):
				x = 1 + 0.2*x
			case strings.HasSuffix(name, ".bias"):
				x *= 0.3
			case strings.Contains(name, "token_embd"):
				x *= 0.7
			case name == "rope_freqs.weight": // a quarter of the pairs turns
				x = 1
				if i >= 4 {
					x = 1e30
				}
			case strings.Contains(name, "conv"):
				x *= 0.5
			case strings.HasSuffix(name, "scale.weight") || strings.HasSuffix(name, ".scale"):
				x = 0.8 + 0.2*x
			default:
				x *= 1.3 / math.Sqrt(float64(shape[0]))
			}
			vals[i] = float32(x)
		}
		w.Add(name, quant.F32, shape, floatBytes(vals))
	}
	const d, heads, hd, ff = 64, 4, 16, 96
	kv := int64(2)
	layers := 4
	base := func(n int) {
		layers = n
		key("block_count", uint32(n))
		key("context_length", uint32(2048))
		key("embedding_length", uint32(d))
		key("feed_forward_length", uint32(ff))
		key("attention.head_count", uint32(heads))
		key("attention.head_count_kv", uint32(kv))
		key("attention.key_length", uint32(hd))
		key("attention.value_length", uint32(hd))
		key("attention.layer_norm_rms_epsilon", float32(1e-6))
		key("rope.dimension_count", uint32(hd))
		key("rope.freq_base", float32(10000))
		key("vocab_size", uint32(512))
		ten("token_embd.weight", d, 512)
	}
	attn := func(p string) {
		ten(p+"attn_q.weight", d, heads*hd)
		ten(p+"attn_k.weight", d, kv*hd)
		ten(p+"attn_v.weight", d, kv*hd)
		ten(p+"attn_output.weight", heads*hd, d)
	}
	dense := func(p string) {
		ten(p+"ffn_gate.weight", d, ff)
		ten(p+"ffn_up.weight", d, ff)
		ten(p+"ffn_down.weight", ff, d)
	}
	moe := func(p string, f, e int64) {
		ten(p+"ffn_gate_inp.weight", d, e)
		ten(p+"ffn_gate_exps.weight", d, f, e)
		ten(p+"ffn_up_exps.weight", d, f, e)
		ten(p+"ffn_down_exps.weight", f, d, e)
	}
	shared := func(p string, f int64) {
		ten(p+"ffn_gate_shexp.weight", d, f)
		ten(p+"ffn_up_shexp.weight", d, f)
		ten(p+"ffn_down_shexp.weight", f, d)
	}
	switch arch {
	case "olmoe":
		base(3)
		kv = heads
		key("attention.head_count_kv", uint32(kv))
		key("expert_count", uint32(8))
		key("expert_used_count", uint32(2))
		ten("output_norm.weight", d)
		ten("output.weight", d, 512)
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			ten(p+"attn_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			attn(p)
			ten(p+"attn_q_norm.weight", heads*hd)
			ten(p+"attn_k_norm.weight", kv*hd)
			moe(p, ff, 8)
		}
	case "qwen2moe":
		base(3)
		key("expert_count", uint32(8))
		key("expert_used_count", uint32(2))
		key("expert_feed_forward_length", uint32(32))
		key("expert_shared_feed_forward_length", uint32(48))
		ten("output_norm.weight", d)
		ten("output.weight", d, 512)
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			ten(p+"attn_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			attn(p)
			ten(p+"attn_q.bias", heads*hd)
			ten(p+"attn_k.bias", kv*hd)
			ten(p+"attn_v.bias", kv*hd)
			moe(p, 32, 8)
			ten(p+"ffn_gate_inp_shexp.weight", d)
			shared(p, 48)
		}
	case "granite", "granitemoe":
		base(3)
		key("embedding_scale", float32(6))
		key("residual_scale", float32(0.4))
		key("logit_scale", float32(3))
		key("attention.scale", float32(0.1))
		if arch == "granitemoe" {
			key("expert_count", uint32(8))
			key("expert_used_count", uint32(2))
			key("expert_shared_feed_forward_length", uint32(40))
		}
		ten("output_norm.weight", d)
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			ten(p+"attn_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			attn(p)
			if arch == "granite" {
				dense(p)
			} else {
				moe(p, ff, 8)
				shared(p, 40)
			}
		}
	case "lfm2", "lfm2moe":
		base(4)
		key("attention.head_count_kv", []uint32{0, 0, 2, 0})
		key("shortconv.l_cache", uint32(3))
		if arch == "lfm2moe" {
			key("expert_count", uint32(8))
			key("expert_used_count", uint32(2))
			key("expert_feed_forward_length", uint32(32))
			key("leading_dense_block_count", uint32(1))
			key("expert_gating_func", uint32(2))
		}
		ten("token_embd_norm.weight", d)
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			ten(p+"attn_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			if i == 2 {
				attn(p)
				ten(p+"attn_q_norm.weight", hd)
				ten(p+"attn_k_norm.weight", hd)
			} else {
				ten(p+"shortconv.conv.weight", 3, d)
				ten(p+"shortconv.in_proj.weight", d, 3*d)
				ten(p+"shortconv.out_proj.weight", d, d)
			}
			if arch == "lfm2" || i == 0 {
				dense(p)
			} else {
				moe(p, 32, 8)
				ten(p+"exp_probs_b.bias", 8)
			}
		}
	case "ernie4_5-moe":
		base(4)
		key("expert_count", uint32(8))
		key("expert_used_count", uint32(2))
		key("expert_feed_forward_length", uint32(32))
		key("expert_shared_feed_forward_length", uint32(48))
		key("expert_shared_count", uint32(1))
		key("leading_dense_block_count", uint32(1))
		key("interleave_moe_layer_step", uint32(1))
		ten("output_norm.weight", d)
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			ten(p+"attn_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			attn(p)
			if i < 1 {
				dense(p)
			} else {
				moe(p, 32, 8)
				ten(p+"exp_probs_b.bias", 8)
				shared(p, 48)
			}
		}
	case "smollm3":
		base(4)
		ten("output_norm.weight", d)
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			ten(p+"attn_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			attn(p)
			dense(p)
		}
	case "gemma2":
		base(4)
		key("attention.sliding_window", uint32(32))
		key("attn_logit_softcapping", float32(5))
		key("final_logit_softcapping", float32(8))
		ten("output_norm.weight", d)
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			ten(p+"attn_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			attn(p)
			dense(p)
			ten(p+"post_attention_norm.weight", d)
			ten(p+"post_ffw_norm.weight", d)
		}
	case "gemma4":
		moeOn := variant == "moe"
		ple := variant == "ple"
		base(6)
		key("attention.key_length", uint32(32))
		key("attention.value_length", uint32(32))
		key("attention.key_length_swa", uint32(16))
		key("attention.value_length_swa", uint32(16))
		key("rope.dimension_count", uint32(32))
		key("rope.dimension_count_swa", uint32(16))
		key("rope.freq_base", float32(1e6))
		key("rope.freq_base_swa", float32(1e4))
		key("attention.sliding_window", uint32(32))
		pat := []bool{true, true, true, false, true, false}
		key("attention.sliding_window_pattern", pat)
		kvs := []uint32{2, 2, 2, 1, 2, 1}
		key("attention.head_count_kv", kvs)
		key("final_logit_softcapping", float32(30))
		if ple {
			key("embedding_length_per_layer_input", uint32(16))
			key("attention.shared_kv_layers", uint32(2))
		} else {
			key("embedding_length_per_layer_input", uint32(0))
			key("attention.shared_kv_layers", uint32(0))
		}
		if moeOn {
			key("expert_count", uint32(8))
			key("expert_used_count", uint32(2))
			key("expert_feed_forward_length", uint32(32))
		}
		ten("output_norm.weight", d)
		ten("rope_freqs.weight", 16)
		if ple {
			ten("per_layer_token_embd.weight", 16*6, 512)
			ten("per_layer_model_proj.weight", d, 16*6)
			ten("per_layer_proj_norm.weight", 16)
		}
		for i := range layers {
			p := fmt.Sprintf("blk.%d.", i)
			h := int64(32)
			k := int64(kvs[i])
			if pat[i] {
				h = 16
			}
			ten(p+"attn_norm.weight", d)
			ten(p+"attn_q.weight", d, heads*h)
			ten(p+"attn_output.weight", heads*h, d)
			ten(p+"attn_q_norm.weight", h)
			if !(ple && i >= 4) {
				ten(p+"attn_k.weight", d, k*h)
				if pat[i] {
					ten(p+"attn_v.weight", d, k*h)
				}
				ten(p+"attn_k_norm.weight", h)
			}
			ten(p+"post_attention_norm.weight", d)
			ten(p+"ffn_norm.weight", d)
			dense(p)
			ten(p+"post_ffw_norm.weight", d)
			ten(p+"layer_output_scale.weight", 1)
			if ple {
				ten(p+"inp_gate.weight", d, 16)
				ten(p+"proj.weight", 16, d)
				ten(p+"post_norm.weight", d)
			}
			if moeOn {
				ten(p+"ffn_gate_inp.weight", d, 8)
				ten(p+"ffn_gate_inp.scale", d)
				ten(p+"ffn_gate_up_exps.weight", d, 64, 8)
				ten(p+"ffn_down_exps.weight", 32, d, 8)
				ten(p+"ffn_down_exps.scale", 8)
				ten(p+"post_ffw_norm_1.weight", d)
				ten(p+"pre_ffw_norm_2.weight", d)
				ten(p+"post_ffw_norm_2.weight", d)
			}
		}
	default:
		t.Fatalf("no such family %s", arch)
	}

	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}
