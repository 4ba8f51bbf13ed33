package engine

import (
	"fmt"

	"outcrop/gpu/compute/ops"
)

// What of a layer runs on a card. Where a card has no kernels for a part, the
// CPU computes that part and the card the others (deviceblocks.go), and OnCPU
// says so. A reason reads well after "no kernel for".

// parts holds, for each part of a layer, why the CPU computes it; "" where a
// card does.
type parts struct {
	mixer   string // attention, delta net, convolution
	ffn     string // all of the feed-forward, experts too
	experts string // the routed experts and their router alone
}

// nothing tells whether the CPU computes everything.
func (w parts) nothing() bool { return w.mixer != "" && w.ffn != "" }

// deviceRefusal says in words why nothing of a model can run on a device; ""
// when something can. Types of tensors are seen at load.
func deviceRefusal(s *spec) string {
	if s.dim%32 != 0 {
		return fmt.Sprintf("a width of %d, which is not a multiple of 32", s.dim)
	}
	list := s.parts()
	for _, w := range list {
		if !w.nothing() {
			return ""
		}
	}
	if len(list) == 0 {
		return "no layers"
	}
	return list[0].mixer + " and " + list[0].ffn
}

// streamOnCPU says why the residual stream stays with the CPU and goes to cards
// block by block; "" when it stays on cards.
func (s *spec) streamOnCPU() string {
	switch {
	case s.streams > 0:
		return "hyper-connections"
	case s.ple != nil:
		return "n-gram tables"
	case s.perLayer > 0:
		return "per-layer embeddings"
	}
	return ""
}

// streamOnCPU is the same with what tensors tell.
func (w *weights) streamOnCPU(s *spec) string {
	for i := range w.layers {
		if w.layers[i].outScale != 0 {
			return "layers whose output is scaled"
		}
	}
	return s.streamOnCPU()
}

// parts is what cards cannot do of each layer, as far as sizes tell.
func (s *spec) parts() []parts {
	list := make([]parts, len(s.layers))
	for i := range s.layers {
		l := &s.layers[i]
		list[i].mixer = l.mixerRefusal()
		list[i].ffn, list[i].experts = l.ffnRefusal()
	}
	for i := range s.layers { // whose cache is read by others keeps it with them
		if from := s.layers[i].attn.kvFrom; s.layers[i].mixer == attention && from >= 0 && from < len(list) && list[from].mixer == "" {
			list[from].mixer = "caches shared between layers"
		}
	}
	return list
}

func (l *layerSpec) mixerRefusal() string {
	switch l.mixer {
	case latent:
		return "latent attention"
	case shortConv:
		return "short convolutions"
	case attention:
		a := &l.attn
		switch {
		case a.kvFrom >= 0:
			return "caches shared between layers"
		case a.index != nil:
			return "a sparse index"
		case a.qkNorm == qkFull && (a.outGate || a.heads*a.keyDim%32 != 0 || a.kvHeads*a.keyDim%32 != 0):
			return "norms over all heads of such a width"
		case a.kvHeads < 1 || a.keyDim%8 != 0 || a.valDim%8 != 0 || a.keyDim > 576 || a.valDim > 576 || a.heads*a.valDim%32 != 0:
			return fmt.Sprintf("%d attention heads of %d and %d values", a.heads, a.keyDim, a.valDim)
		}
	case deltaNet:
		d := &l.delta
		if d.taps > 8 || d.dim > 256 || d.valHeads*d.dim%32 != 0 {
			return fmt.Sprintf("delta nets of %d heads of %d values and %d taps", d.valHeads, d.dim, d.taps)
		}
	}
	return ""
}

func (l *layerSpec) ffnRefusal() (ffn, experts string) {
	e := &l.expert
	switch {
	case l.ff > 0 && e.count > 0:
		return "", "experts beside a dense part"
	case e.count > 1024 || e.used > 64 || e.groups > 64:
		experts = fmt.Sprintf("%d of %d experts", e.used, e.count)
	}
	if experts != "" && e.shared == 0 && l.ff == 0 { // nothing is left of it
		return experts, ""
	}
	return "", experts
}

// unknown says what a card cannot multiply of some matrices; those that are
// none do not count.
func unknown(list ...*matrix) string {
	for _, w := range list {
		if w.none() {
			continue
		}
		if _, err := ops.WeightSize(uint32(w.f.Type), w.rows, w.cols); err != nil {
			return fmt.Sprintf("%s as %s, %d columns", w.name, w.f.Name, w.cols)
		}
		if w.scale != 0 && w.bias != nil {
			return w.name + " with a scale and a bias"
		}
	}
	return ""
}

