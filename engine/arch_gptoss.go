package engine

// gptossSpec: biases everywhere, a sink per head, every second layer windowed,
// YaRN, and experts with a clamped gate whose weights are a softmax over the
// chosen logits.
func gptossSpec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	windows(k, s, 2)
	e := routed(k, softmaxPicked, false)
	s.each(func(_ int, l *layerSpec) {
		l.ffnNorm = "post_attention_norm"
		l.attn.sinks = true
		l.act, l.expert, l.ff = clampedSilu, e, 0
	})
	return s
}
