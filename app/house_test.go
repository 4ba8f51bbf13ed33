package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of the house, as tests. A rule is broken on purpose only by
// changing it here, with its reason.

// edges lists, for each package of ours, which packages of ours it may import
// (a trailing /... covers what is below) and why not others.
var edges = []struct{ from, may, why string }{
	{"engine/quant", "engine/quant", "formats know no file, no model and no machine"},
	{"engine/token", "", "text and ids stand alone, so that any front end can use them"},
	{"engine/gguf", "engine/quant", "a file knows only the sizes of its formats"},
	{"engine/wire", "", "what goes over the wire is data, shared by both ends"},
	{"engine/plan", "", "planning is a pure function of facts"},
	{"engine/guard", "gpu", "deciding is pure; reading the machine is gpu's"},
	{"engine/vitals", "engine/wire gpu", "one look at the machine, for the wire"},
	{"gpu/compute", "gpu gpu/... engine/quant", "a device knows bytes and kernels, no model; its tests compare with quant"},
	{"gpu/kernels", "gpu gpu/... engine/quant", "kernels know formats, no model"},
	{"gpu/recipe", "gpu", "a recipe is a function of the machine"},
	{"gpu/doctor", "gpu gpu/...", "conditions are functions of the machine and its recipe"},
	{"gpu", "", "cards are found without knowing what they are for"},
	{"engine", "engine/gguf engine/quant engine/token engine/plan engine/guard gpu/compute gpu/compute/... gpu/kernels gpu assets", "the engine knows no HTTP and no window"},
	{"engine/serve", "engine engine/... gpu gpu/...", "the server knows no window"},
	{"engine/launch", "engine/wire engine/vitals gpu gpu/recipe", "starting a process needs no model"},
	{"engine/catalog", "engine/gguf engine/quant assets", "a list of packs reads headers at most"},
	{"app/widget", "assets", "widgets take values and callbacks"},
	{"app/store", "", "conversations outlive every other part"},
	{"app/gateway", "engine/wire", "the door for other programs forwards and counts, it reads no text"},
	{"app/client", "engine/wire", "the client knows the wire alone"},
	{"app", "app/... engine/wire engine/plan engine/launch engine/catalog engine/guard gpu gpu/... assets assets/...", "the window is a client: it may die or live without the engine"},
	{"app/cli", "app/client app/store engine engine/... gpu gpu/... assets", "the terminal needs no window"},
	{"app/desktop", "app app/... engine/... gpu gpu/... assets assets/...", "starts the window"},
}

// onlyIn lists imports of others that have one home.
var onlyIn = []struct{ path, homes, why string }{
	{"fyne.io/fyne/v2/app", "app/desktop", "it needs cgo and a display; everything else builds without"},
	{"fyne.io/fyne", "app app/widget app/desktop assets", "engine, cards and terminal run where no toolkit is"},
	{"github.com/ebitengine/purego", "gpu gpu/compute", "foreign calls live where drivers live"},
	{"modernc.org/sqlite", "app/store", "one owner of the database"},
	{"net/http", "engine/serve engine/launch engine/catalog app/client app/gateway app/cli engine/wire", "nothing else talks over a network"},
	{"C", "", "the program has no cgo of its own"},
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

type source struct {
	path, dir string // relative to the root, with slashes
	test      bool
	file      *ast.File
	lines     int
	text      string
}

func sources(t *testing.T) (out []source, fset *token.FileSet) {
	t.Helper()
	top := root(t)
	fset = token.NewFileSet()
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && p != top || d.Name() == "build") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, p)
		rel = filepath.ToSlash(rel)
		dir := filepath.ToSlash(filepath.Dir(rel))
		out = append(out, source{rel, dir, strings.HasSuffix(rel, "_test.go"), f, strings.Count(string(text), "\n"), string(text)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found only %d source files", len(out))
	}
	return out, fset
}

