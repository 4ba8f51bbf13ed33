// Package token turns text into token ids and back, renders chat templates,
// and takes a model's reply apart into reasoning, answer and tool calls.
//
// Two kinds of vocabulary are known: byte-level BPE ("gpt2" in GGUF files, and
// "gemma4", which merges over whole lines) and SentencePiece-style merging by
// score with byte fallback ("llama"). Ids are meant to be equal to those of
// llama.cpp, which most packs are made for and checked with; where the two
// differ on purpose, a comment says so.
package token

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ID is the number of a token, its index in the vocabulary.
type ID int32

// Token types as GGUF files number them (tokenizer.ggml.token_type).
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeUnused      = 5
	typeByte        = 6
)

// Vocab is a vocabulary as a model file describes it. Ids of -1 are absent.
type Vocab struct {
	Model  string    // "gpt2", "llama" or "gemma4"
	Pre    string    // pre-tokenizer of a byte-level BPE, "" for the default one
	Tokens []string  // texts as stored: byte-level BPE in its printable alphabet, SentencePiece with U+2581 for a space
	Types  []int32   // as long as Tokens, or empty: all normal
	Scores []float32 // as long as Tokens; SentencePiece only
	Merges []string  // "left right" in order of rank; BPE only

	BOS, EOS, EOT, EOM, UNK, SEP, PAD ID
	EOG                               []ID // further ids that end generation

	// What Encode adds when asked to, and whether SentencePiece text gets a
	// space in front; nil leaves it to the model's kind.
	AddBOS, AddEOS, AddSpacePrefix *bool
}

// Options says how Encode reads its text.
type Options struct {
	// Special recognises the texts of control tokens, such as <|im_start|>.
	// Text that a person wrote must be encoded without it, or the person
	// could forge turns of the conversation. User-defined tokens are
	// recognised either way, as they are ordinary text of their model.
	Special bool
	// AddBOS adds the begin and end tokens that the vocabulary asks for.
	AddBOS bool
}

// Tokenizer encodes and decodes with one vocabulary. It is safe for use by
// several goroutines.
type Tokenizer struct {
	model  string
	pieces []string // bytes that each token stands for
	types  []int32
	lookup map[string]ID // by stored text, those of a byte-level BPE that are outside its alphabet

	special   matcher // of control, unknown and user-defined tokens
	bpe       *bpe    // one of bpe and spm is set
	spm       *spm
	split     splitter // of bpe
	escape    bool     // spaces become U+2581 before merging
	addPrefix bool     // a space goes in front of text at the start and after special tokens
	clean     bool     // Decode takes spaces before punctuation out

	bos, eos, eot, eom, unk, sep, pad ID
	addBOS, addEOS                    bool
	alwaysBOS                         bool        // some files wrongly say not to add it
	eog                               []ID        // sorted
	tags                              map[ID]bool // control tokens that Reply looks for
	chains                            sync.Pool
}

// New checks a vocabulary and prepares it.
func New(v Vocab) (*Tokenizer, error) {
	if len(v.Tokens) == 0 {
		return nil, fmt.Errorf("the vocabulary has no tokens: this pack has no tokenizer and cannot be given text")
	}
	if len(v.Tokens) > 1<<26 {
		return nil, fmt.Errorf("the vocabulary has %d tokens, at most %d are supported", len(v.Tokens), 1<<26)
	}
	if len(v.Types) != 0 && len(v.Types) < len(v.Tokens) {
		return nil, fmt.Errorf("the vocabulary has %d tokens and %d token types", len(v.Tokens), len(v.Types))
	}
	t := &Tokenizer{
		model: v.Model, lookup: map[string]ID{},
		bos: v.BOS, eos: v.EOS, eot: v.EOT, eom: v.EOM, unk: v.UNK, sep: v.SEP, pad: v.PAD,
	}
	t.chains.New = func() any { return new(chain) }
	t.types = make([]int32, len(v.Tokens))
	for i := range v.Tokens {
		t.types[i] = typeNormal
		if len(v.Types) != 0 {
			t.types[i] = v.Types[i]
		}
	}
	for _, id := range []*ID{&t.bos, &t.eos, &t.eot, &t.eom, &t.unk, &t.sep, &t.pad} {
		if int(*id) >= len(v.Tokens) || *id < 0 {
			*id = -1
		}
	}
	var err error
	switch v.Model {
	case "gpt2", "gemma4":
		err = t.setBPE(v)
	case "llama":
		err = t.setSPM(v)
	case "":
		err = fmt.Errorf("the vocabulary does not say its kind (tokenizer.ggml.model)")
	default:
		err = fmt.Errorf("unknown kind of vocabulary %q, known are gpt2, llama and gemma4", v.Model)
	}
	if err != nil {
		return nil, err
	}
	if v.AddBOS != nil && !t.alwaysBOS {
		t.addBOS = *v.AddBOS
	}
	if v.AddEOS != nil {
		t.addEOS = *v.AddEOS
	}
	if v.AddSpacePrefix != nil {
		t.addPrefix = *v.AddSpacePrefix
	}
	t.findEnds(v)
	t.addBOS = t.addBOS && t.bos >= 0
	t.addEOS = t.addEOS && t.eos >= 0
	t.setPieces(v)
	t.tags = map[ID]bool{}
	for _, name := range replyTags() {
		if id, ok := t.Lookup(name); ok && t.Special(id) && !t.IsEOG(id) {
			t.tags[id] = true
		}
	}
	t.special = newMatcher(v.Tokens, t.types)
	return t, nil
}

