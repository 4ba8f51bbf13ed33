package engine

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"outcrop/engine/gguf"
	"outcrop/engine/token"
)

// ErrUnknownArch is wrapped when a pack's family is not in the table.
var ErrUnknownArch = errors.New("unknown model family")

// spec is everything the forward pass must know about a model, filled from
// metadata by its family. Numbers in it are checked against limits; whether
// the tensors agree is checked at bind.
type spec struct {
	arch    string
	dim     int // width of the residual stream
	vocab   int // rows of the token embedding
	context int // trained context in tokens
	eps     float32

	embedScale float32 // the embedding is multiplied by it; 0: not
	residScale float32 // every block's output before it is added; 0: not
	logitScale float32 // the logits; 0: not
	softcap    float32 // logits = cap*tanh(logits/cap); 0: not

	layers []layerSpec // the trunk
	drafts []layerSpec // multi-token prediction blocks after it (nextn)

	outNorm    string // name of the final norm's tensor
	streams    int    // hyper-connection streams; 0: an ordinary residual
	streamRank int    // of their mixers
	ple        *pleSpec
	perLayer   int        // width of per-layer token embeddings; 0: none (Gemma 4)
	suppress   []token.ID // tokens that are never drawn
}

// layerSpec is one layer: what mixes tokens, what follows, and their sizes.
type layerSpec struct {
	mixer  mixerKind
	attn   attnSpec
	delta  deltaSpec
	latent latentSpec
	conv   convSpec

	sandwich bool   // norms after the mixer and the feed-forward too (Gemma)
	ffnNorm  string // name of the norm before the feed-forward

	act     activation
	ff      int // width of the dense feed-forward; 0: routed experts
	expert  expertSpec
	streams bool // hyper-connection mixers instead of norms
	ple     bool // the n-gram table adds to the streams before this layer
}

// mixerKind is what carries information between positions.
type mixerKind int

const (
	attention mixerKind = iota // softmax over cached keys
	deltaNet                   // gated delta rule over a matrix state
	latent                     // attention over a compressed cache (MLA)
	shortConv                  // gated causal convolution
)

// attnSpec describes softmax attention.
type attnSpec struct {
	heads, kvHeads int
	keyDim, valDim int     // per head
	window         int     // keys seen, counting the query's own; 0: all
	scale          float32 // of the scores
	rope           ropeSpec
	qkNorm         qkNorm
	outGate        bool // attn_q also carries a gate per head, interleaved by head
	vNorm          bool // values are normed per head, without weights; a layer without attn_v takes the raw keys
	kvFrom         int  // layer whose cache is read; -1: its own
	sinks          bool
	softcap        float32 // of the scores; 0: none
	index          *indexSpec
}

// qkNorm says how queries and keys are normed before the rotation.
type qkNorm int

const (
	qkPlain    qkNorm = iota
	qkPerHead         // RMS over each head
	qkFull            // RMS over the whole projected width
	qkOptional        // per head when the tensors are there
)

// deltaSpec describes a gated delta net (models.md 2.2).
type deltaSpec struct {
	keyHeads, valHeads int
	dim                int  // of a key and of a value head
	taps               int  // of the convolution
	byMod              bool // value head h uses key head h mod keyHeads, else h/(valHeads/keyHeads)
	sigmoidGate        bool // the output gate is a sigmoid, else SiLU
	fusedBA            bool // alpha and beta come as ssm_ba
}

// latentSpec describes multi-head latent attention (DeepSeek-V2, section 2.1).
type latentSpec struct {
	heads        int
	qRank        int // 0: attn_q projects directly
	kvRank       int // width of the cached latent
	nope, rot    int // per head: widths without and with rotation
	valDim       int // per head, after attn_v_b
	scale        float32
	rope         ropeSpec
	legacyLayout bool // attn_kv_b instead of attn_k_b and attn_v_b
}

// convSpec describes a gated short convolution (LFM2).
type convSpec struct{ taps, channels int }

// indexSpec describes the sparse indexer of qwen4exp (models.md 3.3).
type indexSpec struct {
	heads, dim int
	topK       int // cells kept
	ratio      int // tokens per block of one score
}

// pleSpec describes the hashed n-gram table of qwen4exp (models.md 3.2).
type pleSpec struct {
	dim         int // values per table row
	ngram       int // longest n
	headsPerN   int
	taps        int
	eos         int64
	multipliers []uint64
	offsets     []uint64
	sizes       []uint64
	rows        int64 // of the whole table
}

