package token

import "fmt"

// Metadata is what ReadVocab needs of a model file; *gguf.Meta has it.
type Metadata interface {
	Any(key string) (any, bool)
	String(key string) (string, error)
	Strings(key string) ([]string, error)
	Uint(key string) (uint64, error)
	Bool(key string) (bool, error)
	Ints(key string) ([]int64, error)
	Floats(key string) ([]float64, error)
}

// ReadVocab reads a vocabulary from the keys tokenizer.ggml.* of a GGUF file.
// Ids that the file does not give have the defaults of their kind.
func ReadVocab(m Metadata) (Vocab, error) {
	const p = "tokenizer.ggml."
	v := Vocab{BOS: -1, EOS: -1, EOT: -1, EOM: -1, UNK: -1, SEP: -1, PAD: -1}
	has := func(key string) bool {
		_, ok := m.Any(p + key)
		return ok
	}
	if !has("model") && !has("tokens") {
		return v, fmt.Errorf("this pack has no vocabulary (no tokenizer.ggml.tokens): it cannot be given text")
	}
	var err error
	if v.Model, err = m.String(p + "model"); err != nil {
		return v, err
	}
	if v.Tokens, err = m.Strings(p + "tokens"); err != nil {
		return v, err
	}
	if has("pre") {
		if v.Pre, err = m.String(p + "pre"); err != nil {
			return v, err
		}
	}
	if has("token_type") {
		list, err := m.Ints(p + "token_type")
		if err != nil {
			return v, err
		}
		v.Types = make([]int32, len(list))
		for i, n := range list {
			v.Types[i] = int32(n)
		}
	}
	if has("scores") {
		list, err := m.Floats(p + "scores")
		if err != nil {
			return v, err
		}
		v.Scores = make([]float32, len(list))
		for i, n := range list {
			v.Scores[i] = float32(n)
		}
	}
	if has("merges") {
		if v.Merges, err = m.Strings(p + "merges"); err != nil {
			return v, err
		}
	}
	switch {
	case v.Model == "llama":
		v.BOS, v.EOS, v.UNK = 1, 2, 0
	case v.Model == "gpt2" && v.Pre != "glm4" && v.Pre != "chatglm-bpe":
		v.BOS, v.EOS = 11, 11 // Falcon's, from when byte-level files named none
	case v.Model == "gpt2":
		v.EOS = 11
	}
	for key, id := range map[string]*ID{
		"bos_token_id": &v.BOS, "eos_token_id": &v.EOS, "eot_token_id": &v.EOT, "eom_token_id": &v.EOM,
		"unknown_token_id": &v.UNK, "seperator_token_id": &v.SEP, "padding_token_id": &v.PAD,
	} {
		if !has(key) {
			continue
		}
		// Some files have -1 or a number past the end for none.
		if n, err := m.Uint(p + key); err == nil && n < uint64(len(v.Tokens)) {
			*id = ID(n)
		} else if n, err := m.Ints(p + key); err != nil {
			return v, err
		} else if len(n) == 1 && n[0] < 0 {
			*id = -1
		}
	}
	for key, flag := range map[string]**bool{"add_bos_token": &v.AddBOS, "add_eos_token": &v.AddEOS, "add_space_prefix": &v.AddSpacePrefix} {
		if !has(key) {
			continue
		}
		b, err := m.Bool(p + key)
		if err != nil {
			return v, err
		}
		*flag = &b
	}
	if has("eog_token_ids") {
		list, err := m.Ints(p + "eog_token_ids")
		if err != nil {
			return v, err
		}
		for _, n := range list {
			if n >= 0 && n < int64(len(v.Tokens)) {
				v.EOG = append(v.EOG, ID(n))
			}
		}
	}
	return v, nil
}
