package engine

import (
	"strings"

	"outcrop/engine/plan"
)

// PlanFacts is the pack as the planner sees it: sizes only, from headers.
func (p *Pack) PlanFacts() (plan.Pack, error) {
	s, err := p.specification()
	if err != nil {
		return plan.Pack{}, err
	}
	out := plan.Pack{
		Name: p.Name, Width: s.dim, Vocab: p.Info().Vocab, Trained: s.context,
		Draft: len(s.drafts) > 0, CanDevice: canDevice(s), CanExperts: canDevice(s),
		Layers: make([]plan.Layer, len(s.layers)+len(s.drafts)),
	}
	s.each(func(il int, l *layerSpec) {
		pl := &out.Layers[il]
		pl.Experts, pl.Used = l.expert.count, l.expert.used
		pl.Draft = il >= len(s.layers)
		pl.State = l.stateBytes()
		switch l.mixer {
		case attention:
			pl.KV = l.attn.kvHeads * (l.attn.keyDim + l.attn.valDim)
			pl.Window = l.attn.window
		case latent:
			pl.KV = l.latent.kvRank + l.latent.rot
		}
		out.Hidden = max(out.Hidden, l.ff, l.expert.ff*l.expert.used, l.expert.shared)
	})
	for _, t := range p.file.Tensors() {
		il, isBlock := blockOf(t.Name)
		switch {
		case t.Name == "token_embd.weight":
			out.Embed = t.Bytes
		case t.Name == "output.weight":
			out.Output = t.Bytes
		case isBlock && il < len(out.Layers):
			l := &out.Layers[il]
			if l.Experts > 0 && strings.Contains(t.Name, "_exps.") {
				l.Expert += t.Bytes / int64(l.Experts)
			} else {
				l.Dense += t.Bytes
			}
		}
	}
	if out.Output == 0 {
		// A tied matrix is read row by row for the embedding and as a whole
		// for the logits, so a card needs a copy of it.
		out.Output = out.Embed
	}
	return out, nil
}

// canDevice reports whether every layer of the model has card kernels.
func canDevice(s *spec) bool { return deviceRefusal(s) == "" }
