package engine

import (
	"strings"

	"outcrop/engine/gguf"
)

// The file tier: experts that stay in the file, in a model bigger than RAM.
// There are two ways to use them. [pages] computes on the mapped file and
// leaves it to the page cache what stays in RAM. [shelves] holds copies of
// chosen experts and reads the others from the file itself; which of the two
// is faster, BENCH.md says.

// mapAdvice is how a tensor of the file will be used: soon and whole, or, for
// experts that do not all fit in RAM, at random.
func (m *Model) mapAdvice(t *gguf.Tensor) gguf.Advice {
	switch {
	case strings.Contains(t.Name, "_exps.") && (m.options.FileTier || m.options.ExpertRAM != 0):
		return gguf.Random
	case strings.HasPrefix(t.Name, "per_layer_token_embd"): // read a row at a time
		return gguf.Random
	}
	return gguf.WillNeed
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
