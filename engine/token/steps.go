package token

import "strings"

// span is a range of characters, both ends included.
type span struct{ lo, hi rune }

// Ranges that patterns name.
var (
	han        = []span{{0x4E00, 0x9FA5}}
	kana       = []span{{0x3040, 0x30FF}}
	hanAndMore = []span{{0x0800, 0x9FA5}, {0xAC00, 0xD7FF}} // DeepSeek's "CJK" range begins that early
)

// inRanges accepts characters of some ranges, but no white space in them: that
// is how llama.cpp reads such ranges.
func inRanges(lists ...[]span) func(r rune, k class) bool {
	return func(r rune, k class) bool {
		if k&space != 0 {
			return false
		}
		for _, l := range lists {
			for _, s := range l {
				if r >= s.lo && r <= s.hi {
					return true
				}
			}
		}
		return false
	}
}

// punctAnd is \p{P} and a few ASCII symbols.
func punctAnd(more string) func(r rune, k class) bool {
	return func(r rune, k class) bool {
		return k&punct != 0 || r < 0x80 && strings.IndexByte(more, byte(r)) >= 0
	}
}

// runOf matches one or more characters that fit.
func runOf(fits func(r rune, k class) bool) step {
	return func(s string, i int) int {
		t := classTable()
		start := i
		for i < len(s) {
			r, n := decode(s[i:])
			if !fits(r, t.of(r)) {
				break
			}
			i += n
		}
		if i == start {
			return -1
		}
		return i
	}
}

func runOfClass(k class) step {
	return func(s string, i int) int {
		if end := classRun(classTable(), s, i, k); end > i {
			return end
		}
		return -1
	}
}

// spaceAndRun matches `\s?X+`.
func spaceAndRun(fits func(r rune, k class) bool) step {
	run := runOf(fits)
	return func(s string, i int) int {
		t := classTable()
		if r, n := decode(s[i:]); t.of(r)&space != 0 && i+n < len(s) {
			if end := run(s, i+n); end > 0 {
				return end
			}
		}
		return run(s, i)
	}
}

// oneNumber matches \p{N}.
func oneNumber(s string, i int) int { return numbers(1)(s, i) }

// numbers matches \p{N}{1,most}.
func numbers(most int) step {
	return func(s string, i int) int {
		if end := numberRun(classTable(), s, i, most); end > i {
			return end
		}
		return -1
	}
}

// threeDigits matches [0-9][0-9][0-9].
func threeDigits(s string, i int) int {
	if i+3 > len(s) {
		return -1
	}
	for _, b := range []byte(s[i : i+3]) {
		if b < '0' || b > '9' {
			return -1
		}
	}
	return i + 3
}

// oneBreak matches [\r\n].
func oneBreak(s string, i int) int {
	if s[i] == '\r' || s[i] == '\n' {
		return i + 1
	}
	return -1
}

// lineOrBreaks matches [^\n]+|[\n]+.
func lineOrBreaks(s string, i int) int {
	if s[i] != '\n' {
		if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(s)
	}
	for i < len(s) && s[i] == '\n' {
		i++
	}
	return i
}

// trailingSpace cuts white space off the end: \s+$.
func trailingSpace(s string, yield func(string)) {
	t := classTable()
	cut := 0
	for i := 0; i < len(s); {
		r, n := decode(s[i:])
		i += n
		if t.of(r)&space == 0 {
			cut = i
		}
	}
	if cut > 0 {
		yield(s[:cut])
	}
	if cut < len(s) {
		yield(s[cut:])
	}
}

// latin is the set of cased letters that DeepSeek's first tokenizer lists.
func latin(r rune) bool {
	if r < 0x80 {
		return asciiLetter(byte(r))
	}
	lo, hi := 0, len(latinSpans)
	for lo < hi {
		mid := (lo + hi) / 2
		switch s := latinSpans[mid]; {
		case r < s.lo:
			hi = mid
		case r > s.hi:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}

// latinSpans is the list above ASCII, in order.
var latinSpans = []span{
	{0xB5, 0xB5}, {0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0x1BA}, {0x1BC, 0x1BF}, {0x1C4, 0x293}, {0x295, 0x2AF},
	{0x370, 0x373}, {0x376, 0x377}, {0x37B, 0x37D}, {0x37F, 0x37F}, {0x386, 0x386}, {0x388, 0x38A}, {0x38C, 0x38C},
	{0x38E, 0x3A1}, {0x3A3, 0x3F5}, {0x3F7, 0x481}, {0x48A, 0x52F}, {0x531, 0x556}, {0x10A0, 0x10C5}, {0x13A0, 0x13F5},
	{0x13F8, 0x13FD}, {0x1C90, 0x1CBA}, {0x1CBD, 0x1CBF}, {0x1D00, 0x1D2B}, {0x1D6B, 0x1D77}, {0x1D79, 0x1D9A},
	{0x1E00, 0x1F15}, {0x1F18, 0x1F1D}, {0x1F20, 0x1F45}, {0x1F48, 0x1F4D}, {0x1F50, 0x1F57}, {0x1F59, 0x1F59},
	{0x1F5B, 0x1F5B}, {0x1F5D, 0x1F5D}, {0x1F5F, 0x1F7D}, {0x1F80, 0x1FB4}, {0x1FB6, 0x1FBC}, {0x1FBE, 0x1FBE},
	{0x1FC2, 0x1FC4}, {0x1FC6, 0x1FCC}, {0x1FD0, 0x1FD3}, {0x1FD6, 0x1FDB}, {0x1FE0, 0x1FEC}, {0x1FF2, 0x1FF4},
	{0x1FF6, 0x1FFC}, {0x2102, 0x2102}, {0x2107, 0x2107}, {0x210A, 0x2113}, {0x2115, 0x2115}, {0x2119, 0x211D},
	{0x2124, 0x2124}, {0x2126, 0x2126}, {0x2128, 0x2128}, {0x212A, 0x212D}, {0x212F, 0x2134}, {0x2139, 0x2139},
	{0x213C, 0x213F}, {0x2145, 0x2149}, {0x214E, 0x214E}, {0x2183, 0x2184}, {0x2C00, 0x2C7B}, {0x2C7E, 0x2CE4},
	{0x2CEB, 0x2CEE}, {0x2CF2, 0x2CF3}, {0xA640, 0xA66D}, {0xA680, 0xA69B}, {0xA722, 0xA76F}, {0xA771, 0xA787},
	{0xA78B, 0xA78E}, {0xAB70, 0xABBF}, {0xFB00, 0xFB06}, {0xFB13, 0xFB17}, {0xFF21, 0xFF3A}, {0xFF41, 0xFF5A},
	{0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB}, {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2},
	{0x118A0, 0x118DF}, {0x1E900, 0x1E943},
}

// wideASCII is the same tokenizer's set of punctuation, [!-/:-~！-／：-～‘-‟　-。],
// without its white space: ranges that take in letters too, which an earlier stage has cut out.
func wideASCII(r rune) bool {
	return r >= '!' && r <= '/' || r >= ':' && r <= '~' || r >= 0xFF01 && r <= 0xFF0F || r >= 0xFF1A && r <= 0xFF5E ||
		r >= 0x2018 && r <= 0x201F || r >= 0x3001 && r <= 0x3002
}
