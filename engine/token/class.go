package token

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of properties of a character, as the patterns of
// pre-tokenizers ask for them.
type class uint8

const (
	letter class = 1 << iota // \p{L}
	mark                     // \p{M}
	number                   // \p{N}
	punct                    // \p{P}
	symbol                   // \p{S}
	space                    // \s: White_Space
)

// classes is a table of all characters in pages of 256. Most pages are equal
// to another one and share its memory.
type classes struct {
	page [utf8.MaxRune>>8 + 1]uint16
	data [][256]class
}

// classTable is built from the tables of package unicode on first use.
var classTable = sync.OnceValue(func() *classes {
	all := make([]class, utf8.MaxRune+1)
	for _, p := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.L, letter}, {unicode.M, mark}, {unicode.N, number},
		{unicode.P, punct}, {unicode.S, symbol}, {unicode.White_Space, space},
	} {
		set := func(lo, hi, stride rune) {
			for r := lo; r <= hi; r += stride {
				all[r] |= p.class
			}
		}
		for _, r := range p.table.R16 {
			set(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range p.table.R32 {
			set(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	t := &classes{}
	seen := map[[256]class]uint16{}
	for i := range t.page {
		page := [256]class(all[i<<8:])
		n, ok := seen[page]
		if !ok {
			n = uint16(len(t.data))
			seen[page] = n
			t.data = append(t.data, page)
		}
		t.page[i] = n
	}
	return t
})

func (t *classes) of(r rune) class { return t.data[t.page[r>>8]][r&255] }

// decode reads the character at the start of s, which plain has made regular:
// UTF-8, except that a surrogate is a character of three bytes.
func decode(s string) (r rune, n int) {
	b := s[0]
	switch {
	case b < 0x80:
		return rune(b), 1
	case b < 0xE0:
		return rune(b&0x1F)<<6 | rune(s[1]&0x3F), 2
	case b < 0xF0:
		return rune(b&0x0F)<<12 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return rune(b&0x07)<<18 | rune(s[1]&0x3F)<<12 | rune(s[2]&0x3F)<<6 | rune(s[3]&0x3F), 4
}

// plain makes text regular for decode. Bytes that fit no sequence become
// U+FFFD each, a sequence that is longer than it need be becomes the shortest,
// and surrogates stay. That is how llama.cpp reads text for a byte-level BPE,
// so ids agree on damaged text too.
func plain(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for len(s) > 0 {
		r, n := loose(s)
		s = s[n:]
		if r >= 0xD800 && r <= 0xDFFF {
			b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// loose reads one character by the shape of its bytes only. Above U+10FFFF,
// where llama.cpp ends the process, it takes the byte for an invalid one.
func loose(s string) (r rune, n int) {
	b := s[0]
	switch {
	case b < 0x80:
		return rune(b), 1
	case b < 0xC0:
		return utf8.RuneError, 1
	case b < 0xE0:
		r, n = rune(b&0x1F), 2
	case b < 0xF0:
		r, n = rune(b&0x0F), 3
	case b < 0xF8:
		r, n = rune(b&0x07), 4
	default:
		return utf8.RuneError, 1
	}
	if len(s) < n {
		return utf8.RuneError, 1
	}
	for i := 1; i < n; i++ {
		if s[i]&0xC0 != 0x80 {
			return utf8.RuneError, 1
		}
		r = r<<6 | rune(s[i]&0x3F)
	}
	if r > utf8.MaxRune {
		return utf8.RuneError, 1
	}
	return r, n
}
