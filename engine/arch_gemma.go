package engine

import (
	"math"

	"outcrop/engine/token"
)

// gemma3Spec: the embedding is multiplied by sqrt(width), norms stand before
// and after each block, and five of six layers see a window only and rotate
// with a base of their own.
func gemma3Spec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	s.embedScale = float32(math.Sqrt(float64(s.dim)))
	s.softcap = float32(k.float("final_logit_softcapping", 0))
	local := windows(k, s, 6)
	for il := range s.layers {
		l := &s.layers[il]
		l.sandwich, l.act, l.attn.qkNorm = true, geluTanh, qkPerHead
		l.attn.softcap = float32(k.float("attn_logit_softcapping", 0))
		// The 27B scales queries by the width of a head as if heads filled the
		// model's width (query_pre_attn_scalar of its configuration).
		if len(s.layers) == 62 {
			l.attn.scale = float32(1 / math.Sqrt(float64(s.dim/l.attn.heads)))
		}
		if local[il] {
			// Local layers keep the base of the short context and are not scaled.
			r := &l.attn.rope
			r.base, r.freq, r.mag, r.yarn = k.float("rope.freq_base_swa", 10000), 1, 1, yarnSpec{}
			if r.base <= 0 {
				k.fail("key %q is %v, want a positive number", k.name("rope.freq_base_swa"), r.base)
			}
		}
	}
	return s
}

// windows gives windowed layers their window and says which they are. The
// pattern is a bool per layer or a period of which the last layer sees all;
// period is what holds when it is absent.
func windows(k *keys, s *spec, period int) []bool {
	local := make([]bool, len(s.layers)+len(s.drafts))
	window := k.intOr("attention.sliding_window", 0, 0, maxContext)
	if window == 0 {
		return local
	}
	const key = "attention.sliding_window_pattern"
	if v := k.ints2(key); len(v) == 1 {
		period = int(v[0])
	} else if k.has(key) {
		copy(local, k.flags(key, len(s.layers)))
		period = 0
	}
	if period < 0 || period > maxLayers {
		k.fail("key %q is %d, want 0 to %d", k.name(key), period, maxLayers)
		return local
	}
	s.each(func(il int, l *layerSpec) {
		if period > 0 {
			local[il] = il%period < period-1
		}
		if local[il] {
			l.attn.window = window
		}
	})
	return local
}

// gemma2Spec: sandwich norms, capped scores and logits, every second layer
// windowed.
func gemma2Spec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	s.embedScale = float32(math.Sqrt(float64(s.dim)))
	s.softcap = float32(k.float("final_logit_softcapping", 30))
	windows(k, s, 2)
	for il := range s.layers {
		l := &s.layers[il]
		l.sandwich, l.act = true, geluTanh
		l.attn.softcap = float32(k.float("attn_logit_softcapping", 50))
		if len(s.layers) == 46 { // the 27B, as in gemma3Spec
			l.attn.scale = float32(1 / math.Sqrt(float64(s.dim/l.attn.heads)))
		}
	}
	return s
}

// gemma4Spec: two head sizes, values normed without weights, a cache shared by
// the last layers, experts beside the dense part, per-layer token embeddings,
// and an output scale per layer.
func gemma4Spec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	s.embedScale = float32(math.Sqrt(float64(s.dim)))
	s.softcap = float32(k.float("final_logit_softcapping", 0))
	s.perLayer = k.intOr("embedding_length_per_layer_input", 0, 0, maxDim)
	local := windows(k, s, 6)
	n := len(s.layers)
	shared := k.intOr("attention.shared_kv_layers", 0, 0, n)
	first := n - shared
	if shared > 0 && first < 2 {
		k.fail("key %q is %d of %d layers, two at least must have a cache", k.name("attention.shared_kv_layers"), shared, n)
		return s
	}
	var e expertSpec
	if k.intOr("expert_count", 0, 0, maxExperts) > 0 {
		e = routed(k, softmaxGating, true)
	}
	for il := range s.layers {
		l := &s.layers[il]
		a := &l.attn
		l.sandwich, l.act, l.expert = true, geluTanh, e
		a.qkNorm, a.vNorm, a.scale = qkPerHead, true, 1
		if local[il] {
			a.keyDim = k.intOr("attention.key_length_swa", a.keyDim, 1, maxHeadDim)
			a.valDim = k.intOr("attention.value_length_swa", a.keyDim, 1, maxHeadDim)
			a.rope = readRope(k, ropeNeox, a.keyDim, "_swa")
			a.rope.noFactors = true
		}
		if il >= first {
			a.kvFrom = first - 1
			if local[il] {
				a.kvFrom = first - 2
			}
			if from := &s.layers[a.kvFrom].attn; from.keyDim != a.keyDim || from.valDim != a.valDim || from.kvHeads != a.kvHeads || from.window != a.window {
				k.fail("layer %d cannot read the cache of layer %d: their heads differ", il, a.kvFrom)
			}
		}
	}
	if v, err := k.m.Ints("tokenizer.ggml.suppress_tokens"); err == nil {
		for _, id := range v {
			if id >= 0 && id < 1<<24 {
				s.suppress = append(s.suppress, token.ID(id))
			}
		}
	}
	return s
}
