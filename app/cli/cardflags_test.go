package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestCardFlags(t *testing.T) {
	for s, want := range map[string]int64{
		"8GB": 8e9, "12GiB": 12 << 30, "1.5gib": 3 << 29, "512 MiB": 512 << 20, "700m": 700 << 20, "4096": 4096, "2g": 2 << 30,
	} {
		if n, err := parseSize(s); err != nil || n != want {
			t.Errorf("%q: %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "GB", "-1GB", "8 boxes", "NaN", "1e40", "0"} {
		if n, err := parseSize(s); err == nil {
			t.Errorf("%q is taken for %d bytes", s, n)
		}
	}
	for _, s := range []string{"a", "-1,2", "0,0", "1,,2", "NaN", "Inf"} {
		if p, err := parseSplit(s); err == nil {
			t.Errorf("--split %q is taken for %v", s, p)
		}
	}
	l := loadFlags{device: "auto", cardFlags: cardFlags{cards: "cuda:0,0000:07:00.0", split: "3,1", vram: "8GB,12GiB"}}
	c := (&Program{}).benchCommand()
	if err := l.check(c); err != nil {
		t.Fatal(err)
	}
	o := l.options()
	if o.Device != "cuda:0,0000:07:00.0" || !slices.Equal(o.Placement.Split, []float64{3, 1}) || !slices.Equal(o.VRAMLimit, []int64{8e9, 12 << 30}) {
		t.Errorf("got %+v", o)
	}
	var again loadFlags
	c = (&Program{}).benchCommand()
	again.read(t, l.args())
	if err := again.check(c); err != nil || again.cards != l.cards || again.split != l.split || again.vram != l.vram || again.device != l.device {
		t.Errorf("a child gets %q, %v", l.args(), err)
	}
	l = loadFlags{cardFlags: cardFlags{cards: "cuda:0,cuda:1", split: "1,1,1"}}
	if err := l.check(c); err == nil || !strings.Contains(err.Error(), "is for 3 cards, --cards names 2") {
		t.Errorf("three parts for two cards: %v", err)
	}
	var none loadFlags
	none.device = "auto"
	if o := none.options(); o.Device != "auto" || o.VRAMLimit != nil || o.Placement.Split != nil {
		t.Errorf("no flags make %+v", o)
	}
}

// read reads args as a command does.
func (l *loadFlags) read(t *testing.T, args []string) {
	t.Helper()
	c := (&Program{}).versionCommand()
	l.add(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
}
