package token

import (
	"strings"
)

// pattern is the family of patterns that began with tiktoken's cl100k, with
// the switches by which models differ. In regular expressions, in this order:
//
//	'(s|t|re|ve|m|ll|d)             any case: fold; not at all: noContraction or cased
//	[ASCII punctuation][A-Za-z]+    punctWord
//	[^\r\n LETTER NUMBER]?LETTER+   letters says what a LETTER is; with positive, NUMBER may precede and P and S may not
//	\p{N}{1,DIGITS}                 digits; 0 is any number
//	 ?[^\s LETTER NUMBER]+TAIL*     with positive [\p{P}\p{S}]+
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
//
// cased splits words where a capital follows a small letter, and takes a
// contraction at the end of a word (unless noContraction).
type pattern struct {
	fold          bool
	noContraction bool
	punctWord     bool
	letters       class
	cased         bool
	positive      bool
	digits        int
	tail          string
}

// next is the pattern's step.
func (p *pattern) next(s string, i int) int {
	t := classTable()
	if p.fold && s[i] == '\'' && !p.cased {
		if n := contraction(s[i:], true); n > 0 {
			return i + n
		}
	}
	r, n := decode(s[i:])
	k := t.of(r)
	if p.punctWord && asciiPunct(s[i]) && i+1 < len(s) && asciiLetter(s[i+1]) {
		for i++; i < len(s) && asciiLetter(s[i]); i++ {
		}
		return i
	}
	// A word, with any one character in front that is no letter itself.
	if k&p.letters != 0 {
		return p.word(t, s, i)
	}
	unfit := letter | number
	if p.positive {
		unfit = letter | punct | symbol
	}
	if k&unfit == 0 && r != '\r' && r != '\n' && i+n < len(s) {
		if r2, _ := decode(s[i+n:]); t.of(r2)&p.letters != 0 {
			return p.word(t, s, i+n)
		}
	}
	if k&number != 0 && !p.positive {
		return numberRun(t, s, i, p.digits)
	}
	if end := p.punctuation(t, s, i, r, k); end > 0 {
		return end
	}
	if k&space != 0 {
		return spaces(t, s, i, true)
	}
	return -1
}

// word ends a run of letters that begins at i.
func (p *pattern) word(t *classes, s string, i int) int {
	if p.cased {
		return p.casedWord(t, s, i)
	}
	return classRun(t, s, i, p.letters)
}

// casedWord matches capitals and then small letters, where a letter outside
// ASCII is both: [not a-z]*[not A-Z]+ or, failing that, [not a-z]+.
func (p *pattern) casedWord(t *classes, s string, i int) int {
	end := i       // of the letters that are not a-z
	afterBoth := 0 // end of the last of them that is not A-Z either
	for end < len(s) {
		r, n := decode(s[end:])
		if t.of(r)&p.letters == 0 || r >= 'a' && r <= 'z' {
			break
		}
		end += n
		if r < 'A' || r > 'Z' {
			afterBoth = end
		}
	}
	small := end
	for small < len(s) {
		r, n := decode(s[small:])
		if t.of(r)&p.letters == 0 || r >= 'A' && r <= 'Z' {
			break
		}
		small += n
	}
	switch {
	case small > end:
		end = small
	case afterBoth > 0:
		// The first part gives back until its last letter can be the second.
		end = afterBoth
	}
	if !p.noContraction && end < len(s) && s[end] == '\'' {
		end += contraction(s[end:], true)
	}
	return end
}

// punctuation matches marks with a space in front; 0 when there are none.
func (p *pattern) punctuation(t *classes, s string, i int, r rune, k class) int {
	fits := func(k class) bool {
		if p.positive {
			return k&(punct|symbol) != 0
		}
		return k&(space|number|p.letters) == 0
	}
	if r == ' ' && i+1 < len(s) {
		i++
		r2, _ := decode(s[i:])
		k = t.of(r2)
	}
	if !fits(k) {
		return 0
	}
	for i < len(s) {
		r, n := decode(s[i:])
		if !fits(t.of(r)) {
			break
		}
		i += n
	}
	for i < len(s) && p.tail != "" && strings.IndexByte(p.tail, s[i]) >= 0 {
		i++
	}
	return i
}

// gpt2Next is the step of GPT-2's pattern:
//
//	'(s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)
//
// A single space that none of these takes stands alone.
func gpt2Next(s string, i int) int {
	t := classTable()
	if s[i] == '\'' {
		if n := contraction(s[i:], false); n > 0 {
			return i + n
		}
	}
	r, _ := decode(s[i:])
	k := t.of(r)
	at := i
	if r == ' ' && i+1 < len(s) {
		r2, _ := decode(s[i+1:])
		if k2 := t.of(r2); k2&space == 0 {
			k, at = k2, i+1
		}
	}
	switch {
	case k&letter != 0:
		return classRun(t, s, at, letter)
	case k&number != 0:
		return classRun(t, s, at, number)
	case k&space == 0:
		for at < len(s) {
			r, n := decode(s[at:])
			if t.of(r)&(space|letter|number) != 0 {
				break
			}
			at += n
		}
		return at
	}
	return spaces(t, s, i, false)
}

// bloomNext matches ` ?[^(\s|.,!?…。，、।۔،)]+`.
func bloomNext(s string, i int) int {
	t := classTable()
	fits := func(r rune) bool {
		return t.of(r)&space == 0 && !strings.ContainsRune("(|.,!?…。，、।۔،)", r)
	}
	if s[i] == ' ' {
		i++
	}
	start := i
	for i < len(s) {
		r, n := decode(s[i:])
		if !fits(r) {
			break
		}
		i += n
	}
	if i == start {
		return -1
	}
	return i
}

// contraction measures 's 't 're 've 'm 'll 'd at the start of s; 0 for none.
func contraction(s string, fold bool) int {
	low := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		b := s[i]
		if fold && b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch low(1) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if low(2) == 'e' {
			return 3
		}
	case 'l':
		if low(2) == 'l' {
			return 3
		}
	}
	return 0
}

// spaces matches white space that begins at i. With breaks, white space up to
// its last line break is a word. Else all but the last character is one when
// something follows, so that the last can go with what follows; a single
// character is one only with breaks.
func spaces(t *classes, s string, i int, breaks bool) int {
	end, last, afterBreak := i, i, 0
	for end < len(s) {
		r, n := decode(s[end:])
		if t.of(r)&space == 0 {
			break
		}
		last = end
		end += n
		if r == '\r' || r == '\n' {
			afterBreak = end
		}
	}
	switch {
	case breaks && afterBreak > 0:
		return afterBreak
	case end == len(s):
		return end
	case last > i:
		return last
	case breaks:
		return end
	}
	return -1
}

func classRun(t *classes, s string, i int, k class) int {
	for i < len(s) {
		r, n := decode(s[i:])
		if t.of(r)&k == 0 {
			break
		}
		i += n
	}
	return i
}

// numberRun matches up to most number characters, all for 0.
func numberRun(t *classes, s string, i, most int) int {
	for count := 0; i < len(s) && (most == 0 || count < most); count++ {
		r, n := decode(s[i:])
		if t.of(r)&number == 0 {
			break
		}
		i += n
	}
	return i
}

func asciiLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func asciiPunct(b byte) bool {
	return b > ' ' && b < 0x7F && !asciiLetter(b) && (b < '0' || b > '9')
}