// parts is what cards cannot do of each layer.
func (w *weights) parts(s *spec) []parts {
	list := s.parts()
	for i := range list {
		l, x := widened(&w.layers[i]), &list[i]
		if x.mixer == "" {
			x.mixer = unknown(&l.q, &l.k, &l.v, &l.o, &l.qkv, &l.z, &l.ba, &l.alpha, &l.beta, &l.deltaOut)
		}
		if x.mixer == "" && l.mixer == deltaNet && !l.delta.fusedBA && !alike(&l.alpha, &l.beta) {
			x.mixer = fmt.Sprintf("alpha and beta of types %s and %s", l.alpha.f.Name, l.beta.f.Name)
		}
		if x.ffn == "" {
			x.ffn = unknown(&l.gate, &l.up, &l.down, &l.shGate, &l.shUp, &l.shDown)
		}
		if x.ffn == "" && x.experts == "" && l.expert.count > 0 {
			x.experts = l.expertRefusal()
			if x.experts != "" && l.expert.shared == 0 && l.ff == 0 {
				x.ffn, x.experts = x.experts, ""
			}
		}
	}
	return list
}

// parts is the same of a model.
func (m *Model) parts() []parts {
	if m.cardParts != nil {
		return m.cardParts
	}
	list := m.weights.parts(m.spec)
	for i := range list {
		l := &m.layers[i]
		switch a := &l.attn; {
		case l.mixer != attention || list[i].mixer != "" || m.kv == kvF16:
		case m.kv != kvQ8:
			list[i].mixer = "keys and values in " + m.kv.String()
		case a.keyDim%32 != 0 || a.valDim%32 != 0:
			list[i].mixer = fmt.Sprintf("%d and %d values of a head in q8", a.keyDim, a.valDim)
		}
	}
	m.cardParts = list
	return list
}

func (m *Model) partsOf(il int) parts { return m.parts()[il] }

// widened is l with the columns that its tensors have on a card (widen).
func widened(l *layer) *layer {
	out := *l
	for _, w := range []*matrix{&out.down, &out.shDown, &out.downs.matrix} {
		if !w.none() && w.f.Float {
			w.cols = up32(w.cols)
		}
	}
	return &out
}

// expertRefusal looks at the tensors of routed experts.
func (l *layer) expertRefusal() string {
	if why := unknown(&l.router); why != "" {
		return why
	}
	for _, b := range l.banks() {
		if why := unknown(&b.matrix); why != "" {
			return why
		}
		if b.scales != nil {
			return "experts with scales"
		}
	}
	if !l.fused && l.gates.f.Type != l.ups.f.Type {
		return fmt.Sprintf("experts whose gate and up have types %s and %s", l.gates.f.Name, l.ups.f.Name)
	}
	return ""
}

// onCPU puts into words what the CPU computes of layers from first on, those
// with the same reason together.
func onCPU(layers []layer, list []parts, first int, stream string) (out []string) {
	if stream != "" {
		out = append(out, fmt.Sprintf("sums and norms between the parts of layers %s on the CPU: no kernel for %s", span(first, len(list)-1), stream))
	}
	for _, part := range []struct {
		name func(l *layer) string
		why  func(w parts) string
	}{
		{mixerName, func(w parts) string { return w.mixer }},
		{func(*layer) string { return "feed-forward" }, func(w parts) string { return w.ffn }},
		{func(*layer) string { return "routed experts" }, func(w parts) string { return w.experts }},
	} {
		seen := map[string]bool{}
		for i := first; i < len(list); i++ {
			why, name := part.why(list[i]), part.name(&layers[i])
			if why == "" || seen[name+why] {
				continue
			}
			seen[name+why] = true
			var at []int
			for j := i; j < len(list); j++ {
				if part.why(list[j]) == why && part.name(&layers[j]) == name {
					at = append(at, j)
				}
			}
			word := "layers"
			if len(at) == 1 {
				word = "layer"
			}
			out = append(out, fmt.Sprintf("%s of %s %s on the CPU: no kernel for %s", name, word, spans(at), why))
		}
	}
	return out
}

func mixerName(l *layer) string {
	switch l.mixer {
	case deltaNet:
		return "delta net"
	case shortConv:
		return "convolution"
	}
	return "attention"
}

func span(a, b int) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d-%d", a, b)
}

// spans writes numbers that rise as ranges: "0-3, 5, 7-9".
func spans(at []int) string {
	s := ""
	for i := 0; i < len(at); {
		j := i
		for j+1 < len(at) && at[j+1] == at[j]+1 {
			j++
		}
		if s != "" {
			s += ", "
		}
		s += span(at[i], at[j])
		i = j + 1
	}
	return s
}

// OnCPU says what the CPU would compute of the pack's layers on a card because
// there are no kernels for it; empty: nothing.
func (p *Pack) OnCPU() ([]string, error) {
	s, err := p.specification()
	if err != nil {
		return nil, err
	}
	if why := deviceRefusal(s); why != "" {
		return []string{"all layers on the CPU: no kernel for " + why}, nil
	}
	w, err := bind(p.file, s)
	if err != nil {
		return nil, err
	}
	return onCPU(w.layers, w.parts(s), 0, w.streamOnCPU(s)), nil
}
