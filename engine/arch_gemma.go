package engine

import "math"

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
