package engine

import (
	"sort"
	"strings"

	"outcrop/engine/quant"
)

// Info is everything known of a pack without loading it; ready for JSON.
// Sizes are bytes, 0 means none.
type Info struct {
	Name         string `json:"name"`
	Path         string `json:"path"`
	Arch         string `json:"arch"`
	Known        bool   `json:"known"`             // the engine can run it
	Problem      string `json:"problem,omitempty"` // why not
	SizeLabel    string `json:"size_label,omitempty"`
	Licence      string `json:"licence,omitempty"`
	Author       string `json:"author,omitempty"`
	Description  string `json:"description,omitempty"`
	Shards       int    `json:"shards"`
	Bytes        int64  `json:"bytes"`
	Tensors      int    `json:"tensors"`
	Params       int64  `json:"params"`
	ActiveParams int64  `json:"active_params"` // touched per token; the same as Params without experts

	Layers      int `json:"layers"`
	DraftLayers int `json:"draft_layers"`
	Width       int `json:"width"`
	Vocab       int `json:"vocab"`
	Context     int `json:"context"` // trained
	Heads       int `json:"heads"`
	KVHeads     int `json:"kv_heads"`
	Recurrent   int `json:"recurrent_layers"` // layers whose state does not grow

	Experts       int `json:"experts"`
	ExpertsUsed   int `json:"experts_used"`
	SharedExperts int `json:"shared_experts"`
	MoELayers     int `json:"moe_layers"`

	Formats []FormatShare `json:"formats"` // by bytes, largest first

	Dense        int64            `json:"dense_bytes"`  // all weights but routed experts
	Expert       int64            `json:"expert_bytes"` // routed experts
	OneExpert    int64            `json:"one_expert_bytes"`
	Active       int64            `json:"active_bytes"`    // weight bytes read per token
	KVPerToken   map[string]int64 `json:"kv_per_token"`    // by cache type
	StateBytes   int64            `json:"state_bytes"`     // recurrent state of a session
	Lookup       int64            `json:"lookup_bytes"`    // per-token tables that can stay on disk
	Tokenizer    string           `json:"tokenizer"`       // model and pre-tokenizer
	ChatTemplate bool             `json:"chat_template"`   // the file has one
	Base         string           `json:"base,omitempty"`  // the model it was made from
	Quantised    string           `json:"quant,omitempty"` // general.file_type in words, when given
}

