package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// matrix is a weight matrix as it lies in the file: y = W x (+ bias).
type matrix struct {
	name       string
	f          *quant.Format
	data       []byte // rows * rowBytes
	rows, cols int    // outputs, inputs
	rowBytes   int
	bias       []float32 // (rows); nil: none
	scale      float32   // multiplies W x; 0: none
}

func (w *matrix) none() bool { return w.data == nil }

// bytes is what one product reads.
func (w *matrix) bytes() int64 { return int64(len(w.data)) }

// bank is one matrix of every expert of a layer, one after the other.
type bank struct {
	matrix           // data of all experts; rows and cols of one
	count  int       // experts
	biases []float32 // (count, rows); nil: none
	scales []float32 // (count); nil: none
}

// of gives the bytes of expert e.
func (b *bank) of(e int) []byte {
	n := b.rows * b.rowBytes
	return b.data[e*n : (e+1)*n : (e+1)*n]
}

// layer is one layer with its weights. Slices are nil where the family has no
// such tensor.
type layer struct {
	*layerSpec
	index int

	attnNorm, postAttn []float32 // (dim)
	ffnNorm, postFFN   []float32 // (dim)
	outScale           float32   // multiplies the layer's output; 0: none

	hcAttn, hcFFN *hyper        // instead of the norms
	gram          *ngramWeights // added before the layer

	// attention
	idx          *indexWeights // which keys are read; nil: all
	q, k, v, o   matrix
	qNorm, kNorm []float32 // (keyDim), or the full width
	sinks        []float32 // (heads)
	rope         *rope     // nil: no rotation
	ropeAt       int       // which rotation of the pass

	// latent attention: q is attn_q_b when the query has a rank
	qa, kva         matrix
	kb, vb          bank // one slice per head
	qaNorm, kvaNorm []float32

	// gated delta net
	qkv, z, alpha, beta, ba, deltaOut matrix
	convTaps                          []float32 // (taps, channels): tap 0 is the oldest
	decay                             []float32 // (valHeads): ssm_a, negative
	dtBias                            []float32 // (valHeads)
	deltaNorm                         []float32 // (dim of a head)

	convIn, convOut matrix // gated short convolution; its taps are convTaps

	// feed-forward
	gate, up, down matrix

	both     *bothWeights     // dense part and experts beside each other
	perLayer *perLayerWeights // per-layer token embedding

	// experts
	router               matrix    // F32 rows even when the file has F16
	pickBias             []float32 // added for choosing only
	gates, ups, downs    bank
	fused                bool // gates holds gate rows then up rows
	sharedGate           []float32
	shGate, shUp, shDown matrix
}

// draft is a multi-token prediction block (nextn): it guesses the token after
// the next one from the trunk's last hidden state and the next token.
type draft struct {
	layer
	project      matrix    // (2 dim) to (dim): [embedding ; hidden]
	embNorm      []float32 // (dim)
	hidNorm      []float32 // (dim); with hyper-connections (streams*dim)
	headNorm     []float32 // (dim)
	headMix      *hyper    // instead of it
	embed, head_ matrix    // of its own; none: the trunk's
}

// binder finds tensors by name and checks them. The first problem is kept in
// err; later calls return empty values.
type binder struct {
	f    *gguf.File
	used map[string]bool
	err  error
	size int64 // bytes bound so far
}

func (b *binder) fail(format string, a ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, a...)
	}
}

// find returns the tensor with this shape (fastest dimension first), nil with
// err set when it is missing or different, nil without err when it is optional
// and missing.
func (b *binder) find(name string, optional bool, shape ...int) *gguf.Tensor {
	if b.err != nil {
		return nil
	}
	t := b.f.Tensor(name)
	if t == nil {
		if !optional {
			b.fail("tensor %s is missing, want shape %v", name, shape)
		}
		return nil
	}
	if !sameShape(t.Shape, shape) {
		b.fail("tensor %s has shape %v, want %v", name, t.Shape, shape)
		return nil
	}
	b.used[name] = true
	return t
}

// sameShape compares without trailing ones: [64] is [64 1].
func sameShape(got []int64, want []int) bool {
	for len(got) > 1 && got[len(got)-1] == 1 {
		got = got[:len(got)-1]
	}
	for len(want) > 1 && want[len(want)-1] == 1 {
		want = want[:len(want)-1]
	}
	return slices.EqualFunc(got, want, func(a int64, b int) bool { return a == int64(b) })
}

