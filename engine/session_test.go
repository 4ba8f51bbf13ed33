package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"outcrop/engine/token"
)

func TestStopStrings(t *testing.T) {
	m := speaker(t, '>', "Hi, world", tinyEnd, Options{Threads: 1})
	for _, c := range []struct {
		name  string
		stop  []string
		want  string
		found string
	}{
		{"none", nil, "Hi, world", ""},
		{"across tokens", []string{"wor"}, "Hi, ", "wor"},
		{"first of two", []string{"ld", "or"}, "Hi, w", "or"},
		{"held and released", []string{"wax", "worn"}, "Hi, world", ""},
		{"held to the end", []string{"ld!"}, "Hi, world", ""},
		{"at once", []string{"H"}, "", "H"},
		{"an empty string is no stop", []string{""}, "Hi, world", ""},
	} {
		_, got, res := generate(t, session(t, m), Request{Prompt: bytesOf(">"), Stop: c.stop})
		if got != c.want || res.Reason != "stop" || res.StopText != c.found {
			t.Errorf("%s: got %q ended by %s %q, want %q by stop %q", c.name, got, res.Reason, res.StopText, c.want, c.found)
		}
	}
}

func TestStopper(t *testing.T) {
	feed := func(stops []string, parts ...string) (string, string) {
		s := newStopper(stops)
		var out strings.Builder
		for i, p := range parts {
			ready, found := s.push(Step{ID: token.ID(i), Text: p})
			for _, st := range ready {
				out.WriteString(st.Text)
			}
			if found != "" {
				return out.String(), found
			}
		}
		for _, st := range s.rest() {
			out.WriteString(st.Text)
		}
		return out.String(), ""
	}
	for _, c := range []struct {
		stops []string
		parts []string
		text  string
		found string
	}{
		{[]string{"\n\nUser:"}, []string{"ok", "\n", "\nUs", "er", ": hi"}, "ok", "\n\nUser:"},
		{[]string{"\n\nUser:"}, []string{"ok", "\n", "\nUs", "ual"}, "ok\n\nUsual", ""},
		{[]string{"aab"}, []string{"a", "a", "a", "b"}, "a", "aab"},
		{[]string{"end", "nd"}, []string{"the e", "nd"}, "the ", "end"},
		{[]string{"ä"}, []string{"x", "ä"}, "x", "ä"},
		{[]string{"stop"}, []string{"st", "op it"}, "", "stop"},
		{[]string{"stop"}, []string{"don't stop it"}, "don't ", "stop"},
		{[]string{"stop"}, []string{"sto"}, "sto", ""},
	} {
		if text, found := feed(c.stops, c.parts...); text != c.text || found != c.found {
			t.Errorf("stops %q on %q: got %q, %q; want %q, %q", c.stops, c.parts, text, found, c.text, c.found)
		}
	}
}

// TestPrefixReuse: whatever is reused, the logits are those of a fresh run.
func TestPrefixReuse(t *testing.T) {
	for _, arch := range []string{"llama", "qwen35"} {
		t.Run(arch, func(t *testing.T) {
			m := tiny(t, arch, Options{Threads: 2, Chunk: 7})
			ctx := context.Background()
			a := bytesOf("the quick brown fox jumps over the lazy dog")
			b := append(slices.Clone(a[:20]), bytesOf("red cat")...)
			s := session(t, m)
			steps := []struct {
				name   string
				prompt []token.ID
				min    int // tokens reused at least
			}{
				{"first", a, 0},
				{"same", a, len(a) - 1},
				{"longer", append(slices.Clone(a), bytesOf(" twice")...), len(a)},
				{"back to the first", a, len(a) - 1},
				{"another branch", b, 0},
				{"shorter", b[:5], 0},
			}
			for _, st := range steps {
				reused, err := s.sync(ctx, st.prompt)
				if err != nil {
					t.Fatalf("%s: %v", st.name, err)
				}
				if reused < st.min {
					t.Errorf("%s: %d tokens reused, want at least %d", st.name, reused, st.min)
				}
				fresh := session(t, m)
				if _, err := fresh.sync(ctx, st.prompt); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(s.fresh, fresh.fresh) {
					t.Errorf("%s: logits after reuse differ from those of a fresh session", st.name)
				}
				if s.st.pos != len(st.prompt) || len(s.ids) != len(st.prompt) {
					t.Errorf("%s: timeline has %d tokens, want %d", st.name, s.st.pos, len(st.prompt))
				}
			}
			if arch == "llama" {
				if reused, _ := s.sync(ctx, append(slices.Clone(b[:5]), 'x')); reused != 5 {
					t.Errorf("a branch after 5 tokens reused %d", reused)
				}
			}
		})
	}
}

