package token

import (
	"slices"
	"strings"
)

// matcher finds the tokens that are cut out of text before it is split into
// words: control and unknown tokens when asked for, user-defined ones always.
// It is a trie over their texts.
type matcher struct {
	first [256]bool // bytes that some token begins with
	edges map[uint64]int32
	ids   []ID // per node, -1 for none
	texts []string
	types []int32
}

func newMatcher(texts []string, types []int32) matcher {
	m := matcher{edges: map[uint64]int32{}, ids: []ID{-1}, texts: texts, types: types}
	for i, text := range texts {
		if text == "" || !cutOut(types[i]) {
			continue
		}
		m.first[text[0]] = true
		node := int32(0)
		for k := range len(text) {
			edge := uint64(node)<<8 | uint64(text[k])
			child, ok := m.edges[edge]
			if !ok {
				child = int32(len(m.ids))
				m.ids = append(m.ids, -1)
				m.edges[edge] = child
			}
			node = child
		}
		if m.ids[node] < 0 {
			m.ids[node] = ID(i)
		}
	}
	return m
}

func cutOut(typ int32) bool {
	return typ == typeControl || typ == typeUnknown || typ == typeUserDefined
}

// match is an occurrence of a token.
type match struct {
	start, end int
	id         ID
}

// cut hands the parts of text to yield in their order: text with id -1, or a
// token with its id.
//
// Where tokens overlap the longest one wins, wherever it begins, and of equal
// ones the leftmost: llama.cpp cuts the text by one token after the other,
// from the longest to the shortest.
func (m *matcher) cut(text string, special bool, yield func(part string, id ID)) {
	var found []match
	for i := 0; i < len(text); i++ {
		if !m.first[text[i]] {
			continue
		}
		node := int32(0)
		for k := i; k < len(text); k++ {
			child, ok := m.edges[uint64(node)<<8|uint64(text[k])]
			if !ok {
				break
			}
			node = child
			id := m.ids[node]
			if id >= 0 && (special || m.types[id] == typeUserDefined) {
				found = append(found, match{i, k + 1, id})
			}
		}
	}
	found = settle(found)
	at := 0
	for _, f := range found {
		if f.start > at {
			yield(text[at:f.start], -1)
		}
		yield(text[f.start:f.end], f.id)
		at = f.end
	}
	if at < len(text) {
		yield(text[at:], -1)
	}
}

// settle keeps of overlapping matches those that count. Matches come in order
// of their start; each run that hangs together is settled on its own.
func settle(found []match) []match {
	kept := found[:0]
	for i := 0; i < len(found); {
		j, end := i+1, found[i].end
		for j < len(found) && found[j].start < end {
			end = max(end, found[j].end)
			j++
		}
		if j == i+1 {
			kept = append(kept, found[i])
		} else {
			kept = append(kept, longestFirst(found[i:j])...)
		}
		i = j
	}
	return kept
}

// longestFirst picks from one run of overlapping matches.
func longestFirst(run []match) []match {
	order := slices.Clone(run)
	slices.SortStableFunc(order, func(a, b match) int {
		if d := (b.end - b.start) - (a.end - a.start); d != 0 {
			return d
		}
		if d := int(a.id) - int(b.id); d != 0 {
			return d
		}
		return a.start - b.start
	})
	base, end := run[0].start, 0
	for _, f := range run {
		end = max(end, f.end)
	}
	taken := make([]bool, end-base)
	var kept []match
	for _, f := range order {
		// A kept match is at least as long as this one, so it is enough to
		// look at both ends.
		if taken[f.start-base] || taken[f.end-1-base] {
			continue
		}
		for k := f.start; k < f.end; k++ {
			taken[k-base] = true
		}
		kept = append(kept, f)
	}
	slices.SortFunc(kept, func(a, b match) int { return a.start - b.start })
	return kept
}

// Names of tokens that end a turn or a text, whatever the file says of them,
// and of those whose first occurrence is the end-of-turn token. Most files
// name one end only, and models use several.
var (
	endOfTurn = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
		"<EOT>", "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}
	endOfMessage = []string{"<|eom_id|>"}
	// Models trained to fill in the middle go on into the next file after these.
	fillPad  = []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}
	fillRepo = []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}
	fillFile = []string{"<|file_sep|>"}
	// fillOther do not end anything; they are control tokens.
	fillOther = []string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>",
		"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>",
		"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"}
	endOfAnything = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
		"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>",
		"<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~["}
	// harmony frames messages with these; they are part of the text there.
	harmony = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}
)

// findEnds collects the ids that end generation, and corrects the types of
// control tokens that the file has as ordinary ones.
//
// llama.cpp does so for every token of these names. Here a normal token that
// merges of ordinary text lead to stays ordinary: in Qwen3's vocabulary "</s>"
// is five characters of HTML, and must not end an answer.
func (t *Tokenizer) findEnds(v Vocab) {
	control := func(names []string) ID {
		for _, name := range names {
			id, ok := t.Lookup(name)
			if !ok || t.ordinary(id) {
				continue
			}
			if t.types[id] != typeControl {
				t.types[id] = typeControl
			}
			return id
		}
		return -1
	}
	ends := map[ID]bool{}
	add := func(id ID) {
		if id >= 0 && int(id) < len(t.types) {
			ends[id] = true
		}
	}
	if t.eot < 0 {
		t.eot = control(endOfTurn)
	}
	if t.eom < 0 {
		t.eom = control(endOfMessage)
	}
	for _, name := range fillOther {
		control([]string{name})
	}
	add(control(fillPad))
	add(control(fillRepo))
	add(control(fillFile))
	for _, name := range endOfAnything {
		add(control([]string{name}))
	}
	for _, name := range harmony {
		if id, ok := t.Lookup(name); ok {
			t.types[id] = typeUserDefined
		}
	}
	add(t.eos)
	add(t.eot)
	add(t.eom)
	for _, id := range v.EOG {
		add(id)
	}
	has := func(name string) bool {
		id, ok := t.Lookup(name)
		return ok && ends[id]
	}
	// Where a message ends with <|end|> and the turn with another token, the
	// model goes on after <|end|>.
	if id, ok := t.Lookup("<|end|>"); ok && ends[id] &&
		(has("<|return|>") && (has("<|call|>") || has("<|calls|>")) || has("<|flush|>") && (has("<|call|>") || has("<|calls|>"))) {
		delete(ends, id)
		t.types[id] = typeUserDefined
	}
	// Gemma 4 has </s> for HTML.
	if id, ok := t.Lookup("</s>"); ok && ends[id] && has("<|tool_response>") && id != t.eos {
		delete(ends, id)
		t.types[id] = typeNormal
	}
	for id := range ends {
		t.eog = append(t.eog, id)
	}
	slices.Sort(t.eog)
}

// ordinary says whether a token is one that text is made of: normal, and
// reached by merging.
func (t *Tokenizer) ordinary(id ID) bool {
	return t.types[id] == typeNormal && t.bpe != nil && t.bpe.reached(id)
}

const escapedSpace = "▁"

// escapeSpaces replaces spaces by U+2581, after putting one in front if asked.
func escapeSpaces(s string, prefix bool) string {
	if prefix {
		s = " " + s
	}
	return strings.ReplaceAll(s, " ", escapedSpace)
}