// vec reads a small tensor into floats, whatever its type.
func (b *binder) vec(name string, shape ...int) []float32 {
	return b.floats(b.find(name, false, shape...))
}

// vecIf is vec, or nothing when the layer has no such tensor by its nature.
func (b *binder) vecIf(want bool, name string, shape ...int) []float32 {
	if !want {
		return nil
	}
	return b.vec(name, shape...)
}

func (b *binder) optVec(name string, shape ...int) []float32 {
	return b.floats(b.find(name, true, shape...))
}

func (b *binder) floats(t *gguf.Tensor) []float32 {
	if t == nil {
		return nil
	}
	f, err := quant.Of(t.Type)
	if err != nil {
		b.fail("tensor %s: %w", t.Name, err)
		return nil
	}
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	if t.Shape[0]%int64(f.Block) != 0 {
		b.fail("tensor %s of type %s has rows of %d values, want a multiple of %d", t.Name, f.Name, t.Shape[0], f.Block)
		return nil
	}
	out := make([]float32, n)
	f.Decode(out, b.f.Data(t))
	b.size += t.Bytes
	return out
}

// mat binds a matrix of rows outputs and cols inputs. bias is found under the
// same name with .bias; a scale beside it under the same name with .scale.
func (b *binder) mat(name string, cols, rows int) matrix { return b.matrix(name, false, cols, rows) }

func (b *binder) optMat(name string, cols, rows int) matrix {
	return b.matrix(name, true, cols, rows)
}

func (b *binder) matrix(name string, optional bool, cols, rows int) matrix {
	w := b.weights(b.find(name+".weight", optional, cols, rows), cols, rows)
	if w.none() {
		return w
	}
	w.bias = b.optVec(name+".bias", rows)
	if s := b.optVec(name+".scale", 1); s != nil {
		w.scale = s[0]
	}
	return w
}

// weights makes a matrix of a tensor's bytes; rows and cols are those of one
// of its slices.
func (b *binder) weights(t *gguf.Tensor, cols, rows int) matrix {
	if t == nil {
		return matrix{}
	}
	f, err := quant.Of(t.Type)
	if err != nil {
		b.fail("tensor %s: %w", t.Name, err)
		return matrix{}
	}
	if f.Dot == nil {
		b.fail("tensor %s has type %s, which stands for no matrix", t.Name, f.Name)
		return matrix{}
	}
	if cols%f.Block != 0 {
		b.fail("tensor %s of type %s has rows of %d values, want a multiple of %d", t.Name, f.Name, cols, f.Block)
		return matrix{}
	}
	b.size += t.Bytes
	return matrix{name: t.Name, f: f, data: b.f.Data(t), rows: rows, cols: cols, rowBytes: f.RowBytes(cols)}
}

// experts binds one matrix of count experts.
func (b *binder) experts(name string, optional bool, cols, rows, count int) bank {
	t := b.find(name+".weight", optional, cols, rows, count)
	k := bank{matrix: b.weights(t, cols, rows), count: count}
	if t == nil {
		return k
	}
	k.biases = b.optVec(name+".bias", rows, count)
	if s := b.f.Tensor(name + ".scale"); s != nil && len(s.Shape) == 1 && s.Shape[0] == 1 {
		one := b.optVec(name+".scale", 1)
		for range count {
			k.scales = append(k.scales, one...)
		}
	} else {
		k.scales = b.optVec(name+".scale", count)
	}
	return k
}