// TestThreads: the number of workers does not change a bit.
func TestThreads(t *testing.T) {
	for _, arch := range []string{"llama", "qwen35"} {
		path := tinySpec{arch: arch, seed: 5}.write(t)
		ids := bytesOf(strings.Repeat("some text of some length, ", 12))
		var want []float32
		for _, n := range []int{1, 2, 3, 8} {
			s := session(t, load(t, path, Options{Threads: n}))
			got, err := s.Logits(context.Background(), ids)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.advance(context.Background(), bytesOf("x"), 1); err != nil {
				t.Fatal(err)
			}
			got = append(got, s.fresh...)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: logits with %d threads differ from those with 1", arch, n)
			}
		}
	}
}

// TestChunks: one pass over a prompt, several, and one token at a time agree, to
// the last bit but where a delta net takes long passes in chunks of its own.
func TestChunks(t *testing.T) {
	for _, arch := range []string{"llama", "qwen35"} {
		path := tinySpec{arch: arch, seed: 6}.write(t)
		ids := bytesOf(strings.Repeat("chunks of a prompt ", 16))
		var want []float32
		for _, n := range []int{512, 64, 5, 1} {
			s := session(t, load(t, path, Options{Threads: 2, Chunk: n}))
			if _, err := s.sync(context.Background(), ids); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = slices.Clone(s.fresh)
			}
			if far := relative(s.fresh, want); !slices.Equal(s.fresh, want) && (arch == "llama" || far > 3e-6) {
				t.Errorf("%s: logits in chunks of %d are %.1e away", arch, n, far)
			}
		}
	}
}

func relative(got, want []float32) float64 {
	var d, w float64
	for i := range want {
		x := float64(got[i]) - float64(want[i])
		d += x * x
		w += float64(want[i]) * float64(want[i])
	}
	return math.Sqrt(d / w)
}

func TestContextFull(t *testing.T) {
	m := tiny(t, "llama", Options{Threads: 1, Context: 16})
	s := session(t, m)
	res, err := s.Generate(context.Background(), Request{Prompt: bytesOf("seventeen tokens!")}, nil)
	if !errors.Is(err, ErrContextFull) || res.Reason != "context" {
		t.Errorf("prompt of 17 in a context of 16: %v, %v", res.Reason, err)
	}
	n := 0
	res, err = s.Generate(context.Background(), Request{Prompt: bytesOf("ten tokens"), IgnoreEOG: true}, func(Step) error {
		n++
		return nil
	})
	if !errors.Is(err, ErrContextFull) || res.Reason != "context" {
		t.Errorf("answer without end: %v, %v", res.Reason, err)
	}
	// Ten are in, the eleventh is drawn from them, and the token after the
	// sixteenth still can be.
	if res.Generated != 7 {
		t.Errorf("generated %d tokens after 10 in a context of 16, want 7", res.Generated)
	}
	if _, _, res := generate(t, s, Request{Prompt: bytesOf("again"), MaxTokens: 3, IgnoreEOG: true}); res.Generated != 3 {
		t.Errorf("the session is not usable after it was full")
	}
	if _, err := Load(context.Background(), m.pack, Options{Context: 513}); err == nil {
		t.Error("a context above the trained one was accepted")
	}
}

