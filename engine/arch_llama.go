package engine

// llamaSpec covers Llama 1 to 3, Mistral, SmolLM2 and, with expert keys, the
// Mixtral layout. Llama 3.1 and later bring rope_freqs.weight, which bind
// finds by itself; some files have biases on q, k, v.
func llamaSpec(k *keys) *spec {
	s := trunk(k, ropeNorm)
	if k.intOr("expert_count", 0, 0, maxExperts) > 0 {
		e := routed(k, softmaxGating, true)
		// Mixtral files carry no width of their own for experts.
		if !k.has("expert_feed_forward_length") && len(s.layers) > 0 {
			e.ff = s.layers[0].ff
		}
		s.each(func(_ int, l *layerSpec) { l.expert, l.ff = e, 0 })
	}
	return s
}
