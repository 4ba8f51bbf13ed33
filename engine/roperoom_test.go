package engine

import (
	"slices"
	"testing"
)

// TestRotationsOfPrompts: rotations of a prompt that workers share out are those of
// one goroutine, whatever the length and place.
func TestRotationsOfPrompts(t *testing.T) {
	p := tinyPack(t, tinySpec{arch: "llama", seed: 3})
	m, err := Load(t.Context(), p, Options{Threads: 3, Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := session(t, m)
	for _, x := range []struct{ n, pos int }{{1, 500}, {2*embedPiece - 1, 3}, {2 * embedPiece, 7}, {5*embedPiece + 1, 11}, {512, 0}} {
		for i := range s.p.cs {
			for j := range s.p.cs[i] {
				s.p.cs[i][j] = 9
			}
		}
		s.p.room(x.n, x.pos)
		for i, r := range m.ropes {
			want := make([]float32, x.n*r.spec.dims)
			r.fill(want, x.pos, x.n)
			if len(want) == 0 || !slices.Equal(s.p.cs[i][:len(want)], want) {
				t.Errorf("%d tokens at %d, rotation %d: not those of one goroutine", x.n, x.pos, i)
			}
		}
	}
}