func TestCancel(t *testing.T) {
	for _, arch := range []string{"llama", "qwen35"} {
		m := tiny(t, arch, Options{Threads: 2})
		s := session(t, m)
		prompt := bytesOf("a prompt to be cancelled in the middle")
		ctx, cancel := context.WithCancel(context.Background())
		// In the middle of a pass: after the first layer.
		m.trace = func(il int, _ []float32) {
			if il == 0 {
				cancel()
			}
		}
		res, err := s.Generate(ctx, Request{Prompt: prompt}, nil)
		m.trace = nil
		if !errors.Is(err, context.Canceled) || res.Reason != "cancelled" {
			t.Fatalf("%s: %v, %v", arch, res.Reason, err)
		}
		// Between tokens, by the caller's context.
		ctx, cancel = context.WithCancel(context.Background())
		n := 0
		res, err = s.Generate(ctx, Request{Prompt: prompt, IgnoreEOG: true}, func(Step) error {
			if n++; n == 3 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || res.Reason != "cancelled" || n != 3 {
			t.Errorf("%s: %v, %v after %d tokens, want 3", arch, res.Reason, err, n)
		}
		// By emit.
		gone := errors.New("client is gone")
		res, err = s.Generate(context.Background(), Request{Prompt: prompt, IgnoreEOG: true}, func(Step) error { return gone })
		if !errors.Is(err, gone) || res.Reason != "cancelled" {
			t.Errorf("%s: %v, %v", arch, res.Reason, err)
		}
		// And the session still gives what a fresh one gives.
		fresh := session(t, m)
		if _, err := s.sync(context.Background(), prompt); err != nil {
			t.Fatal(err)
		}
		if _, err := fresh.sync(context.Background(), prompt); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.fresh, fresh.fresh) {
			t.Errorf("%s: logits after a cancelled pass differ", arch)
		}
	}
}

func TestNotFinite(t *testing.T) {
	bad := tinySpec{seed: 2, tensors: map[string]func([]float32){
		"output_norm.weight": func(x []float32) { x[3] = float32(math.NaN()) },
	}}
	s := session(t, load(t, bad.write(t), Options{Threads: 1}))
	_, err := s.Generate(context.Background(), Request{Prompt: bytesOf("x")}, nil)
	if !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN in a norm: %v", err)
	}
}

func TestRepeating(t *testing.T) {
	m := load(t, tinySpec{dim: 256, seed: 1, next: func(id token.ID) token.ID { return id }}.write(t), Options{Threads: 1})
	s := session(t, m)
	n := 0
	res, err := s.Generate(context.Background(), Request{Prompt: bytesOf("a"), MaxTokens: 200}, func(st Step) error {
		n++
		return nil
	})
	if !errors.Is(err, ErrRepeating) || n != maxRepeat || res.Generated != maxRepeat {
		t.Errorf("got %v after %d tokens, want ErrRepeating after %d", err, n, maxRepeat)
	}
}

func TestEndTokens(t *testing.T) {
	for _, end := range []token.ID{tinyEnd, tinyTurn} {
		s := session(t, speaker(t, '>', "Hey", end, Options{Threads: 1}))
		ids, text, res := generate(t, s, Request{Prompt: bytesOf(">")})
		if text != "Hey" || res.Reason != "stop" || res.Generated != 4 || ids[3] != end {
			t.Errorf("end token %d: got %q %v by %s", end, text, ids, res.Reason)
		}
		_, _, res = generate(t, s, Request{Prompt: bytesOf(">"), MaxTokens: 2})
		if res.Reason != "length" || res.Generated != 2 {
			t.Errorf("max tokens 2: %+v", res)
		}
	}
}

