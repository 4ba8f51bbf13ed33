package app

import (
	"strings"
	"testing"
	"time"

	"outcrop/engine/wire"
)

func TestUnits(t *testing.T) {
	for got, want := range map[string]string{
		size(0): "0 B", size(1536): "2 KiB", size(11.7 * mib): "11.7 MiB", size(512 * mib): "512 MiB", size(9.13 * gib): "9.1 GiB", size(2048 * gib): "2.0 TiB",
		of(9.1*gib, 15.9*gib): "9.1 of 15.9 GiB", of(5*mib, 11*mib): "5 of 11 MiB",
		tokens(212): "212", tokens(1843): "1.8K", tokens(2048): "2K", tokens(65536): "64K", tokens(1 << 20): "1M", tokens(40960): "40K",
		count(16171424): "16.2 million", count(30532122624): "30.5 billion", count(4096): "4096", count(15000): "15 thousand",
		rate(38.24): "38.2 tok/s", rate(1146): "1146 tok/s", rate(0.5): "0.50 tok/s",
		span(250 * time.Millisecond): "250 ms", span(3200 * time.Millisecond): "3.2 s", span(75 * time.Second): "75 s", span(20 * time.Minute): "20 min", span(5 * time.Hour): "5.0 h",
		bits(1000, 575): "about 4.6 bits, very good", bits(0, 5): "", bits(1000, 250): "about 2.0 bits, rough",
		middleCut("starter", 36): "starter", middleCut("Some-Very-Long-Family-Name-Instruct-30B-A3B-Q4_K_M", 24): "Some-Very-Long-…B-Q4_K_M",
		between(7, 12): "7 to 12", between(3.14159, 3.14159): "3.1", between(970.4, 3600): "970 to 3600", between(25012, 2.94e6): "25K to 2.9M",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReadingsAreHonest(t *testing.T) {
	if got := reading(wire.Unknown("bytes", "sysman", "no such counter")); got != "—" {
		t.Errorf("unknown is shown as %q", got)
	}
	if got := reading(wire.Known(0, "percent", "x")); got != "0 %" {
		t.Errorf("a known zero is shown as %q", got)
	}
	if got := why(wire.Unknown("bytes", "sysman", "no such counter")); got != "sysman said: no such counter" {
		t.Errorf("why is %q", got)
	}
	if got := why(wire.Reading{}); got == "" {
		t.Error("an unknown reading does not explain itself")
	}
}

func TestTitles(t *testing.T) {
	for in, want := range map[string]string{
		"Tell me a story":    "Tell me a story",
		"\n\n## Heading \nx": "Heading",
		"":                   "",
		"a very long question that goes on and on and would not fit into one line": "a very long question that goes on and on and…",
		strings.Repeat("x", 100): strings.Repeat("x", 48) + "…",
	} {
		if got := titleOf(in); got != want {
			t.Errorf("titleOf(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestDays(t *testing.T) {
	now := time.Date(2026, 11, 29, 9, 0, 0, 0, time.Local)
	for at, want := range map[time.Time]string{
		now: "Today", now.Add(-9 * time.Hour): "Today", now.Add(-10 * time.Hour): "This week", now.AddDate(0, 0, -6): "This week", now.AddDate(0, 0, -8): "Older",
	} {
		if got := day(at, now); got != want {
			t.Errorf("%v: got %q, want %q", at, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for in, want := range map[string]string{"open x: no such file": "Open x: no such file.", "Ready?": "Ready?", "": "Something went wrong and does not say what."} {
		if got := sentence(errorText(in)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFileNames(t *testing.T) {
	for in, want := range map[string]string{"a/b: c?": "a-b- c-", "": "x", "…": "x", strings.Repeat("é", 99): strings.Repeat("é", 60)} {
		if got := fileName(in, "x"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
