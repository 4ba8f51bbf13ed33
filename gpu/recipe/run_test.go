package recipe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// TestRun starts a shell under a recipe: the variables are there, what must be
// unset is gone, output and readings are kept, and the end is told in words.
func TestRun(t *testing.T) {
	sh := tool(t, "sh")
	var m machine
	for _, x := range machines(t) {
		if x.name == "strata-1545-a770-xe" {
			m = x
		}
	}
	r, err := recipe.For(m.m, recipe.LlamaSYCL, recipe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZES_ENABLE_SYSMAN", "1") // the recipe unsets it
	t.Setenv("UR_L0_USE_COPY_ENGINE", "1")
	dir := filepath.Join(t.TempDir(), "run")
	var out, errw bytes.Buffer
	e, err := r.Run(context.Background(), recipe.Job{
		Args: []string{sh, "-c", `echo "sysman=${ZES_ENABLE_SYSMAN-gone} copy=$UR_L0_USE_COPY_ENGINE"; echo "to stderr" >&2; exit 3`},
		Out:  &out, Err: &errw, Keep: dir, Machine: m.m, Root: m.fs, Every: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != "sysman=gone copy=0\n" || errw.String() != "to stderr\n" {
		t.Errorf("%q %q", out.String(), errw.String())
	}
	if e.Code != 3 || e.OOM || e.Text != "sh ended with code 3" {
		t.Errorf("%+v", e)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "output.txt"))
	if err != nil || !strings.Contains(string(kept), "copy=0") || !strings.Contains(string(kept), "to stderr") {
		t.Errorf("%q %v", kept, err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "readings.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(lines), "\n")
	var x recipe.Reading
	if err := json.Unmarshal([]byte(first), &x); err != nil || len(x.Cards) != 1 || !x.Available.Known || !x.Cards[0].VRAM.Plan.Known {
		t.Errorf("%s %v", first, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "recipe.json")); err != nil || !strings.Contains(string(b), `"llama.cpp-sycl"`) {
		t.Errorf("%v", err)
	}
}

// TestRunEnds: signals, and programs that are not there.
func TestRunEnds(t *testing.T) {
	sh := tool(t, "sh")
	var r recipe.Recipe
	j := recipe.Job{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Machine: gpu.Machine{}, Root: os.DirFS(t.TempDir())}
	j.Args = []string{sh, "-c", "kill -9 $$"}
	e, err := r.Run(context.Background(), j)
	if err != nil || e.Signal != "killed" || e.Code != 137 || e.OOM {
		t.Errorf("%+v %v", e, err)
	}
	j.Args = []string{"/no/such/program"}
	if _, err := r.Run(context.Background(), j); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("%v", err)
	}
	// The kernel's count went up while it ran, and it was killed.
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "proc"), 0o755)
	os.WriteFile(filepath.Join(dir, "proc/vmstat"), []byte("oom_kill 1\n"), 0o644)
	j.Root = os.DirFS(dir)
	j.Args = []string{sh, "-c", "echo 'oom_kill 2' > " + filepath.Join(dir, "proc/vmstat") + "; kill -9 $$"}
	if e, err = r.Run(context.Background(), j); err != nil || !e.OOM || !strings.Contains(e.Text, "memory ran out") {
		t.Errorf("%+v %v", e, err)
	}
}