// layer binds block il.
func (b *binder) layer(s *spec, ls *layerSpec, il int) layer {
	blk := fmt.Sprintf("blk.%d.", il)
	l := layer{layerSpec: ls, index: il}
	if ls.streams {
		l.hcAttn, l.hcFFN = b.hyper(blk+"hc_attn", s, true), b.hyper(blk+"hc_ffn", s, true)
	} else {
		l.attnNorm = b.vec(blk+"attn_norm.weight", s.dim)
		l.ffnNorm = b.vec(blk+ls.ffnNorm+".weight", s.dim)
	}
	if ls.ple {
		l.gram = b.ngram(s, blk)
	}
	if ls.sandwich {
		l.postAttn = b.vec(blk+"post_attention_norm.weight", s.dim)
		l.postFFN = b.vec(blk+"post_ffw_norm.weight", s.dim)
	}
	switch ls.mixer {
	case attention:
		b.attention(&l, s, blk)
	case shortConv:
		ch := ls.conv.channels
		l.convIn = b.mat(blk+"shortconv.in_proj", s.dim, 3*ch)
		l.convOut = b.mat(blk+"shortconv.out_proj", ch, s.dim)
		l.convTaps = transposed(b.vec(blk+"shortconv.conv.weight", ls.conv.taps, ch), ls.conv.taps, ch)
	case latent:
		b.latent(&l, s, blk)
	case deltaNet:
		b.deltaNet(&l, s, blk)
	}
	if ls.ff == 0 && ls.expert.count == 0 {
		b.fail("layer %d has no feed-forward width", il)
	}
	if ls.ff > 0 {
		l.gate = b.mat(blk+"ffn_gate", s.dim, ls.ff)
		l.up = b.mat(blk+"ffn_up", s.dim, ls.ff)
		l.down = b.mat(blk+"ffn_down", ls.ff, s.dim)
	}
	if ls.expert.count > 0 {
		b.mixture(&l, s, blk)
	}
	if ls.ff > 0 && ls.expert.count > 0 {
		b.both(&l, s, blk)
	}
	if s.perLayer > 0 {
		l.perLayer = b.perLayer(s, blk)
	}
	if x := b.optVec(blk+"layer_output_scale.weight", 1); x != nil {
		l.outScale = x[0]
	}
	return l
}

func (b *binder) attention(l *layer, s *spec, blk string) {
	a := &l.attn
	qRows := a.heads * a.keyDim
	if a.kvHeads < 1 {
		b.fail("layer %d has no key heads", l.index)
		return
	}
	kRows, vRows := a.kvHeads*a.keyDim, a.kvHeads*a.valDim
	if a.outGate {
		if a.keyDim != a.valDim {
			b.fail("layer %d: a gated head needs equal key and value sizes, got %d and %d", l.index, a.keyDim, a.valDim)
			return
		}
		qRows *= 2
	}
	l.q = b.mat(blk+"attn_q", s.dim, qRows)
	if a.kvFrom < 0 {
		l.k = b.mat(blk+"attn_k", s.dim, kRows)
		l.v = b.matrix(blk+"attn_v", a.vNorm, s.dim, vRows)
	}
	l.o = b.mat(blk+"attn_output", a.heads*a.valDim, s.dim)
	switch a.qkNorm {
	case qkPerHead:
		l.qNorm = b.vec(blk+"attn_q_norm.weight", a.keyDim)
		l.kNorm = b.vecIf(a.kvFrom < 0, blk+"attn_k_norm.weight", a.keyDim)
	case qkOptional:
		l.qNorm = b.optVec(blk+"attn_q_norm.weight", a.keyDim)
		l.kNorm = b.optVec(blk+"attn_k_norm.weight", a.keyDim)
	case qkFull:
		l.qNorm = b.vec(blk+"attn_q_norm.weight", qRows)
		l.kNorm = b.vec(blk+"attn_k_norm.weight", kRows)
	}
	if a.index != nil {
		b.index(l, s, blk)
	}
	if a.sinks {
		l.sinks = b.vec(blk+"attn_sinks.weight", a.heads)
	}
}

func (b *binder) latent(l *layer, s *spec, blk string) {
	a := &l.latent
	qw := a.heads * (a.nope + a.rot)
	if a.qRank > 0 {
		l.qa = b.mat(blk+"attn_q_a", s.dim, a.qRank)
		l.qaNorm = b.vec(blk+"attn_q_a_norm.weight", a.qRank)
		l.q = b.mat(blk+"attn_q_b", a.qRank, qw)
	} else {
		l.q = b.mat(blk+"attn_q", s.dim, qw)
	}
	l.kva = b.mat(blk+"attn_kv_a_mqa", s.dim, a.kvRank+a.rot)
	l.kvaNorm = b.vec(blk+"attn_kv_a_norm.weight", a.kvRank)
	if a.legacyLayout {
		b.splitKV(l, blk)
	} else {
		l.kb = b.experts(blk+"attn_k_b", false, a.nope, a.kvRank, a.heads)
		l.vb = b.experts(blk+"attn_v_b", false, a.kvRank, a.valDim, a.heads)
	}
	l.o = b.mat(blk+"attn_output", a.heads*a.valDim, s.dim)
}

