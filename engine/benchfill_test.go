package engine

import (
	"context"
	"testing"
)

// TestBenchFilled: a bench at a depth fills every row that attention then
// reads, at a length of the timeline that a prompt would have, and counts what
// it reads.
func TestBenchFilled(t *testing.T) {
	path := tinySpec{arch: "qwen35", seed: 3}.write(t)
	for _, kv := range kvNames {
		m := load(t, path, Options{Threads: 2, Context: 500, KV: kv})
		s := session(t, m)
		s.fill(bytesOf(string(make([]byte, 400))))
		if s.st.pos != 400 || len(s.ids) != 400 || len(s.p.text) != 400 {
			t.Fatalf("%s: position %d, %d ids, %d of text after filling 400", kv, s.st.pos, len(s.ids), len(s.p.text))
		}
		for i := range s.st.layers {
			for _, c := range []*store{&s.st.layers[i].k, &s.st.layers[i].v} {
				one, got := []float32{1}, make([]float32, c.dim)
				for h := range c.heads {
					for _, pos := range []int{0, 63, 64, 399} {
						clear(got)
						c.mix(got, c.dim, c.dim, one, 1, 1, h, pos, 1, nil, nowhere)
						if norm := dot(got, got); !(norm > 0.1*float64(c.dim)) {
							t.Fatalf("%s: layer %d head %d position %d has the norm %g", kv, i, h, pos, norm)
						}
					}
					clear(got)
					if c.mix(got, c.dim, c.dim, one, 1, 1, h, 400, 1, nil, nowhere); dot(got, got) != 0 {
						t.Fatalf("%s: layer %d head %d has a row past the end", kv, i, h)
					}
				}
			}
		}
		rs, err := Bench(context.Background(), m, BenchOptions{Prompt: 8, Generate: 4, Depths: []int{0, 400}, Runs: 1})
		if err != nil || len(rs) != 2 {
			t.Fatal(len(rs), err)
		}
		if rs[0].Filled || !rs[1].Filled || rs[1].Depth != 400 || rs[1].BytesPerToken-rs[0].BytesPerToken != m.cacheBytes(402)-m.cacheBytes(2) {
			t.Errorf("%s: %+v", kv, rs)
		}
	}
}

func dot(a, b []float32) (s float64) {
	for i, v := range a {
		s += float64(v) * float64(b[i])
	}
	return s
}
