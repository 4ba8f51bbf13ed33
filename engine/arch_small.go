package engine

// olmoeSpec: queries and keys are normed over their whole width, expert weights
// are the plain probabilities.
func olmoeSpec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	e := routed(k, softmaxGating, false)
	s.each(func(_ int, l *layerSpec) {
		l.attn.qkNorm = qkFull
		if !k.has("expert_feed_forward_length") {
			e.ff = max(l.ff, 1)
		}
		l.expert, l.ff = e, 0
	})
	return s
}

// graniteSpec: four constants scale the embedding, the scores, each block's
// output and the logits; some files have no rotation.
func graniteSpec(k *keys) *spec {
	s := trunk(k, ropeNorm)
	s.embedScale = float32(k.float("embedding_scale", 0))
	s.residScale = float32(k.float("residual_scale", 0))
	if l := k.float("logit_scale", 0); l != 0 {
		s.logitScale = float32(1 / l)
	}
	s.each(func(_ int, l *layerSpec) {
		if !k.bool("rope.scaling.finetuned", true) {
			l.attn.rope.kind = ropeNone
		}
	})
	return s
}

// granitemoeSpec: granite with routed experts and perhaps a shared one.
func granitemoeSpec(k *keys) *spec {
	s := graniteSpec(k)
	if k.intOr("expert_count", 0, 0, maxExperts) == 0 {
		return s
	}
	e := routed(k, softmaxGating, true)
	e.shared = k.intOr("expert_shared_feed_forward_length", 0, 0, maxDim)
	s.each(func(_ int, l *layerSpec) {
		if !k.has("expert_feed_forward_length") {
			e.ff = max(l.ff, 1)
		}
		l.expert, l.ff = e, 0
	})
	return s
}

// lfm2Spec: layers without key heads are gated short convolutions; the final
// norm is stored as token_embd_norm.
func lfm2Spec(k *keys) *spec {
	s := trunk(k, ropeNeox)
	s.outNorm = "token_embd_norm.weight"
	taps := k.int("shortconv.l_cache", 1, 64)
	s.each(func(_ int, l *layerSpec) {
		l.attn.qkNorm = qkPerHead
		if l.attn.kvHeads == 0 {
			l.mixer, l.conv = shortConv, convSpec{taps: taps, channels: s.dim}
		}
	})
	return s
}

// lfm2moeSpec: lfm2 with experts chosen by a sigmoid and a bias, after some
// dense layers.
func lfm2moeSpec(k *keys) *spec {
	s := lfm2Spec(k)
	e := routed(k, sigmoidGating, true)
	dense := k.intOr("leading_dense_block_count", 0, 0, maxLayers)
	s.each(func(il int, l *layerSpec) {
		if il >= dense {
			l.expert, l.ff = e, 0
		}
	})
	return s
}

// ernieSpec: every so many layers after the first have experts, chosen by
// probability plus bias, and a shared one added plainly.
func ernieSpec(k *keys) *spec {
	s := trunk(k, ropeNorm)
	if k.intOr("expert_count", 0, 0, maxExperts) == 0 {
		return s
	}
	e := routed(k, softmaxGating, true)
	e.shared = k.intOr("expert_shared_feed_forward_length", 0, 0, maxDim)
	dense := k.intOr("leading_dense_block_count", 0, 0, maxLayers)
	every := k.intOr("interleave_moe_layer_step", 1, 1, maxLayers)
	s.each(func(il int, l *layerSpec) {
		if il >= dense && (il+1)%every == 0 {
			l.expert, l.ff = e, 0
		}
	})
	return s
}

// smollm3Spec: llama whose every fourth layer does not rotate.
func smollm3Spec(k *keys) *spec {
	s := trunk(k, ropeNorm)
	s.each(func(il int, l *layerSpec) {
		if (il+1)%4 == 0 {
			l.attn.rope.kind = ropeNone
		}
	})
	return s
}