// splitKV makes attn_k_b and attn_v_b of the attn_kv_b of older files. Its rows
// are, head by head, nope rows for keys and valDim rows for values. The keys
// are needed the other way round, so both become floats in memory.
func (b *binder) splitKV(l *layer, blk string) {
	a := &l.latent
	both := a.nope + a.valDim
	kv := b.vec(blk+"attn_kv_b.weight", a.kvRank, a.heads*both)
	f, err := quant.Of(quant.F32)
	if kv == nil || err != nil {
		return
	}
	kb := make([]byte, 4*a.heads*a.kvRank*a.nope)
	vb := make([]byte, 4*a.heads*a.kvRank*a.valDim)
	put := func(dst []byte, i int, v float32) { binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v)) }
	for h := range a.heads {
		rows := kv[h*both*a.kvRank:]
		for r := range a.nope {
			for c := range a.kvRank {
				put(kb, (h*a.kvRank+c)*a.nope+r, rows[r*a.kvRank+c])
			}
		}
		for i, v := range rows[a.nope*a.kvRank : both*a.kvRank] {
			put(vb, h*a.valDim*a.kvRank+i, v)
		}
	}
	slice := func(name string, data []byte, cols, rows int) bank {
		return bank{matrix: matrix{name: name, f: f, data: data, rows: rows, cols: cols, rowBytes: f.RowBytes(cols)}, count: a.heads}
	}
	l.kb = slice(blk+"attn_kv_b (keys)", kb, a.nope, a.kvRank)
	l.vb = slice(blk+"attn_kv_b (values)", vb, a.kvRank, a.valDim)
}

func (b *binder) deltaNet(l *layer, s *spec, blk string) {
	d := &l.delta
	inner := d.valHeads * d.dim
	channels := 2*d.keyHeads*d.dim + inner
	l.qkv = b.mat(blk+"attn_qkv", s.dim, channels)
	l.z = b.mat(blk+"attn_gate", s.dim, inner)
	if d.fusedBA {
		l.ba = b.mat(blk+"ssm_ba", s.dim, 2*d.valHeads)
	} else {
		l.alpha = b.mat(blk+"ssm_alpha", s.dim, d.valHeads)
		l.beta = b.mat(blk+"ssm_beta", s.dim, d.valHeads)
	}
	// The file has one row of taps per channel; the loops go along channels.
	l.convTaps = transposed(b.vec(blk+"ssm_conv1d.weight", d.taps, channels), d.taps, channels)
	l.dtBias = b.vec(blk+"ssm_dt.bias", d.valHeads)
	l.decay = b.vec(blk+"ssm_a", d.valHeads)
	l.deltaNorm = b.vec(blk+"ssm_norm.weight", d.dim)
	l.deltaOut = b.mat(blk+"ssm_out", inner, s.dim)
}

func (b *binder) mixture(l *layer, s *spec, blk string) {
	e := &l.expert
	if l.ff > 0 { // beside a dense part its .scale is of the input, see both
		l.router = b.weights(b.find(blk+"ffn_gate_inp.weight", false, s.dim, e.count), s.dim, e.count)
	} else {
		l.router = b.mat(blk+"ffn_gate_inp", s.dim, e.count)
	}
	l.pickBias = b.optVec(blk+"exp_probs_b.bias", e.count)
	if b.f.Tensor(blk+"ffn_gate_up_exps.weight") != nil {
		l.gates = b.experts(blk+"ffn_gate_up_exps", false, s.dim, 2*e.ff, e.count)
		l.fused = true
	} else {
		l.gates = b.experts(blk+"ffn_gate_exps", false, s.dim, e.ff, e.count)
		l.ups = b.experts(blk+"ffn_up_exps", false, s.dim, e.ff, e.count)
	}
	l.downs = b.experts(blk+"ffn_down_exps", false, e.ff, s.dim, e.count)
	if e.shared > 0 {
		l.shGate = b.mat(blk+"ffn_gate_shexp", s.dim, e.shared)
		l.shUp = b.mat(blk+"ffn_up_shexp", s.dim, e.shared)
		l.shDown = b.mat(blk+"ffn_down_shexp", e.shared, s.dim)
		if e.sharedGate {
			l.sharedGate = b.vec(blk+"ffn_gate_inp_shexp.weight", s.dim)
		}
	}
}

