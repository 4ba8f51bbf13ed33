package engine

import (
	"strings"

	"outcrop/engine/gguf"
)

// The file tier: experts that stay in the mapped file, in a model bigger than
// RAM. Without help every page of a routed expert is a fault of its own, and
// the disk sees one small request at a time. So read-ahead by the system is
// off for experts, and all experts that a layer has chosen are asked for at
// once, before the first is computed.

// freshTokens is how long after its use an expert is taken to be in RAM still,
// so that it is not asked for again: asking costs a system call per matrix.
const freshTokens = 4

// mapAdvice is how a tensor of the file will be used: soon and whole, or, for
// experts that do not all fit in RAM, at random.
func (m *Model) mapAdvice(t *gguf.Tensor) gguf.Advice {
	switch {
	case m.options.FileTier && strings.Contains(t.Name, "_exps."):
		return gguf.Random
	case strings.HasPrefix(t.Name, "per_layer_token_embd"): // read a row at a time
		return gguf.Random
	}
	return gguf.WillNeed
}

// readAhead asks for the experts that the layer's tokens have chosen.
func (m *Model) readAhead(p *pass, l *layer) {
	if !m.options.FileTier || !m.relief.prefetch() {
		return
	}
	start := p.mix.start
	for e := range l.expert.count {
		if start[e] < start[e+1] && !m.heat.fresh(l.index, e, freshTokens) {
			m.adviseExpert(l, e, gguf.WillNeed)
		}
	}
}

// count records the layer's choices.
func (m *Model) count(p *pass, l *layer) {
	start := p.mix.start
	for e := range l.expert.count {
		if n := start[e+1] - start[e]; n > 0 {
			m.heat.touch(l.index, e, int(n))
		}
	}
}
