package cli

import (
	"slices"
	"strings"
	"testing"

	"outcrop/engine/catalog"
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
	for _, x := range []struct {
		l    loadFlags
		want string // empty: is taken
	}{
		{loadFlags{cardFlags: cardFlags{split: "3,1"}}, "none is named: add --cards"},
		{loadFlags{device: "cpu", cardFlags: cardFlags{split: "3,1"}}, "none is named: add --cards"},
		{loadFlags{threads: 4097}, "--threads is 4097, want 0 to 4096"},
		{loadFlags{chunk: 65537}, "--chunk is 65537, want 0 to 65536"},
		{loadFlags{threads: 4096, chunk: 65536, kv: "q4", draft: "lookup"}, ""},
		{loadFlags{kv: "f99"}, "--kv f99: want one of [f16 f32 q8 q4]"},
		{loadFlags{draft: "foo"}, "--draft foo: want one of [auto mtp lookup off]"},
		{loadFlags{device: "cpu", cardFlags: cardFlags{vram: "8GB"}}, "none is named: add --cards"},
		{loadFlags{device: "auto", cardFlags: cardFlags{split: "3,1", vram: "8GB"}}, ""},
		{loadFlags{device: "cuda:0,cuda:1", cardFlags: cardFlags{split: "3,1"}}, ""},
		{loadFlags{device: "cuda:0", cardFlags: cardFlags{split: "3,1"}}, "is for 2 cards, and 1 are named: cuda:0"},
		{loadFlags{device: "cpu", cardFlags: cardFlags{cards: "cuda:0,cuda:1", split: "3,0"}}, ""},
		{loadFlags{cardFlags: cardFlags{cards: "cuda:0,cuda:1", split: "0,0"}}, "no card gets a layer"},
		{loadFlags{cardFlags: cardFlags{cards: "cuda:0,cuda:1", split: "3,-1"}}, `"-1" is not a number of layers`},
		{loadFlags{cardFlags: cardFlags{cards: "cuda:0,"}}, `"" is not one card`},
		{loadFlags{cardFlags: cardFlags{cards: "cuda:0,cpu"}}, `"cpu" is not one card`},
		{loadFlags{cardFlags: cardFlags{cards: "auto,cuda:0"}}, `"auto" is not one card`},
	} {
		err := x.l.check(c)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.l.cardFlags, err, x.want)
		}
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

// TestPlanCards: on another machine too, plans keep to the cards that were named
// and to their order.
func TestPlanCards(t *testing.T) {
	const root = "../../gpu/recipe/testdata/machines/gsd-12641-two-a770.txt"
	plan := func(args ...string) (int, string) {
		var out, errs strings.Builder
		code := Main(t.Context(), Program{Out: &out, Err: &errs, In: strings.NewReader(""), Catalog: catalog.At(t.TempDir(), t.TempDir())},
			append([]string{"plan", "starter", "--root", root, "--placement", "vram"}, args...))
		return code, out.String() + errs.String()
	}
	code, text := plan("--cards", "0000:11:00.0,0000:0d:00.0", "--split", "3,1")
	if code != 0 || !strings.Contains(text, "0000:11:00.0 holds 6 ") || !strings.Contains(text, "after layer 5, from 0000:11:00.0 to 0000:0d:00.0 through pinned host memory") {
		t.Errorf("two cards the other way round: %d\n%s", code, text)
	}
	if code, text = plan("--cards", "0000:0d:00.0"); code != 0 || strings.Contains(text, "0000:11:00.0") {
		t.Errorf("one of two cards: %d\n%s", code, text)
	}
	if code, text = plan("--cards", "0000:99:00.0"); code != 1 || !strings.Contains(text, "no card at 0000:99:00.0; found") {
		t.Errorf("a card that is not there: %d\n%s", code, text)
	}
	if code, text = plan("--context", "4096"); code != 1 || !strings.Contains(text, "context 4096 asked, the model was trained for 1 to 2048") {
		t.Errorf("a context that no engine takes: %d\n%s", code, text)
	}
}

// TestCardsStayVisible: the engine's environment hides no card that was named.
func TestCardsStayVisible(t *testing.T) {
	const root = "../../gpu/recipe/testdata/machines/gsd-12641-two-a770.txt"
	for device, want := range map[string]string{
		"auto": "0", "": "0", "0000:0d:00.0": "0", "0000:11:00.0": "1", "0000:0d:00.0,0000:11:00.0": "", "opencl:0,opencl:1": "", "opencl:1": "",
	} {
		env, err := environment(root, device)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range env {
			if rest, ok := strings.CutPrefix(v, "ZE_AFFINITY_MASK="); ok {
				got = rest
			}
		}
		if got != want {
			t.Errorf("%q: the mask is %q, want %q", device, got, want)
		}
	}
}

// What cannot be measured, as a disk with a file of 11 MiB, is named, and the plan
// is made all the same.
func TestPlanMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the processor's rates: not in short runs")
	}
	t.Setenv("OUTCROP_HOME", t.TempDir())
	t.Setenv("OCL_ICD_VENDORS", t.TempDir()) // no driver: the processor alone
	var out, errs strings.Builder
	code := Main(t.Context(), Program{Out: &out, Err: &errs, In: strings.NewReader(""), Catalog: catalog.At(t.TempDir(), t.TempDir())}, []string{"plan", "starter", "--measure"})
	if code != 0 || !strings.Contains(errs.String(), "measure the disk: ") || !strings.Contains(out.String(), "weights on the CPU: ") ||
		!strings.Contains(out.String(), "measured here") || strings.Contains(out.String(), "--measure does it now") {
		t.Errorf("%d\n%s%s", code, out.String(), errs.String())
	}
}