// FormatShare is how much of a pack is in one tensor format.
type FormatShare struct {
	Name    string `json:"name"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// Info describes the pack.
func (p *Pack) Info() Info {
	m := p.file.Meta()
	str := func(keys ...string) string {
		for _, k := range keys {
			if s, err := m.String(k); err == nil && s != "" {
				return s
			}
		}
		return ""
	}
	in := Info{
		Name: p.Name, Path: p.Path, Arch: p.Arch,
		SizeLabel:   str("general.size_label"),
		Licence:     str("general.license.name", "general.license"),
		Author:      str("general.author", "general.organization"),
		Description: str("general.description"),
		Base:        str("general.base_model.0.name"),
		Quantised:   p.fileType(),
		Shards:      len(p.file.Shards()),
		Bytes:       p.size,
		KVPerToken:  map[string]int64{},
		Tokenizer:   str("tokenizer.ggml.model"),
	}
	if pre := str("tokenizer.ggml.pre"); pre != "" {
		in.Tokenizer += " " + pre
	}
	in.ChatTemplate = str("tokenizer.chat_template") != ""
	p.countTensors(&in)

	s, err := p.specification()
	if err != nil {
		in.Problem = err.Error()
		return in
	}
	in.Known = true
	p.describe(&in, s)
	return in
}

// countTensors sums parameters and bytes from the tensor directory, which is
// there for unknown families too.
func (p *Pack) countTensors(in *Info) {
	byType := map[quant.Type]*FormatShare{}
	experts := map[string]int64{}
	for _, t := range p.file.Tensors() {
		in.Tensors++
		n := int64(1)
		for _, d := range t.Shape {
			n *= d
		}
		in.Params += n
		share := byType[t.Type]
		if share == nil {
			share = &FormatShare{Name: t.Type.String()}
			byType[t.Type] = share
		}
		share.Tensors++
		share.Bytes += t.Bytes
		switch {
		case strings.Contains(t.Name, "_exps."):
			in.Expert += t.Bytes
			if len(t.Shape) == 3 && t.Shape[2] > 0 {
				blk, _, _ := strings.Cut(strings.TrimPrefix(t.Name, "blk."), ".")
				experts[blk] += t.Bytes / t.Shape[2]
			}
		case strings.HasPrefix(t.Name, "per_layer_token_embd"):
			in.Lookup += t.Bytes
		default:
			in.Dense += t.Bytes
		}
		if t.Name == "token_embd.weight" && len(t.Shape) == 2 {
			in.Vocab = int(t.Shape[1])
		}
	}
	for _, b := range experts {
		in.OneExpert = max(in.OneExpert, b)
	}
	for _, s := range byType {
		in.Formats = append(in.Formats, *s)
	}
	sort.Slice(in.Formats, func(i, j int) bool {
		a, b := in.Formats[i], in.Formats[j]
		return a.Bytes > b.Bytes || a.Bytes == b.Bytes && a.Name < b.Name
	})
	in.ActiveParams = in.Params
}

func (p *Pack) describe(in *Info, s *spec) {
	in.Layers, in.DraftLayers = len(s.layers), len(s.drafts)
	in.Width, in.Context = s.dim, s.context
	for i := range s.layers {
		l := &s.layers[i]
		if l.recurrent() {
			in.Recurrent++
			in.StateBytes += l.stateBytes()
		}
		if l.mixer == attention && in.Heads == 0 {
			in.Heads, in.KVHeads = l.attn.heads, l.attn.kvHeads
		}
		if l.mixer == latent && in.Heads == 0 {
			in.Heads, in.KVHeads = l.latent.heads, 1
		}
		if l.expert.count > 0 {
			in.MoELayers++
			in.Experts, in.ExpertsUsed = l.expert.count, l.expert.used
			if l.expert.shared > 0 {
				in.SharedExperts = max(1, l.expert.shared/max(1, l.expert.ff))
			}
		}
	}
	s.each(func(_ int, l *layerSpec) {
		for k, name := range kvNames {
			in.KVPerToken[name] += l.kvBytes(kvKind(k))
		}
	})
	// Per token: one row of the embedding, all of the trunk but experts that
	// are not chosen, no draft block.
	var idleParams int64
	in.Active = 0
	tied := p.file.Tensor("output.weight") == nil
	for _, t := range p.file.Tensors() {
		n, b := int64(1), t.Bytes
		for _, d := range t.Shape {
			n *= d
		}
		used, usedB := n, b
		il, isBlock := blockOf(t.Name)
		switch {
		case isBlock && il >= len(s.layers):
			used, usedB = 0, 0
		case strings.Contains(t.Name, "_exps.") && isBlock && s.layers[il].expert.count > 0:
			e := s.layers[il].expert
			used, usedB = n/int64(e.count)*int64(e.used), b/int64(e.count)*int64(e.used)
		case t.Name == "token_embd.weight" && !tied && len(t.Shape) == 2:
			used, usedB = t.Shape[0], b/t.Shape[1]
		case strings.HasPrefix(t.Name, "per_layer_token_embd"):
			used, usedB = 0, 0
		}
		idleParams += n - used
		in.Active += usedB
	}
	in.ActiveParams = in.Params - idleParams
}

// blockOf reads N of a name blk.N.something.
func blockOf(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return 0, false
	}
	n := 0
	for i, c := range []byte(rest) {
		if c == '.' && i > 0 {
			return n, true
		}
		if c < '0' || c > '9' || n > maxLayers {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return 0, false
}

// fileType puts general.file_type into words (ggml's llama_ftype).
func (p *Pack) fileType() string {
	n, err := p.file.Meta().Int("general.file_type")
	if err != nil {
		return ""
	}
	names := map[int64]string{
		0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
		11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M",
		18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S",
		25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M",
		32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
	}
	return names[n]
}

// KVBytes is the memory of the caches and states of a session with a context,
// for a cache type ("" is f16). Layers with a window hold less than the
// context; KVPerToken of Info counts them as if they did not.
func (p *Pack) KVBytes(kind string, context int) (int64, error) {
	s, err := p.specification()
	if err != nil {
		return 0, err
	}
	k, err := kvKindOf(kind)
	if err != nil {
		return 0, err
	}
	var n int64
	s.each(func(_ int, l *layerSpec) {
		n += int64(l.cacheRows(context, defaultChunk))*l.kvBytes(k) + l.stateBytes()
	})
	return n, nil
}
