package engine

import "math"

// deepseek2Spec: DeepSeek V2 and V3, Kimi K2, GLM-4.7-Flash. Attention works on
// a compressed cache; experts may be chosen within groups.
func deepseek2Spec(k *keys) *spec {
	s := trunk(k, ropeNorm)
	rot := k.int("rope.dimension_count", 2, maxHeadDim)
	a := latentSpec{
		qRank:  k.intOr("attention.q_lora_rank", 0, 0, maxDim),
		kvRank: k.int("attention.kv_lora_rank", 1, maxDim),
		rot:    rot,
	}
	// Files made before the compressed layout carry the widths of whole heads
	// under the plain names and one matrix for keys and values.
	key := k.intOr("attention.key_length_mla", 0, 0, maxHeadDim)
	a.valDim = k.intOr("attention.value_length_mla", 0, 0, maxHeadDim)
	if key == 0 {
		key = k.int("attention.key_length", 1, maxHeadDim)
		a.valDim = k.int("attention.value_length", 1, maxHeadDim)
		a.legacyLayout = true
	}
	a.nope = key - rot
	if a.nope < 1 || a.valDim < 1 {
		k.fail("a key of %d with %d rotated values and a value of %d is not possible", key, rot, a.valDim)
	}
	a.rope = readRope(k, ropeNorm, rot, "")
	// YaRN stretches the frequencies; its magnitude goes into the scale of the
	// scores instead of into cosine and sine: (1 + m ln s)^2.
	a.rope.mag = 1
	mag := 1.0
	if y := a.rope.yarn; y.factor > 0 {
		mag = 1 + k.float("rope.scaling.yarn_log_multiplier", 0)*math.Log(y.factor)
	}
	a.scale = float32(mag * mag / math.Sqrt(float64(key)))

	gate := softmaxGating
	if n := len(s.layers) + len(s.drafts); (n == 47 || n == 48) && k.intOr("vocab_size", 0, 0, 1<<24) == 154880 {
		gate = sigmoidGating // the first files of GLM-4.7-Flash lack the key (llama.cpp#18980)
	}
	s.each(func(_ int, l *layerSpec) {
		l.mixer, l.latent = latent, a
		l.latent.heads = l.attn.heads
	})
	if k.intOr("expert_count", 0, 0, maxExperts) > 0 {
		leadingDense(k, s, routed(k, gate, false))
	}
	return s
}
