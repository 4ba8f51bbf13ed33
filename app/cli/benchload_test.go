package cli

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
)

// TestBenchLoad: cold and warm loads of a pack have all their parts.
func TestBenchLoad(t *testing.T) {
	c := newConsole(t, "")
	var r loadTimes
	if err := json.Unmarshal([]byte(c.good(t, "bench", "starter", "--load", "--repeat", "1", "--threads", "1", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	for _, l := range []loadTime{r.Cold, r.Warm} {
		if l.Load <= 0 || l.First <= 0 || l.Total < l.Open+l.Load+l.First-0.01 {
			t.Errorf("%+v", r)
		}
	}
}

func TestPeerWords(t *testing.T) {
	for peer, want := range map[string][]string{
		"ref bench":            {"ref", "bench", "-p", "1", "-n", "2", "-t", "3", "-r", "1", "f.gguf"},
		"/x/llama-bench -fa 1": {"/x/llama-bench", "-fa", "1", "-p", "1", "-n", "2", "-t", "3", "-r", "1", "-o", "json", "-m", "f.gguf"},
		" ":                    nil,
	} {
		if got := peerWords(peer, "1", "2", 3, "f.gguf"); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", peer, got, want)
		}
	}
}

// TestOutputMemory: what a process takes is seen while it runs.
func TestOutputMemory(t *testing.T) {
	name, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no program sleep on this system: ", err)
	}
	_, use, err := output(context.Background(), name, []string{"0.2"})
	if err != nil {
		t.Fatal(err)
	}
	if use.Peak <= 0 {
		t.Skip("this system does not tell what a process takes")
	}
	if use.Anon <= 0 || use.Anon > use.Peak || use.Anon+use.Mapped > use.Peak+1<<20 {
		t.Errorf("%+v", use)
	}
	var all memoryUse
	all.join(memoryUse{Peak: 5, Anon: 3, Mapped: 1})
	all.join(memoryUse{Peak: 4, Anon: 1, Mapped: 4})
	all.join(memoryUse{Peak: 6, Anon: 2, Mapped: 2})
	if all != (memoryUse{6, 1, 4}) {
		t.Errorf("%+v", all)
	}
}