// activation is the function of a feed-forward's gate.
type activation int

const (
	silu        activation = iota
	geluTanh               // tanh approximation
	clampedSilu            // gpt-oss: min(g,7)*sigmoid(1.702 g) * (clamp(u,-7,7)+1)
)

// expertSpec describes routed experts and the shared one.
type expertSpec struct {
	count, used int
	ff          int // width of one expert
	gating      gating
	norm        bool    // divide the weights by their sum
	scale       float32 // of the weights; 0: none
	groups      int     // groups of experts; 0 or 1: none
	groupsUsed  int
	shared      int // width of the shared expert; 0: none
	sharedGate  bool
}

// gating is how router logits become probabilities (expert_gating_func).
type gating int

const (
	softmaxGating  gating = 1
	sigmoidGating  gating = 2
	softmaxPicked  gating = 3 // softmax over the chosen logits only
	sqrtSoftplus   gating = 4
	maxExpertsUsed        = 256
)

// family is one model family: the name in general.architecture and the
// function that fills its specification.
type family struct {
	arch string
	note string // which models, for people
	spec func(k *keys) *spec
}

// families is the table of all known families. A new one is a file
// arch_NAME.go and a line here.
var families = []family{
	{"llama", "Llama, Mistral, Mixtral, SmolLM2", llamaSpec},
	{"qwen2", "Qwen 2, Qwen 2.5", qwen2Spec},
	{"qwen2moe", "Qwen 1.5 and 2 MoE", qwen2moeSpec},
	{"qwen3", "Qwen 3", qwen3Spec},
	{"qwen3moe", "Qwen 3 MoE, Qwen 3 Coder", qwen3moeSpec},
	{"qwen2vl", "Qwen 2 VL, text only", qwen2Spec},
	{"qwen3vl", "Qwen 3 VL, text only", qwen3Spec},
	{"qwen3vlmoe", "Qwen 3 VL MoE, text only", qwen3moeSpec},
	{"qwen3next", "Qwen 3 Next, Qwen 3 Coder Next", qwen3nextSpec},
	{"qwen35", "Qwen 3.5, Qwen 3.6 dense", qwen35Spec},
	{"qwen35moe", "Qwen 3.5, Qwen 3.6 MoE", qwen35moeSpec},
	{"qwen4exp", "Qwen 3.8 Flash Next", qwen4expSpec},
	{"gemma2", "Gemma 2", gemma2Spec},
	{"gemma3", "Gemma 3", gemma3Spec},
	{"gemma4", "Gemma 4", gemma4Spec},
	{"gpt-oss", "gpt-oss", gptossSpec},
	{"glm4moe", "GLM-4.5, 4.6, 4.7", glm4moeSpec},
	{"deepseek2", "DeepSeek V2, V3, R1, Kimi K2, GLM-4.7-Flash", deepseek2Spec},
	{"olmoe", "OLMoE", olmoeSpec},
	{"granite", "Granite 3 and 4 dense", graniteSpec},
	{"granitemoe", "Granite 3 MoE", granitemoeSpec},
	{"lfm2", "LFM2", lfm2Spec},
	{"lfm2moe", "LFM2 MoE", lfm2moeSpec},
	{"ernie4_5-moe", "ERNIE 4.5 MoE", ernieSpec},
	{"smollm3", "SmolLM 3", smollm3Spec},
}

// Families lists the names of the model families that can be loaded.
func Families() []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.arch
	}
	return names
}

// specOf reads the specification of a pack.
func specOf(m *gguf.Meta) (*spec, error) {
	arch, err := m.String("general.architecture")
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		if f.arch != arch {
			continue
		}
		k := &keys{m: m, arch: arch}
		s := f.spec(k)
		if k.err != nil {
			return nil, k.err
		}
		s.arch = arch
		return s, nil
	}
	return nil, fmt.Errorf("%w %q; known are %s", ErrUnknownArch, arch, strings.Join(Families(), ", "))
}

// Limits on metadata. They are far above any model and keep products of two or
// three of them inside an int, so that a hostile file ends in an error.
const (
	maxLayers  = 4096
	maxDim     = 1 << 20
	maxHeads   = 1 << 14
	maxHeadDim = 1 << 13
	maxExperts = 1 << 14
	maxContext = 1 << 30
)

