package engine

import (
	"errors"
	"fmt"

	"outcrop/engine/gguf"
	"outcrop/engine/token"
)

// vocabOf reads the tokenizer.ggml.* keys (models.md 1.6).
func vocabOf(m *gguf.Meta) (token.Vocab, error) {
	var v token.Vocab
	var first error
	keep := func(err error) {
		if err != nil && !errors.Is(err, gguf.ErrNoKey) && first == nil {
			first = err
		}
	}
	var err error
	if v.Model, err = m.String("tokenizer.ggml.model"); err != nil {
		return v, err
	}
	if v.Tokens, err = m.Strings("tokenizer.ggml.tokens"); err != nil {
		return v, err
	}
	v.Pre, err = m.String("tokenizer.ggml.pre")
	keep(err)
	v.Merges, err = m.Strings("tokenizer.ggml.merges")
	keep(err)
	types, err := m.Ints("tokenizer.ggml.token_type")
	keep(err)
	for _, t := range types {
		v.Types = append(v.Types, int32(t))
	}
	scores, err := m.Floats("tokenizer.ggml.scores")
	keep(err)
	for _, s := range scores {
		v.Scores = append(v.Scores, float32(s))
	}
	id := func(key string) token.ID {
		n, err := m.Int("tokenizer.ggml." + key)
		if err != nil {
			keep(err)
			return -1
		}
		// Writers store "none" as the largest 32-bit number.
		if n < 0 || n >= int64(len(v.Tokens)) {
			return -1
		}
		return token.ID(n)
	}
	v.BOS, v.EOS = id("bos_token_id"), id("eos_token_id")
	v.EOT, v.EOM = id("eot_token_id"), id("eom_token_id")
	v.UNK, v.SEP, v.PAD = id("unknown_token_id"), id("seperator_token_id"), id("padding_token_id")
	flag := func(key string) *bool {
		b, err := m.Bool("tokenizer.ggml." + key)
		if err != nil {
			keep(err)
			return nil
		}
		return &b
	}
	v.AddBOS, v.AddEOS = flag("add_bos_token"), flag("add_eos_token")
	v.AddSpacePrefix = flag("add_space_prefix")
	if eog, err := m.Ints("tokenizer.ggml.eog_token_ids"); err == nil {
		for _, n := range eog {
			if n >= 0 && n < int64(len(v.Tokens)) {
				v.EOG = append(v.EOG, token.ID(n))
			}
		}
	}
	if first != nil {
		return v, fmt.Errorf("read the vocabulary: %w", first)
	}
	return v, nil
}
