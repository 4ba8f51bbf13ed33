package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"outcrop/assets"
	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// model writes a tiny GGUF file and returns its path.
func model(t *testing.T, dir, name, arch string) string {
	t.Helper()
	w := gguf.NewWriter()
	w.Set("general.architecture", arch)
	w.Set("general.name", "Title of "+name)
	w.Add("t", quant.F32, []int64{2}, make([]byte, 8))
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func fresh(t *testing.T) (*Catalog, string) {
	dir := t.TempDir()
	return At(filepath.Join(dir, "data"), filepath.Join(dir, "cache")), dir
}

func names(es []Entry) string {
	var s []string
	for _, e := range es {
		s = append(s, e.Name)
	}
	return strings.Join(s, " ")
}

func TestAddListRemove(t *testing.T) {
	c, dir := fresh(t)
	p := model(t, dir, "Größe #1 50%.gguf", "llama") // T79: names that are not plain
	got, err := c.Add(p, "")
	if err != nil || len(got) != 1 || got[0].Name != "Größe #1 50%" || got[0].Arch != "llama" || got[0].Path != p {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := c.Add(p, ""); err != nil {
		t.Fatal(err)
	}
	l, err := c.List()
	if err != nil || names(l) != "starter Größe #1 50%" || !l[0].Demo {
		t.Fatalf("got %q, %v", names(l), err)
	}
	if err := c.Rename("größe #1 50%", "big"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get("BIG"); err != nil {
		t.Error(err)
	}
	e, err := c.Remove("big")
	if err != nil || e.Name != "big" {
		t.Fatalf("got %+v, %v", e, err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Error("removing a pack from the list touched its file")
	}
	if err := c.Restore(e); err != nil {
		t.Error(err)
	}
	for _, f := range []func() error{
		func() error { _, err := c.Remove("nothing"); return err },
		func() error { return c.Rename("nothing", "x") },
	} {
		if err := f(); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.Remove("starter"); !errors.Is(err, ErrStarter) {
		t.Errorf("got %v", err)
	}
	if err := c.Rename("big", "Starter"); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", " x", "a/b", "-x", "a\nb"} {
		if err := c.Rename("big", bad); err == nil {
			t.Errorf("name %q was taken", bad)
		}
	}
}

func TestAddFolder(t *testing.T) {
	c, dir := fresh(t)
	model(t, dir, "m/a/one.gguf", "llama")
	model(t, dir, "m/b/one.gguf", "qwen3")
	model(t, dir, "m/b/mmproj-one.gguf", "clip")
	model(t, dir, "m/.hidden/x.gguf", "llama")
	os.WriteFile(filepath.Join(dir, "m/broken.gguf"), []byte("<html>not found</html>"), 0o644)
	os.WriteFile(filepath.Join(dir, "m/readme.txt"), []byte("x"), 0o644)
	got, err := c.Add(filepath.Join(dir, "m"), "")
	if err != nil || names(got) != "one one-2" {
		t.Fatalf("got %q, %v", names(got), err)
	}
	if _, err := c.Add(filepath.Join(dir, "m"), "both"); err == nil {
		t.Error("one name for two packs")
	}
	os.MkdirAll(filepath.Join(dir, "empty"), 0o755)
	for _, p := range []string{"empty", "m/broken.gguf", "nowhere.gguf", "m/readme.txt"} {
		if _, err := c.Add(filepath.Join(dir, p), ""); err == nil {
			t.Errorf("%s was added", p)
		}
	}
	// The list is JSON: a name that is no text would be another one in it.
	if odd := filepath.Join(dir, "odd\xff.gguf"); os.WriteFile(odd, nil, 0o644) == nil {
		model(t, dir, "odd\xff.gguf", "llama")
		if _, err := c.Add(odd, ""); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("a name that is not UTF-8: %v", err)
		}
	}
}

func TestResolve(t *testing.T) {
	c, dir := fresh(t)
	p := model(t, dir, "Alpha-Q4.gguf", "llama")
	q := model(t, dir, "Alpine.gguf", "llama")
	if _, err := c.Add(p, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(q, ""); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{"alpha-q4": p, "alpha": p, p: p, dir: dir, q: q} {
		r, err := c.Resolve(arg)
		if err != nil || r.Path != want {
			t.Errorf("%q: got %+v, %v", arg, r, err)
		}
	}
	for arg, want := range map[string]string{"alp": "several", "beta": "no such pack", "./x.gguf": "no such file", "a/b": "no such file"} {
		if _, err := c.Resolve(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", arg, err)
		}
	}
	os.Remove(p)
	if _, err := c.Resolve("alpha-q4"); err == nil || !strings.Contains(err.Error(), "not there any more") {
		t.Errorf("a file that is gone: got %v", err)
	}
}

func TestHealth(t *testing.T) {
	c, dir := fresh(t)
	p := model(t, dir, "a.gguf", "llama")
	es, err := c.Add(p, "")
	if err != nil {
		t.Fatal(err)
	}
	if h := Check(es[0]); h.Status != Good {
		t.Errorf("got %+v", h)
	}
	f, _ := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
	f.Write([]byte("x"))
	f.Close()
	if h := Check(es[0]); h.Status != Changed {
		t.Errorf("got %+v", h)
	}
	os.Remove(p)
	if h := Check(es[0]); h.Status != Gone {
		t.Errorf("got %+v", h)
	}
}

func TestStarter(t *testing.T) {
	c, _ := fresh(t)
	sum := sha256.Sum256(assets.Starter)
	if hex.EncodeToString(sum[:]) != assets.StarterSHA256 {
		t.Fatal("the starter inside the program is not the one of its digest")
	}
	r, err := c.Resolve("")
	if err != nil || !r.Demo || !same(r.Path) {
		t.Fatalf("got %+v, %v", r, err)
	}
	// A cache that was cut is noticed and mended.
	if err := os.Truncate(r.Path, 100); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Starter(); err != nil || p != r.Path || !same(p) {
		t.Errorf("got %q, %v", p, err)
	}
	b, _ := os.ReadFile(r.Path)
	b[len(b)/2] ^= 1
	os.WriteFile(r.Path, b, 0o644)
	if p, err := c.Starter(); err != nil || !same(p) {
		t.Errorf("one changed bit stayed: %q, %v", p, err)
	}
	// No cache at all.
	c.cache = filepath.Join(r.Path, "below a file")
	if p, err := c.Starter(); err != nil || !same(p) {
		t.Errorf("got %q, %v", p, err)
	}
}

func TestTwoCopiesAtOnce(t *testing.T) {
	c, dir := fresh(t)
	var ps []string
	for i := range 12 {
		ps = append(ps, model(t, dir, string(rune('a'+i))+".gguf", "llama"))
	}
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() {
			other := At(filepath.Dir(c.path), c.cache) // as another process would
			if _, err := other.Add(p, ""); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if l, err := c.List(); err != nil || len(l) != 13 {
		t.Errorf("got %d entries, %v", len(l), err)
	}
}

func TestDamagedList(t *testing.T) {
	c, dir := fresh(t)
	p := model(t, dir, "a.gguf", "llama")
	os.MkdirAll(filepath.Dir(c.path), 0o755)
	for _, text := range []string{"{ not json", `{"version": 99, "packs": []}`} {
		os.WriteFile(c.path, []byte(text), 0o644)
		if _, err := c.Add(p, ""); err == nil {
			t.Errorf("%q: was written over", text)
		}
		if b, _ := os.ReadFile(c.path); string(b) != text {
			t.Errorf("%q became %q", text, b)
		}
	}
	os.WriteFile(c.path, []byte("{ not json"), 0o644)
	if l, err := c.List(); err == nil || len(l) != 1 {
		t.Errorf("a broken list hides the starter: %v, %v", l, err)
	}
	if r, err := c.Resolve(p); err != nil || r.Path != p {
		t.Errorf("a broken list hides a file: %+v, %v", r, err)
	}
}
