package token

import (
	"fmt"
	"math"
	"sync/atomic"
)

// spm merges as SentencePiece's BPE models do: any two neighbours whose joint
// text is a token may merge, the one of the highest score first. Characters
// that are no token fall back to byte tokens.
type spm struct {
	lookup  *index
	prio    []uint32 // per token: lower merges first
	byteTok [256]ID
	longest int // bytes of the longest token

	// beside marks pairs of characters that stand next to each other in some
	// token, as a hashed bit set. Nothing merges across any other pair, so
	// text is cut there into parts that are encoded on their own; a false
	// positive only makes a part longer.
	beside []uint64

	checked, direct []atomic.Uint64 // as in bpe
}

const besideBits = 20

func besideHash(a, b uint32) uint32 {
	return uint32((uint64(a)<<32 | uint64(b)) * 0x9E3779B97F4A7C15 >> (64 - besideBits))
}

// setSPM prepares a vocabulary that merges by score.
func (t *Tokenizer) setSPM(v Vocab) error {
	if len(v.Scores) < len(v.Tokens) {
		return fmt.Errorf("the vocabulary has %d tokens and %d scores (tokenizer.ggml.scores)", len(v.Tokens), len(v.Scores))
	}
	t.addBOS, t.addPrefix = true, true
	s := &spm{lookup: newIndex(v.Tokens), prio: make([]uint32, len(v.Tokens)), beside: make([]uint64, 1<<besideBits/64)}
	t.spm = s
	s.checked = make([]atomic.Uint64, (len(v.Tokens)+63)/64)
	s.direct = make([]atomic.Uint64, len(s.checked))
	for i, text := range v.Tokens {
		s.prio[i] = scorePriority(v.Scores[i])
		s.longest = max(s.longest, len(text))
		s.lookup.add(ID(i))
		var before uint32
		for k := 0; k < len(text); {
			char, n := charCode(text[k:])
			if k > 0 {
				h := besideHash(before, char)
				s.beside[h/64] |= 1 << (h % 64)
			}
			before = char
			k += n
		}
	}
	for i := range s.byteTok {
		if id, ok := s.lookup.find(fmt.Sprintf("<0x%02X>", i)); ok {
			s.byteTok[i] = id
		} else if id, ok := s.lookup.find(string([]byte{byte(i)})); ok {
			s.byteTok[i] = id
		} else {
			s.byteTok[i] = t.unk
		}
	}
	t.pieces = make([]string, len(v.Tokens))
	return nil
}

// scorePriority orders scores: the higher the score, the lower the result.
func scorePriority(score float32) uint32 {
	switch {
	case score != score: // NaN goes last
		return never - 1
	case score == 0:
		score = 0 // not -0
	}
	b := math.Float32bits(score)
	if b>>31 != 0 {
		return b
	}
	return ^(b | 1<<31)
}

// charCode is the character at the start of s as its bytes. Lengths follow
// from the first byte alone, as SentencePiece and llama.cpp have it.
func charCode(s string) (code uint32, n int) {
	switch b := s[0]; {
	case b < 0xC0:
		n = 1
	case b < 0xE0:
		n = 2
	case b < 0xF0:
		n = 3
	default:
		n = 4
	}
	n = min(n, len(s))
	for _, b := range []byte(s[:n]) {
		code = code<<8 | uint32(b)
	}
	return code, n
}

// pair implements pairer.
func (s *spm) pair(c *chain, i, j int32) (uint32, int32) {
	lo, hi := c.start[i], c.end(j)
	if int(hi-lo) > s.longest {
		return never, -1
	}
	if id, ok := s.lookup.find(c.text[lo:hi]); ok {
		return s.prio[id], int32(id)
	}
	return never, -1
}

// encode encodes text in which spaces are escaped.
func (s *spm) encode(ids []ID, c *chain, text string) []ID {
	start := 0
	var before uint32
	for k := 0; k < len(text); {
		char, n := charCode(text[k:])
		if k > start {
			h := besideHash(before, char)
			if s.beside[h/64]>>(h%64)&1 == 0 {
				ids = s.part(ids, c, text[start:k])
				start = k
			}
		}
		before = char
		k += n
	}
	if start < len(text) {
		ids = s.part(ids, c, text[start:])
	}
	return ids
}

// part encodes a part that nothing merges across the borders of.
func (s *spm) part(ids []ID, c *chain, text string) []ID {
	id, known := ID(0), false
	if len(text) <= s.longest {
		id, known = s.lookup.find(text)
	}
	bit := uint64(1) << (uint32(id) % 64)
	if known && s.direct[id/64].Load()&bit != 0 {
		return append(ids, id)
	}
	c.reset(text)
	for k := 0; k < len(text); {
		_, n := charCode(text[k:])
		sym := int32(-1)
		if id, ok := s.lookup.find(text[k : k+n]); ok {
			sym = int32(id)
		}
		c.add(k, sym)
		k += n
	}
	c.merge(s)
	if known && s.checked[id/64].Load()&bit == 0 {
		if c.next[0] < 0 && c.sym[0] == int32(id) {
			s.direct[id/64].Or(bit)
		}
		s.checked[id/64].Or(bit)
	}
	for i := int32(0); i >= 0; i = c.next[i] {
		if sym := c.sym[i]; sym >= 0 {
			ids = append(ids, ID(sym))
			continue
		}
		for _, b := range []byte(text[c.start[i]:c.end(i)]) {
			if s.byteTok[b] >= 0 {
				ids = append(ids, s.byteTok[b])
			}
		}
	}
	return ids
}