func TestLogProbs(t *testing.T) {
	s := session(t, tiny(t, "llama", Options{Threads: 1}))
	_, err := s.Generate(context.Background(), Request{Prompt: bytesOf("x"), MaxTokens: 3, IgnoreEOG: true, LogProbs: 5}, func(st Step) error {
		if len(st.Top) != 5 || st.Top[0].ID != st.ID || st.Top[0].LogProb != st.LogProb {
			t.Errorf("greedy step %+v: the best token is not the chosen one", st)
		}
		var sum float64
		for i, p := range st.Top {
			sum += math.Exp(float64(p.LogProb))
			if i > 0 && p.LogProb > st.Top[i-1].LogProb {
				t.Error("log probabilities are not in order")
			}
		}
		if sum > 1.0001 {
			t.Errorf("five probabilities sum to %v", sum)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCacheKinds(t *testing.T) {
	path := tinySpec{seed: 9, noise: 0.1}.write(t)
	ids := bytesOf(strings.Repeat("keys and values, ", 20))
	var want []float32
	for _, c := range []struct {
		kv    string
		limit float64
	}{{"f32", 0}, {"f16", 2e-3}, {"q8", 2e-2}, {"q4", 0.3}} {
		s := session(t, load(t, path, Options{Threads: 2, KV: c.kv}))
		got, err := s.Logits(context.Background(), ids)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if d := relative(got, want); !(d <= c.limit) {
			t.Errorf("cache %s: %.2e away from f32, limit %.0e", c.kv, d, c.limit)
		}
	}
}

// TestCacheKindsEverywhere: caches in few bits serve heads padded to groups, keys
// that are values as well, windows that begin amid a slab and chosen cells: logits
// stay near those with a cache of floats, and are the same bits for a few tokens alone.
func TestCacheKindsEverywhere(t *testing.T) {
	for _, name := range []string{"llama-ropefreqs", "deepseek2-yarn", "gpt-oss-mxfp4", "qwen4exp", "qwen3moe", "qwen35-nextn"} {
		ids := bytesOf(strings.Repeat("windows, cells and keys; ", 15))
		var want []float32
		for _, c := range []struct {
			kv    string
			limit float64
		}{{"f32", 0}, {"q8", 0.1}, {"q4", 0.4}} {
			m := load(t, fixturePath(name), Options{Threads: 2, KV: c.kv, Context: 512})
			got, err := session(t, m).Logits(context.Background(), ids)
			if err != nil {
				t.Fatal(name, err)
			}
			if want == nil {
				want = got
			}
			s := session(t, m)
			if _, err := s.Logits(context.Background(), ids[:len(ids)-3]); err != nil {
				t.Fatal(name, err)
			}
			if few, err := s.Logits(context.Background(), ids); err != nil || !slices.Equal(few, got) {
				t.Errorf("%s, cache %s: the last three tokens by themselves give other logits: %v", name, c.kv, err)
			}
			if d := relative(got, want); !(d <= c.limit) {
				t.Errorf("%s, cache %s: %.2e away from f32, limit %.0e", name, c.kv, d, c.limit)
			}
		}
	}
}

// TestNoAllocation: a decoded token allocates nothing, with experts, delta nets,
// windows and sinks, and with drafts by the pack's own block.
func TestNoAllocation(t *testing.T) {
	for _, c := range []struct {
		name, path string
		drafts     int
	}{
		{"llama", tinySpec{arch: "llama", seed: 3}.write(t), 0},
		{"qwen35", tinySpec{arch: "qwen35", seed: 3}.write(t), 0},
		{"gpt-oss", tinySpec{arch: "gpt-oss", seed: 3}.write(t), 0},
		{"qwen35moe", fixturePath("qwen35moe-nextn"), 0},
		{"qwen35moe with drafts", fixturePath("qwen35moe-nextn"), 2},
		{"qwen4exp", fixturePath("qwen4exp"), 0},
		{"deepseek2", fixturePath("deepseek2-yarn"), 0},
	} {
		m := load(t, c.path, Options{Threads: 2, Context: 512})
		tok, err := m.Pack().Tokenizer()
		if err != nil {
			t.Fatal(err)
		}
		s := session(t, m)
		s.drafts.fixed = c.drafts
		if c.drafts == 0 {
			s.drafts.mode = draftOff
		}
		ctx := context.Background()
		prompt := bytesOf("warm up")
		if _, err := s.sync(ctx, prompt); err != nil {
			t.Fatal(err)
		}
		r := Request{Prompt: prompt, IgnoreEOG: true}
		g := answer{
			s: s, r: &r, res: &Result{}, tok: tok,
			sampler: newSampler(Sampling{Temperature: 0.8, TopP: 0.9, TopK: 40, Repeat: 1.1}),
			text:    newStopper(nil), stream: tok.Stream(false),
		}
		g.history = append(slices.Grow(g.history, 512), prompt...)
		s.ids, s.p.text = slices.Grow(s.ids, 512), slices.Grow(s.p.text, 512)
		id := token.ID(7)
		step := func() {
			var err error
			if id, _, err = g.step(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		step()
		step()
		// The text of a token is a string of its own: at most one per token drawn.
		most := float64(1 + c.drafts)
		if n := testing.AllocsPerRun(100, step); n > most {
			t.Errorf("%s: %v allocations per pass, want no more than the %v texts", c.name, n, most)
		}
		ids := []token.ID{5}
		s.drafts.block = nil
		if n := testing.AllocsPerRun(20, func() {
			if err := s.advance(ctx, ids, 1); err != nil {
				t.Fatal(err)
			}
			g.sampler.pick(s.fresh, g.history)
		}); n != 0 {
			t.Errorf("%s: %v allocations per token without its text, want 0", c.name, n)
		}
	}
}

// TestWindowedCache: layers with a window keep few rows, and the answer is that
// of a cache that keeps all.
func TestWindowedCache(t *testing.T) {
	path := tinySpec{arch: "gpt-oss", seed: 4}.write(t)
	text := bytesOf(strings.Repeat("windows see little of what was, ", 200))[:5900]
	ctx := context.Background()
	small := load(t, path, Options{Threads: 2, Context: 8000})
	big := load(t, path, Options{Threads: 2, Context: 8000})
	for i := range big.layers { // as if every layer saw its whole context
		if big.layers[i].attn.window > 0 {
			if rows := big.layers[i].cacheRows(8000, big.chunk); rows >= 5000 {
				t.Fatalf("layer %d keeps %d rows", i, rows)
			}
		}
	}
	s, w := session(t, small), session(t, big)
	for i := range w.st.layers {
		a := &big.layers[i].attn
		w.st.layers[i].k = newStore(big.kv, a.kvHeads, a.keyDim, 8000)
		w.st.layers[i].v = newStore(big.kv, a.kvHeads, a.valDim, 8000)
	}
	compare := func(what string, prompt []token.ID) (int, int) {
		t.Helper()
		a, err := s.sync(ctx, prompt)
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.sync(ctx, prompt)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.fresh, w.fresh) {
			t.Errorf("%s: logits differ by %.1e", what, relative(s.fresh, w.fresh))
		}
		return a, b
	}
	compare("first", text)
	if a, _ := compare("a little back", append(slices.Clone(text[:4000]), 'x')); a != 4000 {
		t.Errorf("%d tokens reused after cutting back by 1900, want 4000", a)
	}
	if a, b := compare("far back", append(slices.Clone(text[:1000]), 'x')); a != 0 || b != 1000 {
		t.Errorf("%d and %d tokens reused after cutting back by 4900, want 0 and 1000", a, b)
	}
}

func TestTelemetry(t *testing.T) {
	m := tiny(t, "qwen35", Options{Threads: 2, Context: 256})
	if a := m.Telemetry(); a.Phase != "idle" || a.KV != 0 || a.Threads != 2 || a.ContextSize != 256 || a.Weights == 0 || a.BytesPerToken == 0 {
		t.Errorf("after load: %+v", a)
	}
	s := session(t, m)
	var during Sample
	if _, err := s.Generate(context.Background(), Request{Prompt: bytesOf("tell"), MaxTokens: 5, IgnoreEOG: true}, func(Step) error {
		during = m.Telemetry()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if during.Phase != "decode" || during.PrefillDone != 4 || during.PrefillTotal != 4 || during.PrefillTokS <= 0 || during.DecodeTokS <= 0 || during.MsPerStep <= 0 {
		t.Errorf("while decoding: %+v", during)
	}
	// One attention layer: 2 heads of 16 for key and value in halves, and one
	// delta net of 4 heads of 16 x 16 with 3 columns of 128.
	if want := int64(256*2*(16+16)*2 + 4*(4*16*16+3*128)); during.KV != want {
		t.Errorf("%d bytes of cache, want %d", during.KV, want)
	}
	if a := m.Telemetry(); a.Phase != "idle" || a.Tokens != 5 || a.Scratch == 0 || a.ContextUsed < 8 {
		t.Errorf("afterwards: %+v", a)
	}
	s.Close()
	if a := m.Telemetry(); a.KV != 0 || a.Scratch != 0 {
		t.Errorf("after the session: %d bytes of cache, %d of buffers", a.KV, a.Scratch)
	}
	if kv, err := m.Pack().KVBytes("f16", 256); err != nil || kv != during.KV {
		t.Errorf("KVBytes says %d, %v; the session took %d", kv, err, during.KV)
	}
}

// TestTurns: in a chat the next prompt often leaves the last one some tokens
// before its end; recurrent states are not run anew from the start for that.
func TestTurns(t *testing.T) {
	m := tiny(t, "qwen35", Options{Threads: 2, Chunk: 64})
	s := session(t, m)
	turn := bytesOf(strings.Repeat("a long conversation so far, ", 8))
	for i := range 4 {
		asked := append(slices.Clone(turn), bytesOf("[answer:think]")...)
		_, _, res := generate(t, s, Request{Prompt: asked, MaxTokens: 10, IgnoreEOG: true})
		if i > 0 && res.Reused < len(turn)-60-2*snapshotEdge {
			t.Errorf("turn %d: %d tokens of %d reused", i, res.Reused, len(asked))
		}
		if len(s.snaps) > maxSnapshots {
			t.Errorf("%d copies kept", len(s.snaps))
		}
		// The next turn has the answer, but not the way it was asked for.
		turn = append(turn, bytesOf("[answer] well, the next question is this one")...)
	}
}