func (b *binder) draft(s *spec, ls *layerSpec, il int) draft {
	blk := fmt.Sprintf("blk.%d.", il)
	d := draft{layer: b.layer(s, ls, il)}
	d.project = b.mat(blk+"nextn.eh_proj", 2*s.dim, s.dim)
	d.embNorm = b.vec(blk+"nextn.enorm.weight", s.dim)
	d.hidNorm = b.vec(blk+"nextn.hnorm.weight", s.dim*max(1, s.streams))
	if s.streams > 0 {
		d.headMix = b.hyper(blk+"nextn.hc_head", s, false)
	} else {
		d.headNorm = b.optVec(blk+"nextn.shared_head_norm.weight", s.dim)
	}
	d.embed = b.optMat(blk+"nextn.embed_tokens", s.dim, s.vocab)
	d.head_ = b.optMat(blk+"nextn.shared_head_head", s.dim, s.vocab)
	return d
}

// unused lists tensors that nothing bound: a sign of a variant of the family
// that this engine does not know.
func (b *binder) unused() []string {
	var names []string
	for _, t := range b.f.Tensors() {
		if !b.used[t.Name] && !strings.HasPrefix(t.Name, "rope_") {
			names = append(names, t.Name)
		}
	}
	return names
}

// weights holds everything bound.
type weights struct {
	embed   matrix // one row per token
	output  matrix
	outNorm []float32
	outMix  *hyper // instead of the norm
	layers  []layer
	// Per-layer token embeddings (Gemma 4): rows of all layers per token, the
	// same from the embedding, and the norm of the latter.
	tokenRows, tokenProj matrix
	tokenNorm            []float32
	drafts               []draft
	ropes                []*rope
	bytes                int64    // tensors in use
	unused               []string // tensors of the file that are not
}

// bind finds and checks all tensors of a model.
func bind(f *gguf.File, s *spec) (*weights, error) {
	b := &binder{f: f, used: map[string]bool{}}
	emb := f.Tensor("token_embd.weight")
	if emb == nil || len(emb.Shape) != 2 || emb.Shape[1] < 1 || emb.Shape[1] > 1<<24 {
		return nil, fmt.Errorf("tensor token_embd.weight is missing or has no rows for tokens")
	}
	s.vocab = int(emb.Shape[1])
	w := &weights{embed: b.mat("token_embd", s.dim, s.vocab)}
	w.output = b.optMat("output", s.dim, s.vocab)
	if w.output.none() {
		w.output = w.embed
	}
	if s.streams > 0 {
		w.outMix = b.hyper("output_hc", s, false)
	} else {
		w.outNorm = b.vec(s.outNorm, s.dim)
	}
	if s.perLayer > 0 {
		w.tokenRows = b.mat("per_layer_token_embd", s.perLayer*len(s.layers), s.vocab)
		w.tokenProj = b.mat("per_layer_model_proj", s.dim, s.perLayer*len(s.layers))
		w.tokenNorm = b.vec("per_layer_proj_norm.weight", s.perLayer)
	}
	for i := range s.layers {
		w.layers = append(w.layers, b.layer(s, &s.layers[i], i))
	}
	for i := range s.drafts {
		w.drafts = append(w.drafts, b.draft(s, &s.drafts[i], len(s.layers)+i))
	}
	if b.err != nil {
		return nil, b.err
	}
	var factors []float32
	for i := range w.layers {
		w.rotation(b, &w.layers[i], &factors)
	}
	for i := range w.drafts {
		w.rotation(b, &w.drafts[i].layer, &factors)
	}
	w.bytes, w.unused = b.size, b.unused()
	return w, b.err
}

// rotation gives a layer its rope: one for all layers with equal settings.
func (w *weights) rotation(b *binder, l *layer, factors *[]float32) {
	r := l.attn.rope
	if l.mixer == latent {
		r = l.latent.rope
	}
	if l.mixer != attention && l.mixer != latent || r.kind == ropeNone {
		return
	}
	for i, have := range w.ropes {
		if have.spec == r {
			l.rope, l.ropeAt = have, i
			return
		}
	}
	if *factors == nil && !r.noFactors {
		if *factors = b.optVec("rope_freqs.weight", r.dims/2); *factors == nil && b.err == nil {
			*factors = []float32{}
		}
	}
	f := *factors
	if len(f) == 0 || r.noFactors {
		f = nil
	}
	l.rope, l.ropeAt = &rope{spec: r, freq: r.frequencies(f)}, len(w.ropes)
	w.ropes = append(w.ropes, l.rope)
}