// trunk reads what all families share: sizes, norms, the layer count and, for
// every layer, plain attention with SwiGLU. The family changes what differs.
func trunk(k *keys, ropeKind ropeKind) *spec {
	s := &spec{
		dim:     k.int("embedding_length", 1, maxDim),
		context: k.int("context_length", 1, maxContext),
		eps:     float32(k.float("attention.layer_norm_rms_epsilon", 1e-6)),
		outNorm: "output_norm.weight",
	}
	blocks := k.int("block_count", 1, maxLayers)
	drafts := k.intOr("nextn_predict_layers", 0, 0, blocks-1)
	heads := k.perLayer("attention.head_count", blocks, 0, 1, maxHeads)
	kvHeads := k.perLayer("attention.head_count_kv", blocks, heads[0], 0, maxHeads)
	ff := k.perLayer("feed_forward_length", blocks, 0, 0, maxDim)
	if !(s.eps >= 0 && s.eps < 1) {
		k.fail("key %q is %v, want 0 to 1", k.name("attention.layer_norm_rms_epsilon"), s.eps)
	}
	layers := make([]layerSpec, blocks)
	for il := range layers {
		keyDim := k.intOr("attention.key_length", s.dim/heads[il], 1, maxHeadDim)
		valDim := k.intOr("attention.value_length", keyDim, 1, maxHeadDim)
		if keyDim < 1 {
			k.fail("%d heads do not fit into a width of %d", heads[il], s.dim)
			keyDim, valDim = 1, 1
		}
		layers[il] = layerSpec{
			attn: attnSpec{
				heads: heads[il], kvHeads: kvHeads[il], keyDim: keyDim, valDim: valDim,
				scale:  float32(k.float("attention.scale", 0)),
				kvFrom: -1,
				rope:   readRope(k, ropeKind, keyDim, ""),
			},
			ffnNorm: "ffn_norm",
			ff:      ff[il],
		}
		a := &layers[il].attn
		if a.scale == 0 {
			a.scale = float32(1 / math.Sqrt(float64(keyDim)))
		}
		if a.kvHeads > 0 && a.heads%a.kvHeads != 0 {
			k.fail("layer %d: %d heads cannot share %d key heads", il, a.heads, a.kvHeads)
		}
	}
	s.layers, s.drafts = layers[:blocks-drafts], layers[blocks-drafts:]
	return s
}

// each calls f for every layer, those of the draft blocks too.
func (s *spec) each(f func(il int, l *layerSpec)) {
	for i := range s.layers {
		f(i, &s.layers[i])
	}
	for i := range s.drafts {
		f(len(s.layers)+i, &s.drafts[i])
	}
}

// routed reads the expert keys. norm is what holds when expert_weights_norm is
// absent.
func routed(k *keys, gate gating, norm bool) expertSpec {
	e := expertSpec{
		count:      k.int("expert_count", 1, maxExperts),
		used:       k.int("expert_used_count", 1, maxExpertsUsed),
		gating:     gating(k.intOr("expert_gating_func", int(gate), 1, 4)),
		norm:       k.bool("expert_weights_norm", norm),
		scale:      float32(k.float("expert_weights_scale", 0)),
		groups:     k.intOr("expert_group_count", 0, 0, maxExperts),
		groupsUsed: k.intOr("expert_group_used_count", 0, 0, maxExperts),
	}
	if e.used > e.count {
		k.fail("%d experts are used of %d", e.used, e.count)
	}
	if e.scale == 1 {
		e.scale = 0
	}
	if e.groups > 1 {
		if e.count%e.groups != 0 || e.groupsUsed < 1 || e.groupsUsed > e.groups || e.count/e.groups < 2 {
			k.fail("%d experts cannot be split into %d groups of which %d are used", e.count, e.groups, e.groupsUsed)
		} else if e.used > e.groupsUsed*(e.count/e.groups) {
			k.fail("%d experts are used, %d groups hold only %d", e.used, e.groupsUsed, e.groupsUsed*(e.count/e.groups))
		}
	}
	fallback := 0
	if e.used > 0 {
		if ff := k.ints("feed_forward_length", 0, maxDim); len(ff) > 0 {
			fallback = int(ff[len(ff)-1]) / e.used
		}
	}
	e.ff = k.intOr("expert_feed_forward_length", fallback, 1, maxDim)
	if e.ff < 1 {
		k.fail("key %q is missing", k.name("expert_feed_forward_length"))
	}
	return e
}