func imports(f *ast.File) (out []string) {
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

// matches reports whether path is one of the space-separated patterns.
func matches(path, patterns string) bool {
	for p := range strings.FieldsSeq(patterns) {
		if base, below := strings.CutSuffix(p, "/..."); path == p || below && strings.HasPrefix(path, base+"/") {
			return true
		}
	}
	return false
}

func TestImportsPointOneWay(t *testing.T) {
	ss, _ := sources(t)
	for _, s := range ss {
		if s.test {
			continue // tests may compare with anything
		}
		for _, imp := range imports(s.file) {
			ours, is := strings.CutPrefix(imp, "outcrop/")
			if !is || s.dir == "." {
				continue
			}
			i := slices.IndexFunc(edges, func(e struct{ from, may, why string }) bool { return e.from == s.dir })
			if i < 0 {
				// A package below a listed one follows the nearest.
				best := ""
				for j, e := range edges {
					if strings.HasPrefix(s.dir, e.from+"/") && len(e.from) > len(best) {
						i, best = j, e.from
					}
				}
			}
			if i < 0 {
				t.Errorf("%s is in no rule: add %q to edges with its reason", s.path, s.dir)
				continue
			}
			if e := edges[i]; !matches(ours, e.may) && !strings.HasPrefix(ours+"/", e.from+"/") {
				t.Errorf("%s imports %s: %s", s.path, ours, e.why)
			}
		}
	}
}

func TestForeignImportsHaveOneHome(t *testing.T) {
	ss, _ := sources(t)
	for _, s := range ss {
		if s.test {
			continue
		}
		for _, imp := range imports(s.file) {
			for _, o := range onlyIn {
				if imp != o.path && !strings.HasPrefix(imp, o.path+"/") {
					continue
				}
				if !slices.ContainsFunc(strings.Fields(o.homes), func(h string) bool { return s.dir == h || strings.HasPrefix(s.dir, h+"/") && h != "app" }) {
					t.Errorf("%s imports %s: %s", s.path, imp, o.why)
				}
				break
			}
		}
	}
}

func TestNoHiddenRegistration(t *testing.T) {
	ss, fset := sources(t)
	for _, s := range ss {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init: tables are written out by hand", fset.Position(f.Pos()))
			}
		}
	}
}

func TestOnePackageCommentEach(t *testing.T) {
	ss, _ := sources(t)
	count := map[string]int{}
	for _, s := range ss {
		if s.test || strings.HasSuffix(s.file.Name.Name, "_test") {
			continue
		}
		if _, seen := count[s.dir]; !seen {
			count[s.dir] = 0
		}
		if s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != "" {
			count[s.dir]++
		}
	}
	for dir, n := range count {
		if n != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, n)
		}
	}
}

func TestNamesOfPackages(t *testing.T) {
	ss, _ := sources(t)
	for _, s := range ss {
		for part := range strings.SplitSeq(s.dir, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helpers", "base", "manager", "misc", "internal", "pkg", "cmd"}, part) {
				t.Errorf("%s: a package named %q says nothing of what is in it", s.path, part)
			}
		}
	}
}

func TestFilesStaySmall(t *testing.T) {
	ss, _ := sources(t)
	for _, s := range ss {
		if s.lines > 600 && !strings.Contains(s.text[:min(len(s.text), 200)], "Code generated") {
			t.Errorf("%s has %d lines: one idea a file, at most 600", s.path, s.lines)
		}
	}
}

// The environment is written where a recipe is applied or a process started,
// nowhere else.
func TestEnvironmentHasOneWriter(t *testing.T) {
	ss, fset := sources(t)
	for _, s := range ss {
		if s.test || s.dir == "gpu/recipe" || s.dir == "engine/launch" || s.dir == "app/desktop" || s.dir == "gpu/compute/computetest" {
			continue // app/desktop sets the toolkit's own scale; computetest keeps a driver's cache out of the home folder
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if c, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := c.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains([]string{"Setenv", "Unsetenv", "Clearenv"}, c.Sel.Name) {
					t.Errorf("%s: os.%s: only gpu/recipe and engine/launch write the environment", fset.Position(c.Pos()), c.Sel.Name)
				}
			}
			return true
		})
	}
}

// Nothing of the machine a change was made on belongs in the tree.
func TestNothingOfOurMachines(t *testing.T) {
	top := root(t)
	bad := regexp.MustCompile(`/(work|farm|root)/[a-z]|bash_jobs`)
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" || d.Name() == "build" { // a file in a second work tree
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		if i, err := d.Info(); err != nil || i.Size() > 1<<20 || strings.HasSuffix(p, "house_test.go") {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if m := bad.Find(b); m != nil && !strings.ContainsRune(string(b[:min(len(b), 512)]), 0) {
			t.Errorf("%s holds a path of somebody's machine: %q", p, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTopLevel(t *testing.T) {
	want := strings.Fields("main.go app engine gpu assets FyneApp.toml go.mod go.sum README.md LICENSE Makefile .ci .gitignore .gitattributes .git outcrop build")
	es, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if !slices.Contains(want, e.Name()) {
			t.Errorf("top level holds %q; the plan names %v", e.Name(), want)
		}
	}
}
