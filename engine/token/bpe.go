package token

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// bpe holds the merges of a vocabulary as a hash table from pairs of symbols
// to their rank and the symbol they become. A symbol is a token id or, for a
// text that merges mention but the vocabulary lacks, a number above them all.
type bpe struct {
	tokens  int        // symbols below this are tokens
	byteSym [256]int32 // symbol of each byte; byte-level only
	byteTok [256]ID    // token that stands for a byte that has no other, -1
	char    func(string) int32
	table   []slot // open addressing; length is a power of two
	shift   int
	made    []uint64 // bit set of the tokens that some merge makes
	whole   *index   // tokens by the bytes they stand for
	ignore  bool     // a word that is a token is not merged

	// Most words of a text are tokens themselves, and merging leads there.
	// Whether it does is found out once per token and kept as two bits.
	checked, direct []atomic.Uint64
}

type slot struct {
	key  uint64 // left symbol + 1, right symbol
	rank uint32
	sym  int32
}

// runeByte is the byte that a character stands for in byte-level vocabularies; -1:
// none. They write a printable character for each byte (GPT-2's encoder, openai/gpt-2 src/encoder.py): itself where that
// can be seen, else the next character from U+0100 on.
var runeByte = func() (from [324]int16) {
	for i := range from {
		from[i] = -1
	}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < 33 || b > 126 && b < 161 || b == 173 {
			r = next
			next++
		}
		from[r] = int16(b)
	}
	return from
}()

// appendBytes appends the bytes that a stored text stands for. ok is false
// when a character is not of the printable alphabet.
func appendBytes(dst []byte, text string) (out []byte, ok bool) {
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			if b < 33 || b > 126 {
				return dst, false
			}
			dst = append(dst, b)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if int(r) >= len(runeByte) || runeByte[r] < 0 {
			return dst, false
		}
		dst = append(dst, byte(runeByte[r]))
		i += n
	}
	return dst, true
}

// setBPE prepares a vocabulary that merges by rank.
func (t *Tokenizer) setBPE(v Vocab) error {
	name := v.Pre
	if v.Model == "gemma4" {
		name = "gemma4"
	}
	pre, err := findPre(name)
	if err != nil {
		return err
	}
	if len(v.Merges) == 0 {
		return fmt.Errorf("the vocabulary has no merges (tokenizer.ggml.merges), byte-level BPE needs them")
	}
	t.split, t.clean, t.addBOS, t.escape = pre.split, !pre.exact, pre.addBOS, pre.lines
	t.alwaysBOS = name == "gemma4" // llama.cpp PR21500
	b := &bpe{tokens: len(v.Tokens), ignore: pre.ignoreMerges}
	t.bpe = b
	b.made = make([]uint64, (len(v.Tokens)+63)/64)
	b.checked = make([]atomic.Uint64, len(b.made))
	b.direct = make([]atomic.Uint64, len(b.made))
	for i := range b.byteTok {
		b.byteTok[i] = -1
	}

	// All byte texts lie in one piece of memory.
	keys := v.Tokens
	if !pre.lines {
		keys = make([]string, len(v.Tokens))
		total := 0
		for _, text := range v.Tokens {
			total += len(text)
		}
		var all strings.Builder
		all.Grow(total)
		var buf []byte
		for i, text := range v.Tokens {
			var ok bool
			if buf, ok = appendBytes(buf[:0], text); ok {
				start := all.Len()
				all.Write(buf)
				keys[i] = all.String()[start:]
			} else if _, twice := t.lookup[text]; !twice {
				t.lookup[text] = ID(i)
			}
		}
	}
	b.whole = newIndex(keys)
	t.pieces = slices.Clone(keys)
	for i := range keys {
		b.whole.add(ID(i))
		if keys[i] == "" {
			t.pieces[i] = v.Tokens[i]
		}
	}
	if pre.lines {
		for i := range b.byteTok {
			if id, ok := b.whole.find(fmt.Sprintf("<0x%02X>", i)); ok {
				b.byteTok[i] = id
			}
		}
	}
	return b.setMerges(v.Merges, !pre.lines)
}

