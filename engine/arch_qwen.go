package engine

// qwen2Spec: biases on q, k and v, rotation in halves.
func qwen2Spec(k *keys) *spec { return trunk(k, ropeNeox) }

// qwen2moeSpec: qwen2 with routed experts whose weights are not normalised,
// and a shared expert behind a sigmoid gate.
func qwen2moeSpec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	e := routed(k, softmaxGating, false)
	e.shared = k.intOr("expert_shared_feed_forward_length", 0, 0, maxDim)
	e.sharedGate = true
	s.each(func(_ int, l *layerSpec) { l.expert, l.ff = e, 0 })
	return s
}

// qwen3Spec: queries and keys are normed per head, no biases.
func qwen3Spec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	s.each(func(_ int, l *layerSpec) { l.attn.qkNorm = qkPerHead })
	return s
}

// qwen3moeSpec: qwen3 with routed experts, weights normalised.
func qwen3moeSpec(k *keys) *spec {
	s := qwen3Spec(k)
	e := routed(k, softmaxGating, true)
	s.each(func(_ int, l *layerSpec) { l.expert, l.ff = e, 0 })
	return s
}
