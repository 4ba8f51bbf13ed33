package engine

// gatedHybrid is the trunk of Qwen 3-Next and later: three of four layers are
// gated delta nets, the fourth is attention with an output gate; the norm
// before the feed-forward is stored as post_attention_norm.
func gatedHybrid(k *keys) *spec {
	s := trunk(k, ropeNeox)
	d := deltaSpec{
		keyHeads: k.int("ssm.group_count", 1, maxHeads),
		valHeads: k.int("ssm.time_step_rank", 1, maxHeads),
		dim:      k.int("ssm.state_size", 1, maxHeadDim),
		taps:     k.int("ssm.conv_kernel", 1, 64),
	}
	inner := k.int("ssm.inner_size", 1, maxDim)
	if inner != d.valHeads*d.dim {
		k.fail("key %q is %d, want %d heads of %d", k.name("ssm.inner_size"), inner, d.valHeads, d.dim)
	}
	if d.valHeads%d.keyHeads != 0 {
		k.fail("%d value heads cannot share %d key heads", d.valHeads, d.keyHeads)
	}
	every := k.intOr("full_attention_interval", 4, 1, maxLayers)
	recurrent := k.flags("attention.recurrent_layers", len(s.layers)+len(s.drafts))
	s.each(func(il int, l *layerSpec) {
		l.ffnNorm = "post_attention_norm"
		l.attn.qkNorm, l.attn.outGate = qkPerHead, true
		isDelta := (il+1)%every != 0
		if recurrent != nil {
			isDelta = recurrent[il]
		}
		if isDelta && il < len(s.layers) { // draft blocks always attend
			l.mixer, l.delta = deltaNet, d
		}
	})
	return s
}

// hybridExperts gives every layer routed experts and a gated shared expert.
func hybridExperts(k *keys, s *spec) {
	e := routed(k, softmaxGating, true)
	e.shared = k.intOr("expert_shared_feed_forward_length", 0, 0, maxDim)
	e.sharedGate = true
	s.each(func(_ int, l *layerSpec) { l.expert, l.ff = e, 0 })
}

// qwen3nextSpec: value heads in the original order, alpha and beta fused.
func qwen3nextSpec(k *keys) *spec {
	s := gatedHybrid(k)
	hybridExperts(k, s)
	s.each(func(_ int, l *layerSpec) { l.delta.fusedBA = true })
	return s
}

// qwen35Spec: value heads re-ordered by the converter, dense feed-forward.
func qwen35Spec(k *keys) *spec {
	s := gatedHybrid(k)
	s.each(func(_ int, l *layerSpec) { l.delta.byMod = true })
	return s
}

// qwen35moeSpec: qwen35 with routed experts.
func qwen35moeSpec(k *keys) *spec {
	s := qwen35Spec(k)
	hybridExperts(k, s)
	return s
}
