package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"outcrop/engine/token"
)

// fixtureDir is the whole set of reference models, named by an environment
// variable; testdata holds those of the first families.
const fixtureDir = "OUTCROP_FIXTURES"

// fixture is one reference model: logits of llama.cpp for a prompt run at once
// and forced tokens run one by one, and greedy ids after the prompt.
type fixture struct {
	dir            string
	file           string // the model, when it is not in dir
	prompt, forced []token.ID
	logits         []float32 // (positions, vocab)
	positions      []int     // of the rows of logits
	greedy         []token.ID
	margin         float64
	tieOrder       bool
	exact          []int // qwen4exp: positions whose selection does not depend on ties
	near           []int // positions near a tie of the router
	toFloat        float64
	toFloatNear    float64
	quantised      bool
}

func (f *fixture) model() string {
	if f.file != "" {
		return f.file
	}
	return filepath.Join(f.dir, "model.gguf")
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readFloats(t testing.TB, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func readFixture(t testing.TB, dir string) *fixture {
	t.Helper()
	f := &fixture{dir: dir}
	var toks struct{ Prompt, Forced []token.ID }
	readJSON(t, filepath.Join(dir, "tokens.json"), &toks)
	f.prompt, f.forced = toks.Prompt, toks.Forced
	var meta struct {
		LibraryToFloat     float64 `json:"library_to_float_distance"`
		LibraryToFloatNear float64 `json:"library_to_float_without_near_ties"`
		NearTies           []int   `json:"near_tie_positions"`
		LogitsPositions    []int   `json:"logits_positions"`
		Indexer            *struct {
			Exact []int `json:"exact_positions"`
		} `json:"indexer"`
	}
	readJSON(t, filepath.Join(dir, "meta.json"), &meta)
	f.toFloat, f.toFloatNear, f.near = meta.LibraryToFloat, meta.LibraryToFloatNear, meta.NearTies
	f.quantised = f.toFloat > 0
	suffix := ""
	if f.quantised {
		suffix = "_float"
	}
	f.logits = readFloats(t, filepath.Join(dir, "logits"+suffix+".f32"))
	f.positions = meta.LogitsPositions
	if f.positions == nil {
		for i := range len(f.prompt) + len(f.forced) {
			f.positions = append(f.positions, i)
		}
	}
	if meta.Indexer != nil {
		f.exact = meta.Indexer.Exact
	}
	var g struct {
		IDs      []token.ID `json:"ids"`
		Margin   float64    `json:"smallest_margin"`
		TieOrder bool       `json:"decided_by_tie_order"`
	}
	readJSON(t, filepath.Join(dir, "greedy"+suffix+".json"), &g)
	f.greedy, f.margin, f.tieOrder = g.IDs, g.Margin, g.TieOrder
	return f
}

// fixtures lists the reference models there are, by architecture.
func fixtures(t testing.TB) []*fixture {
	t.Helper()
	root := os.Getenv(fixtureDir)
	if root == "" {
		root = "testdata"
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "arch", "*", "model.gguf"))
	var out []*fixture
	for _, d := range dirs {
		out = append(out, readFixture(t, filepath.Dir(d)))
	}
	return out
}

// distance is RMS(got - want) / RMS(want) over the rows whose positions pass.
func (f *fixture) distance(got []float32, vocab int, pass func(pos int) bool) (all float64, worst int) {
	var d2, w2, worstRow float64
	for i, pos := range f.positions {
		if !pass(pos) {
			continue
		}
		var rd, rw float64
		for c := range vocab {
			w := float64(f.logits[i*vocab+c])
			g := float64(got[pos*vocab+c])
			rd += (g - w) * (g - w)
			rw += w * w
		}
		if r := rd / rw; r > worstRow || math.IsNaN(r) {
			worstRow, worst = r, pos
		}
		d2 += rd
		w2 += rw
	}
	return math.Sqrt(d2 / w2), worst
}

func load(t testing.TB, path string, o Options) *Model {
	t.Helper()
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		p.Close()
	})
	return m
}

func session(t testing.TB, m *Model) *Session {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// logitsOf runs the prompt in chunks and the forced tokens one by one, as the
// reference did.
func logitsOf(t testing.TB, s *Session, f *fixture) []float32 {
	t.Helper()
	ctx := context.Background()
	out, err := s.Logits(ctx, f.prompt)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range f.forced {
		if err := s.advance(ctx, []token.ID{id}, 1); err != nil {
			t.Fatal(err)
		}
		out = append(out, s.fresh...)
	}
	return out
}

func TestParity(t *testing.T) {
	all := fixtures(t)
	if len(all) == 0 {
		t.Fatal("no reference models")
	}
	for _, f := range all {
		t.Run(filepath.Base(f.dir), func(t *testing.T) {
			f.check(t)
		})
	}
}

// check compares logits and greedy ids with the reference.
func (f *fixture) check(t *testing.T) {
	t.Helper()
	p, err := OpenPack(f.model())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !slices.Contains(Families(), p.Arch) {
		t.Skipf("family %s is not in the table", p.Arch)
	}
	m := load(t, f.model(), Options{Threads: 2, KV: "f32", Context: 256})
	if u := m.Unused(); len(u) > 0 {
		t.Errorf("tensors not used: %v", u)
	}
	s := session(t, m)
	got := logitsOf(t, s, f)

	limit, pass := 1e-4, func(int) bool { return true }
	switch {
	case f.quantised:
		limit = 2 * f.toFloat
		if f.near != nil {
			limit = 2 * f.toFloatNear
			pass = func(pos int) bool { return !slices.Contains(f.near, pos) }
		}
	case strings.HasPrefix(p.Arch, "gemma"):
		limit = 2e-3 // the library's GELU goes through an F16 table
	}
	if f.exact != nil {
		pass = func(pos int) bool { return slices.Contains(f.exact, pos) }
	}
	d, worst := f.distance(got, m.Vocab(), pass)
	t.Logf("relative RMS %.2e (limit %.2e), worst at position %d", d, limit, worst)
	if !(d <= limit) {
		t.Errorf("logits: relative RMS %.3e, want at most %.1e; worst at position %d", d, limit, worst)
	}

	if f.tieOrder {
		return
	}
	s.Reset()
	var ids []token.ID
	res, err := s.Generate(context.Background(), Request{Prompt: f.prompt, MaxTokens: len(f.greedy), IgnoreEOG: true},
		func(st Step) error {
			if st.ID >= 0 {
				ids = append(ids, st.ID)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if res.Generated != len(f.greedy) {
		t.Errorf("generated %d tokens, want %d", res.Generated, len(f.greedy))
	}
	same := 0
	for same < len(ids) && ids[same] == f.greedy[same] {
		same++
	}
	if same < len(f.greedy) && !f.quantised {
		t.Errorf("greedy ids part after %d: got %v, want %v", same, ids, f.greedy)
	}
	t.Logf("greedy ids: %d of %d equal (smallest margin %.3g)", same, len(f.greedy), f.margin)
}