// setMerges fills the table.
func (b *bpe) setMerges(merges []string, byteLevel bool) error {
	if len(merges) > 1<<28 {
		return fmt.Errorf("the vocabulary has %d merges, at most %d are supported", len(merges), 1<<28)
	}
	size := 1 << bits.Len(uint(2*len(merges)))
	b.table = make([]slot, size)
	b.shift = 64 - bits.Len(uint(size-1))
	extra := map[string]int32{}
	symbol := func(text []byte) int32 {
		if id, ok := b.whole.findBytes(text); ok {
			return int32(id)
		}
		if s, ok := extra[string(text)]; ok {
			return s
		}
		s := int32(b.tokens + len(extra))
		extra[string(text)] = s
		return s
	}
	if byteLevel {
		for i := range b.byteSym {
			one := [1]byte{byte(i)}
			b.byteSym[i] = symbol(one[:])
			if int(b.byteSym[i]) < b.tokens {
				b.byteTok[i] = ID(b.byteSym[i])
			}
		}
	}
	var buf []byte
	for rank, merge := range merges {
		// The left side may itself begin with a space in line vocabularies.
		cut := -1
		if len(merge) > 1 {
			cut = strings.IndexByte(merge[1:], ' ') + 1
		}
		if cut < 1 || cut == len(merge)-1 {
			return fmt.Errorf("merge %d is %q, two texts with a space between them are needed", rank, merge)
		}
		left, right := merge[:cut], merge[cut+1:]
		n := 0
		if byteLevel {
			var ok1, ok2 bool
			buf, ok1 = appendBytes(buf[:0], left)
			n = len(buf)
			buf, ok2 = appendBytes(buf, right)
			if !ok1 || !ok2 {
				continue // it can never apply: words are bytes
			}
		} else {
			buf = append(append(buf[:0], left...), right...)
			n = len(left)
		}
		l, r, both := symbol(buf[:n]), symbol(buf[n:]), symbol(buf)
		s := b.find(l, r)
		if s.key != 0 {
			continue // of two equal merges the first counts
		}
		*s = slot{key: pairKey(l, r), rank: uint32(rank), sym: both}
		if int(both) < b.tokens {
			b.made[both/64] |= 1 << (both % 64)
		}
	}
	b.char = func(c string) int32 {
		if id, ok := b.whole.find(c); ok {
			return int32(id)
		}
		if s, ok := extra[c]; ok {
			return s
		}
		return -1
	}
	return nil
}

func pairKey(l, r int32) uint64 { return uint64(l+1)<<32 | uint64(uint32(r)) }

// find gives the slot of a pair, or the empty one where it would go.
func (b *bpe) find(l, r int32) *slot {
	key := pairKey(l, r)
	mask := len(b.table) - 1
	for i := int(key * 0x9E3779B97F4A7C15 >> b.shift); ; i = (i + 1) & mask {
		s := &b.table[i]
		if s.key == key || s.key == 0 {
			return s
		}
	}
}

// pair implements pairer.
func (b *bpe) pair(c *chain, i, j int32) (uint32, int32) {
	l, r := c.sym[i], c.sym[j]
	if l < 0 || r < 0 {
		return never, -1
	}
	if s := b.find(l, r); s.key != 0 {
		return s.rank, s.sym
	}
	return never, -1
}

// reached says whether some merge makes the token.
func (b *bpe) reached(id ID) bool {
	return b.made[id/64]>>(id%64)&1 != 0
}

// encodeBPE encodes a part of a text that holds no special token.
func (t *Tokenizer) encodeBPE(ids []ID, c *chain, part string) []ID {
	t.split(plain(part), func(word string) {
		ids = t.encodeWord(ids, c, word)
	})
	return ids
}

// encodeWord encodes one word of the pre-tokenizer.
func (t *Tokenizer) encodeWord(ids []ID, c *chain, word string) []ID {
	b := t.bpe
	id, known := b.whole.find(word)
	bit := uint64(1) << (uint32(id) % 64)
	if known {
		if b.ignore || t.escape && strings.Trim(word, "\n") == "" {
			return append(ids, id)
		}
		if b.checked[id/64].Load()&bit != 0 && b.direct[id/64].Load()&bit != 0 {
			return append(ids, id)
		}
	}
	c.reset(word)
	if t.escape {
		for i := 0; i < len(word); {
			_, n := decode(word[i:])
			c.add(i, b.char(word[i:i+n]))
			i += n
		}
	} else {
		for i := range len(word) {
			c.add(i, b.byteSym[word[i]])
		}
	}
	c.merge(b)
	if known && b.checked[id/64].Load()&bit == 0 {
		if c.next[0] < 0 && c.sym[0] == int32(id) {
			b.direct[id/64].Or(bit)
		}
		b.checked[id/64].Or(bit)
	}
	for i := int32(0); i >= 0; i = c.next[i] {
		if s := c.sym[i]; s >= 0 && int(s) < b.tokens {
			ids = append(ids, ID(s))
			continue
		}
		// No token: its bytes, as far as they have tokens.
		for k := c.start[i]; k < c.end(i); k++ {
			if id := b.byteTok[word[k]]; id >= 0 {
				ids = append(ids, id)
			} else if t.unk >= 0 && t.escape {
				ids = append(ids, t.unk)
			}
		}
	}
	return ids
}

// setPieces fixes what each token decodes to, after types are settled.
func (t *Tokenizer) setPieces(v Vocab) {
	for i, text := range v.Tokens {
		switch t.types[i] {
		case typeControl, typeUnknown, typeUserDefined:
			t.pieces[i] = text
		case typeByte:
			t.pieces[i] = byteOf(text)
		case typeNormal:
			if t.spm != nil || t.escape {
				t.pieces[i] = strings.ReplaceAll(text, escapedSpace, " ")
			}
		default:
			t.pieces[i] = "" // unused
		}
	}
	t.pieces = slices.Clip(t.pieces)
}

// byteOf reads the text of a byte token, <0x0A>.
func byteOf(text string) string {
	var b byte
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return ""
	}
	for _, c := range []byte(text[3:5]) {
		switch {
		case c >= '0' && c <= '9':
			b = b<<4 | (c - '0')
		case c >= 'A' && c <= 'F':
			b = b<<4 | (c - 'A' + 10)
		case c >= 'a' && c <= 'f':
			b = b<<4 | (c - 'a' + 10)
		default:
			return ""
		}
	}
	return string([]byte{b})
}
