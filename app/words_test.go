package app

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write assets/translations/en.json anew")

const tableFile = "../assets/translations/en.json"

// words gathers every text of the window: what tr and widget.T are given, and
// the texts of the tables that are translated when they are shown.
func words(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	add := func(s string) {
		if s != "" {
			out[s] = s
		}
	}
	for _, dir := range []string{".", "widget"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				name := ""
				switch f := call.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				if name == "tr" || name == "T" || name == "say" {
					if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						s, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						add(s)
					}
				}
				return true
			})
		}
	}
	for _, p := range pageTable() {
		add(p.name)
		add(p.tip)
	}
	for _, s := range shortcutTable() {
		add(s.words)
	}
	for _, s := range settingTable() {
		add(s.name)
		add(s.words)
		add(s.group)
	}
	for _, n := range numbers() {
		add(n.name)
		add(n.words)
		add(n.standard)
	}
	for _, s := range segmentLooks {
		add(s.words)
	}
	for _, f := range packFilters {
		add(f.words)
	}
	return out
}

func TestEveryTextIsInTheTable(t *testing.T) {
	want := words(t)
	if *update {
		b, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(tableFile, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	var have map[string]string
	if err := json.Unmarshal(b, &have); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Sorted(maps.Keys(want)) {
		if _, ok := have[s]; !ok {
			t.Errorf("%q is not in %s; run go test ./app -run Table -update", s, tableFile)
		}
	}
	for s, text := range have {
		if _, ok := want[s]; !ok {
			t.Errorf("%q is in the table and nowhere in the window", s)
		}
		if s != text {
			t.Errorf("English %q is translated to %q", s, text)
		}
	}
}

var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z%]`)

// TestTranslationsKeepTheirVerbs checks every language's table: the same
// texts, and the same placeholders in them.
func TestTranslationsKeepTheirVerbs(t *testing.T) {
	files, err := filepath.Glob("../assets/translations/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	want := words(t)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var have map[string]string
		if err := json.Unmarshal(b, &have); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for s, text := range have {
			if _, ok := want[s]; !ok {
				t.Errorf("%s: %q is nowhere in the window", f, s)
			}
			a, b := verb.FindAllString(s, -1), verb.FindAllString(text, -1)
			slices.Sort(a)
			slices.Sort(b)
			if !slices.Equal(a, b) {
				t.Errorf("%s: %q has placeholders %v, its translation %v", f, s, a, b)
			}
		}
	}
}

// TestWordsAreQuiet keeps the tone: no shouting, no "please", no "oops".
func TestWordsAreQuiet(t *testing.T) {
	for s := range words(t) {
		low := strings.ToLower(s)
		if strings.Contains(s, "!") || strings.Contains(low, "oops") || strings.Contains(low, "please") || strings.Contains(low, "sorry") {
			t.Errorf("%q is not how we speak", s)
		}
		if strings.Contains(s, "{{") {
			t.Errorf("%q would be taken for a template by the translation library", s)
		}
	}
}

func TestLanguages(t *testing.T) {
	if !slices.Contains(languages(), "en") {
		t.Fatalf("tables: %v", languages())
	}
	newRig(t, LookDark)
	if err := LoadLanguage(""); err != nil {
		t.Error(err)
	}
	if err := LoadLanguage("xx"); err == nil {
		t.Error("a language without a table was loaded")
	}
	if got := tr("%d tokens", 3); got != "3 tokens" {
		t.Errorf("got %q", got)
	}
}
