package app

import (
	"fmt"
	"math"
	"strings"
	"time"

	"outcrop/app/widget"
	"outcrop/engine/wire"
)

// tr is the text of the window's language.
func tr(english string, args ...any) string { return widget.T(english, args...) }

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// size writes bytes in binary units: 9.1 GiB, 512 MiB, 11.2 MiB.
func size(n float64) string {
	switch a := math.Abs(n); {
	case a >= 1024*gib:
		return tr("%.1f TiB", n/(1024*gib))
	case a >= gib:
		return tr("%.1f GiB", n/gib)
	case a >= 100*mib:
		return tr("%.0f MiB", n/mib)
	case a >= mib:
		return tr("%.1f MiB", n/mib)
	case a >= kib:
		return tr("%.0f KiB", n/kib)
	}
	return tr("%.0f B", n)
}

func bytes64(n int64) string { return size(float64(n)) }

// of writes "9.1 of 15.9 GiB".
func of(used, total float64) string {
	if total >= gib {
		return tr("%.1f of %.1f GiB", used/gib, total/gib)
	}
	return tr("%.0f of %.0f MiB", used/mib, total/mib)
}

// tokens writes a count of tokens: 212, 1.8K, 64K, 1M.
func tokens(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 10240 || n >= 1024 && n%1024 == 0:
		return fmt.Sprintf("%.0fK", float64(n)/1024)
	case n >= 1024:
		return fmt.Sprintf("%.1fK", float64(n)/1024)
	}
	return fmt.Sprint(n)
}

// count writes big numbers as people say them: 16.2 million, 30.5 billion.
func count(n int64) string {
	switch {
	case n >= 1e12:
		return tr("%.2f trillion", float64(n)/1e12)
	case n >= 1e9:
		return tr("%.1f billion", float64(n)/1e9)
	case n >= 1e6:
		return tr("%.1f million", float64(n)/1e6)
	case n >= 1e4:
		return tr("%.0f thousand", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// rate writes tokens a second with three digits.
func rate(v float64) string {
	switch {
	case v >= 100:
		return tr("%.0f tok/s", v)
	case v >= 10:
		return tr("%.1f tok/s", v)
	}
	return tr("%.2f tok/s", v)
}

// span writes how long something took or takes.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return tr("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return tr("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return tr("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return tr("%.0f min", d.Minutes())
	}
	return tr("%.1f h", d.Hours())
}

// day names the group a conversation stands in.
func day(t, now time.Time) string {
	y, m, d := now.Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	switch {
	case !t.Before(today):
		return tr("Today")
	case !t.Before(today.AddDate(0, 0, -6)):
		return tr("This week")
	}
	return tr("Older")
}

// reading writes a wire reading; unknown is a dash.
func reading(r wire.Reading) string {
	if !r.Known {
		return "—"
	}
	switch r.Unit {
	case "bytes":
		return size(r.Value)
	case "bytes/s":
		return tr("%s/s", size(r.Value))
	case "percent", "%":
		return tr("%.0f %%", r.Value)
	case "":
		return tr("%.0f", r.Value)
	}
	return tr("%.0f %s", r.Value, r.Unit)
}

// why says why a reading is unknown, or where a known one is from.
func why(r wire.Reading) string {
	switch {
	case r.Known && r.Source != "":
		return tr("from %s", r.Source)
	case r.Known:
		return ""
	case r.Why != "" && r.Source != "":
		return tr("%s said: %s", r.Source, r.Why)
	case r.Why != "":
		return r.Why
	}
	return tr("nothing on this machine tells it")
}

// bits says how a pack is quantised in words.
func bits(params, weightBytes int64) string {
	if params <= 0 || weightBytes <= 0 {
		return ""
	}
	b := float64(weightBytes) * 8 / float64(params)
	word := tr("full")
	switch {
	case b < 2.6:
		word = tr("rough")
	case b < 3.3:
		word = tr("fair")
	case b < 4.3:
		word = tr("good")
	case b < 6.8:
		word = tr("very good")
	case b < 10:
		word = tr("nearly exact")
	}
	return tr("about %.1f bits, %s", b, word)
}

// titleOf makes a title from the first words of a text.
func titleOf(text string) string {
	line := ""
	for l := range strings.SplitSeq(text, "\n") {
		if l = strings.TrimSpace(strings.Trim(l, "#*`> ")); l != "" {
			line = l
			break
		}
	}
	line = strings.Join(strings.Fields(line), " ")
	r := []rune(line)
	if len(r) <= 48 {
		return line
	}
	cut := string(r[:48])
	if i := strings.LastIndex(cut, " "); i > 24 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,.;:") + "…"
}
