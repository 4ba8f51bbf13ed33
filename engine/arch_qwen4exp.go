package engine

// qwen4expSpec: Qwen 3.8 Flash Next. The trunk of qwen35moe on hyper-connection
// streams, attention that reads chosen cells only, and a hashed n-gram table
// before one layer. The delta net's output gate is a sigmoid.
func qwen4expSpec(k *keys) *spec {
	s := gatedHybrid(k)
	hybridExperts(k, s)
	s.streams = k.int("hyper_connection.count", 1, 64)
	s.streamRank = k.int("hyper_connection.low_rank", 1, maxDim)
	s.outNorm = ""
	ratios := k.perLayer("attention.compress_ratios", len(s.layers)+len(s.drafts), 0, 0, 1<<16)
	s.each(func(il int, l *layerSpec) {
		l.delta.byMod, l.delta.sigmoidGate = true, true
		l.streams = true
		if l.mixer == attention && il < len(s.layers) { // drafts attend to everything
			l.attn.index = indexKeys(k, ratios[il])
			if x := l.attn.index; x != nil && l.attn.rope.dims > x.dim {
				k.fail("the indexer's keys of %d are shorter than the rotation of %d", x.dim, l.attn.rope.dims)
			}
		}
	})
	if k.has("ple.layers") {
		s.ple = ngramKeys(k, s)
	}
	return s
}

// ngramKeys reads the n-gram table's keys and marks its layer.
func ngramKeys(k *keys, s *spec) *pleSpec {
	layers := k.ints("ple.layers", 0, maxLayers)
	p := &pleSpec{
		dim:       k.int("embedding_length_per_layer_input", 1, maxDim),
		ngram:     k.int("ple.ngram_size", 2, 8),
		headsPerN: k.int("ple.heads_per_ngram", 1, 1024),
		taps:      k.int("ple.conv_kernel", 1, 64),
		eos:       int64(k.int("ple.eos_token_id", 0, 1<<24)),
	}
	if len(layers) == 0 {
		return nil
	}
	if len(layers) > 1 || int(layers[0]) >= len(s.layers) {
		k.fail("key %q is %v, want one of the %d layers", k.name("ple.layers"), layers, len(s.layers))
		return p
	}
	s.layers[layers[0]].ple = true
	n := (p.ngram - 1) * p.headsPerN
	p.multipliers = k.uints("ple.layer_multipliers", p.ngram)
	p.offsets = k.uints("ple.head_offsets", n)
	p.sizes = k.uints("ple.head_vocab_sizes", n)
	for i := range p.sizes {
		const most = 1 << 40
		if p.sizes[i] < 1 || p.sizes[i] > most || p.offsets[i] > most {
			k.fail("table %d of the n-grams has %d rows from %d on, want 1 to %d", i, p.sizes[i], p.offsets[i], int64(most))
			return p
		}
		p.rows = max(p.rows, int64(p.sizes[i]+p.offsets[i]))
	}
	return p
}
