package engine

// glm4moeSpec: GLM-4.5 to 4.7. Half of each head rotates, some sizes norm
// queries and keys, the first layers are dense, and experts are chosen by a
// sigmoid with a bias.
func glm4moeSpec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	s.each(func(_ int, l *layerSpec) {
		l.ffnNorm = "post_attention_norm"
		l.attn.qkNorm = qkOptional
	})
	leadingDense(k, s, routed(k, sigmoidGating, true))
	return s
}

// leadingDense gives all layers but the first few experts, with the shared
// experts as one of their joint width, added plainly.
func leadingDense(k *keys, s *spec, e expertSpec) {
	e.shared = e.ff * k.intOr("expert_shared_count", 0, 0, 64)
	dense := k.intOr("leading_dense_block_count", 0, 0, maxLayers)
	s.each(func(il int, l *layerSpec) {
		if il >= dense {
			l.expert, l.ff = e, 0
		}
	})
}
