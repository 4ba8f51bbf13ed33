//go:build slow

package engine

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"outcrop/engine/token"
)

// TestSkewRouting rewrites the routers of a pack of random weights in place, so
// that its experts are used by a Zipf law in any engine that reads the file.
// OUTCROP_SKEW is the pack, OUTCROP_ZIPF the exponent (0: evenly), OUTCROP_ROUNDS
// how often the biases are fitted. Routers of
// random weights choose much the same experts for every token, which tells
// nothing about placements.
//
// What routers see has a part that all tokens share. A row that points along it
// is chosen more or less often whatever the token, as a bias would do; across
// it rows are random and the choice depends on the token. The biases are fitted
// to the states of a run, several times, since changed routers change later layers.
func TestSkewRouting(t *testing.T) {
	path := os.Getenv("OUTCROP_SKEW")
	if path == "" {
		t.Skip("OUTCROP_SKEW names no pack")
	}
	s, err := strconv.ParseFloat(os.Getenv("OUTCROP_ZIPF"), 64)
	if err != nil {
		t.Fatal("OUTCROP_ZIPF: ", err)
	}
	rounds := 4
	if n, err := strconv.Atoi(os.Getenv("OUTCROP_ROUNDS")); err == nil {
		rounds = n
	}
	for round := range rounds + 1 {
		top := skewOnce(t, path, s, round < rounds)
		fmt.Printf("pass %d: the hottest eighth of the experts gets %.0f %% of the choices, the hottest half %.0f %%\n", round, 100*top[0], 100*top[1])
	}
}

// skewTokens are the tokens of the run that biases are fitted to.
const skewTokens = 384

// skewOnce runs the pack and, with write, fits its routers. It returns the
// shares of choices that the hottest eighth and half of the experts got.
func skewOnce(t *testing.T, path string, s float64, write bool) (top [2]float64) {
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := Load(context.Background(), p, Options{Context: 1024, Draft: "off", Chunk: skewTokens})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	dim := m.spec.dim
	states := make([][]float32, len(m.layers))
	uses := make([][]float64, len(m.layers))
	ses, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ses.Close()
	m.route = func(il, at int, ids []int32) {
		if uses[il] == nil {
			uses[il] = make([]float64, m.layers[il].expert.count)
		}
		for _, e := range ids {
			uses[il][e]++
		}
		if write {
			states[il] = append(states[il], ses.p.xb[at*dim:(at+1)*dim]...)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	ids := make([]token.ID, skewTokens)
	for i := range ids {
		ids[i] = token.ID(rng.IntN(m.spec.vocab))
	}
	if err := ses.advance(t.Context(), ids, 1); err != nil {
		t.Fatal(err)
	}
	layers := 0.0
	for _, u := range uses {
		if u == nil {
			continue
		}
		layers++
		u = slices.Clone(u)
		slices.SortFunc(u, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
		for i, v := range u {
			if i < len(u)/8 {
				top[0] += v / sum(u)
			}
			if i < len(u)/2 {
				top[1] += v / sum(u)
			}
		}
	}
	top[0] /= layers
	top[1] /= layers
	if !write {
		return top
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type result struct {
		il   int
		rows []float32
	}
	done := make(chan result)
	free := make(chan struct{}, DefaultThreads())
	for il := range states {
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			if states[il] == nil {
				done <- result{il, nil}
				return
			}
			l := &m.layers[il]
			done <- result{il, skewRouter(rand.New(rand.NewPCG(uint64(il), 3)), states[il], dim, l.expert.count, l.expert.used, s)}
		}()
	}
	for range states {
		r := <-done
		if r.rows == nil {
			continue
		}
		w := &m.layers[r.il].router
		x := p.file.Tensor(w.name)
		if !w.f.Float || w.rowBytes != 4*dim {
			t.Fatalf("%s is not of 32-bit floats", w.name)
		}
		if _, err := f.WriteAt(rawFloats(r.rows), x.Offset); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// skewRouter makes the rows of a router for states that have a common part.
func skewRouter(rng *rand.Rand, x []float32, dim, experts, used int, s float64) []float32 {
	T := len(x) / dim
	mean := make([]float64, dim)
	for i, v := range x {
		mean[i%dim] += float64(v) / float64(T)
	}
	norm := 0.0
	for _, v := range mean {
		norm += v * v
	}
	norm = math.Sqrt(norm)
	rows := make([]float32, experts*dim)
	logits := make([]float64, T*experts)
	for e := range experts {
		row := rows[e*dim : (e+1)*dim]
		along := 0.0
		for i := range row {
			row[i] = float32(rng.NormFloat64())
			along += float64(row[i]) * mean[i] / norm
		}
		for i := range row {
			row[i] -= float32(along * mean[i] / norm)
		}
		// Logits that tell tokens apart: a deviation of one over the tokens.
		var sq, av float64
		for t := range T {
			v := 0.0
			for i, r := range row {
				v += float64(r) * float64(x[t*dim+i])
			}
			logits[t*experts+e] = v
			av += v / float64(T)
			sq += v * v / float64(T)
		}
		scale := 1 / math.Sqrt(max(sq-av*av, 1e-20))
		for i := range row {
			row[i] *= float32(scale)
		}
		for t := range T {
			logits[t*experts+e] *= scale
		}
	}
	want := zipfUses(rng, experts, used, s, T)
	bias := make([]float64, experts)
	for round := range 200 {
		got := make([]float64, experts)
		score := make([]float64, experts)
		for t := range T {
			for e := range experts {
				score[e] = logits[t*experts+e] + bias[e]
			}
			for range used {
				best := 0
				for e, v := range score {
					if v > score[best] {
						best = e
					}
				}
				got[best]++
				score[best] = math.Inf(-1)
			}
		}
		step := 0.6 / (1 + float64(round)/20)
		for e := range bias {
			bias[e] += step * (math.Log(want[e]+0.3) - math.Log(got[e]+0.3))
		}
	}
	for e := range experts {
		for i := range dim {
			// The state's part along the mean is about its norm.
			rows[e*dim+i] += float32(bias[e] * mean[i] / (norm * norm))
		}
	}
	return rows
}

// zipfUses is how often each expert is chosen by T tokens under a Zipf law.
func zipfUses(rng *rand.Rand, experts, used int, s float64, T int) []float64 {
	z := newZipf(rng, experts, s)
	n := make([]float64, experts)
	const times = 3000
	for range times {
		for _, e := range z.draw(used) {
			n[e] += float64(T) / times
		}
	}
	return n
}