// Encode turns text into ids. Bytes that are not UTF-8 never stop it: a
// byte-level BPE sees U+FFFD in their place, SentencePiece takes them as bytes.
func (t *Tokenizer) Encode(text string, o Options) []ID {
	ids := make([]ID, 0, len(text)/3+2)
	if o.AddBOS && t.addBOS {
		ids = append(ids, t.bos)
	}
	ids = t.append(ids, text, o.Special)
	if o.AddBOS && t.addEOS {
		ids = append(ids, t.eos)
	}
	return ids
}

// append encodes text that begins a sequence.
func (t *Tokenizer) append(ids []ID, text string, special bool) []ID {
	c := t.chains.Get().(*chain)
	defer t.chains.Put(c)
	t.encodeParts(&ids, c, text, special, "")
	return ids
}

// encodeParts cuts special tokens out of text and encodes what lies between
// them, without the marks of EncodeChat.
func (t *Tokenizer) encodeParts(ids *[]ID, c *chain, text string, special bool, mark string) {
	afterSpecial := true
	t.special.cut(text, special, func(part string, id ID) {
		if id >= 0 {
			*ids = append(*ids, id)
			afterSpecial = true
			return
		}
		if mark != "" {
			part = strings.ReplaceAll(part, mark, "")
		}
		if t.spm != nil {
			*ids = t.spm.encode(*ids, c, escapeSpaces(part, t.addPrefix && afterSpecial))
		} else {
			if t.escape {
				part = escapeSpaces(part, false)
			}
			*ids = t.encodeBPE(*ids, c, part)
		}
		afterSpecial = false
	})
}

// Len is the size of the vocabulary.
func (t *Tokenizer) Len() int { return len(t.types) }

// IsEOG says whether an id ends generation.
func (t *Tokenizer) IsEOG(id ID) bool {
	_, found := slices.BinarySearch(t.eog, id)
	return found
}

// EOG lists the ids that end generation, in rising order. The caller owns the slice.
func (t *Tokenizer) EOG() []ID { return slices.Clone(t.eog) }

// BOS is the id that begins a text, -1 when there is none.
func (t *Tokenizer) BOS() ID { return t.bos }

// EOS is the id that ends a text, -1 when there is none.
func (t *Tokenizer) EOS() ID { return t.eos }

// AddsBOS says whether the vocabulary asks for BOS in front of a text. Chat
// templates write it themselves: see EncodeChat.
func (t *Tokenizer) AddsBOS() bool { return t.addBOS }

// Special says whether a token is a control token, which has no text of its own.
func (t *Tokenizer) Special(id ID) bool {
	if id < 0 || int(id) >= len(t.types) {
		return false
	}
	return t.types[id] == typeControl || t.types[id] == typeUnknown
}

// Lookup finds the token that is stored under a text, such as "<|im_end|>".
func (t *Tokenizer) Lookup(piece string) (ID, bool) {
	switch {
	case t.spm != nil:
		return t.spm.lookup.find(piece)
	case t.escape:
		return t.bpe.whole.find(piece)
	}
	if raw, ok := appendBytes(nil, piece); ok {
		return t.bpe.whole.findBytes(raw)
	}
	id, ok := t.lookup[piece]
	return id, ok
}
