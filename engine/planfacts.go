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
	if out.CanDevice {
		p.cardFacts(s, &out)
	}
	return out, nil
}

// cardFacts adds what the layers take on a card.
func (p *Pack) cardFacts(s *spec, out *plan.Pack) {
	w, err := bind(p.file, s)
	if err != nil {
		return // the load says why
	}
	m := &Model{weights: w, pack: p, spec: s, context: 1 << 20, chunk: 8}
	for i := range w.layers {
		l, to := &w.layers[i], &out.Layers[i].OnCard
		n := m.cardNeed(i)
		to.Dense = max(n.weights, 1)
		if l.expert.count > 0 {
			one, err := slotBytes(l)
			to.NoSlots = err != nil
			if to.Expert = one; err != nil {
				to.Expert = n.experts / int64(l.expert.count)
			}
		}
		sum := func(kind kvKind) (n int64) {
			m.kv = kind
			for _, b := range cardMemoryBytes(m, l.layerSpec) {
				n += b
			}
			return n
		}
		switch l.mixer {
		case attention:
			to.F16, to.Q8 = sum(kvF16)/int64(m.context), sum(kvQ8)/int64(m.context)
		case deltaNet:
			to.State = sum(kvF16)
		}
	}
	c := &out.Card
	c.DraftElsewhere = true
	few, fewOff := m.scratchNeed(false), m.scratchNeed(true)
	m.chunk += 1024
	c.Row, c.RowElsewhere = (m.scratchNeed(false)-few)/1024, (m.scratchNeed(true)-fewOff)/1024
	c.Fixed = few - 8*c.Row + planSlack
	for i := range w.layers {
		l := w.layers[i].layerSpec
		if l.expert.count == 0 {
			continue
		}
		// What cardSlots keep for each row: numbers, the state, the result, and the
		// rounded copies of both ends of the first product.
		row := int64(16 + 8*s.dim + s.dim*5/4 + l.expert.ff*(21/4+8))
		c.RowSlots = max(c.RowSlots, int64(l.expert.used)*row)
		c.FixedLink = max(c.FixedLink, stageBytes+4*out.Layers[i].OnCard.Expert)
	}
}

// planSlack is what is left over at the ends of arenas, as a rule.
const planSlack = 24 << 20

// canDevice reports whether every layer of the model has card kernels.
func canDevice(s *spec) bool { return deviceRefusal(s) == "" }
