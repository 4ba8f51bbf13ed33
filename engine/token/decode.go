package token

import (
	"bytes"
	"unicode/utf8"
)

// Piece returns the bytes that a token stands for, its name for a control
// token. They may be a part of a character. The caller owns the slice.
func (t *Tokenizer) Piece(id ID) []byte {
	return []byte(t.piece(id, true))
}

func (t *Tokenizer) piece(id ID, special bool) string {
	if id < 0 || int(id) >= len(t.pieces) || !special && t.Special(id) {
		return ""
	}
	return t.pieces[id]
}

// Decode turns the ids of a whole text into its bytes, as the reverse of
// Encode: the space that SentencePiece puts in front is taken off again.
// special shows the names of control tokens. Some older byte-level models ask
// for spaces before punctuation to be taken out too, and llama.cpp does so;
// what a model generates is better read through Stream, which changes nothing.
func (t *Tokenizer) Decode(ids []ID, special bool) []byte {
	var out []byte
	first := t.addPrefix
	for _, id := range ids {
		piece := t.piece(id, special)
		if piece == "" {
			continue
		}
		if first && piece[0] == ' ' {
			piece = piece[1:]
		}
		first = false
		out = append(out, piece...)
	}
	if t.clean {
		out = tidy(out)
	}
	return out
}

// tidy takes out spaces that the oldest byte-level tokenizers had before
// punctuation and contractions, in the steps that llama.cpp takes: before ? !
// . and , first, then around a lone apostrophe, then before 's 'm 're and 've.
func tidy(text []byte) []byte {
	pass := func(drop func(in []byte, i int) (before bool, after bool)) {
		out := text[:0:len(text)]
		in := bytes.Clone(text)
		for i := 0; i < len(in); i++ {
			before, after := false, false
			if i > 0 && in[i-1] == ' ' {
				before, after = drop(in, i)
			}
			if before && len(out) > 0 {
				out = out[:len(out)-1]
			}
			out = append(out, in[i])
			if after {
				i++
				in[i] = 0 // it is no space for what follows
			}
		}
		text = out
	}
	if bytes.IndexByte(text, ' ') < 0 {
		return text
	}
	pass(func(in []byte, i int) (bool, bool) {
		c := in[i]
		return c == '?' || c == '!' || c == '.' || c == ',', false
	})
	pass(func(in []byte, i int) (bool, bool) {
		alone := in[i] == '\'' && i+1 < len(in) && in[i+1] == ' '
		return alone, alone
	})
	pass(func(in []byte, i int) (bool, bool) {
		rest := in[i:]
		return bytes.HasPrefix(rest, []byte("'s")) || bytes.HasPrefix(rest, []byte("'m")) ||
			bytes.HasPrefix(rest, []byte("'re")) || bytes.HasPrefix(rest, []byte("'ve")), false
	})
	return text
}

// Stream decodes a running text token by token. What Push and Flush return,
// put together, is what the tokens stand for, unchanged: it equals Decode
// except that a space in front stays, since the text may go on from a prompt,
// and that Decode may tidy.
type Stream struct {
	t       *Tokenizer
	special bool
	tags    bool
	held    []byte // start of a character whose end has not come
}

// Stream starts a stream. special shows the names of control tokens.
func (t *Tokenizer) Stream(special bool) *Stream {
	return &Stream{t: t, special: special}
}

// TagStream starts a stream for text that Reply takes apart. It hides control
// tokens except those that Reply looks for: some models have the tags of
// reasoning and of calls as control tokens ([TOOL_CALLS], <|python_tag|>,
// [THINK]), and without them calls would look like an answer.
func (t *Tokenizer) TagStream() *Stream {
	return &Stream{t: t, tags: true}
}

// Push takes the next token and returns the text that is complete: never a
// part of a character. Bytes that cannot become a character are passed on as
// they are as soon as that is certain, so damaged text never holds the rest up.
func (s *Stream) Push(id ID) string {
	s.held = append(s.held, s.t.piece(id, s.special || s.tags && s.t.tags[id])...)
	n := len(s.held) - unfinished(s.held)
	out := string(s.held[:n])
	s.held = append(s.held[:0], s.held[n:]...)
	return out
}

// Flush returns what is left, the start of a character that never ended.
func (s *Stream) Flush() string {
	out := string(s.held)
	s.held = s.held[:0]
	return out
}

// unfinished counts the bytes at the end that begin a character and want more.
func unfinished(b []byte) int {
	for n := 1; n <= 3 && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}
