package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

// printJSON writes a value for scripts.
func (p *Program) printJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// paint colours text for people: only on a terminal, and not when NO_COLOR is
// set.
type paint struct{ on bool }

func (p *Program) paint(w io.Writer) paint {
	return paint{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (c paint) code(n, s string) string {
	if !c.on || s == "" {
		return s
	}
	return "\x1b[" + n + "m" + s + "\x1b[0m"
}

func (c paint) dim(s string) string    { return c.code("2", s) }
func (c paint) bold(s string) string   { return c.code("1", s) }
func (c paint) accent(s string) string { return c.code("33", s) }
func (c paint) bad(s string) string    { return c.code("31", s) }

// table writes rows in columns. The last column is not padded.
func table(w io.Writer, rows [][]string) {
	var width []int
	for _, r := range rows {
		for i, s := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, s := range r {
			b.WriteString(s)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(s)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// size writes bytes in binary units, as memory is counted.
func size(n int64) string {
	switch f := float64(n); {
	case n < 0:
		return "n/a"
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", f/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	default:
		return fmt.Sprintf("%.2f GiB", f/(1<<30))
	}
}

// rate writes tokens a second with what is worth reading of it.
func rate(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.1f", v)
	case v < 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.0f", math.Round(v/100)*100)
}

// count writes a large number shortly.
func count(n int64) string {
	switch f := float64(n); {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f K", f/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f M", f/1e6)
	default:
		return fmt.Sprintf("%.1f B", f/1e9)
	}
}

// wrap breaks text at spaces, with an indent on every line.
func wrap(text, indent string, width int) string {
	var b strings.Builder
	at := 0
	for i, w := range strings.Fields(text) {
		n := utf8.RuneCountInString(w)
		switch {
		case i == 0:
			b.WriteString(indent)
			at = len(indent)
		case at+1+n > width:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += n
	}
	return b.String()
}

// visible makes text from elsewhere (a model, a file's metadata, a file's
// name) fit for a terminal: what would move the cursor, colour, retitle or
// clear it is written out instead. Line breaks and tabs stay.
func visible(s string) string {
	bad := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if bad(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// visibleLine is visible text in one line.
func visibleLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(visible(s))
}
