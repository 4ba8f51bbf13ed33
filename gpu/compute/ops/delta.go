package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Delta is the gated delta net for one kind of layer.
type Delta struct {
	set               *Set
	shape             DeltaShape
	conv, delta, gate *compute.Kernel
	// many tokens at once; nil: no kernel has the shape
	solve, pass, convMany, convKeep *compute.Kernel
}

// DeltaShape are the sizes and switches of a delta net.
type DeltaShape struct {
	Keys, Values int // heads
	Dim          int // of a head
	Taps         int // of the convolution
	ByMod        bool
	FusedBA      bool    // raw per key head: betas, alphas
	Sigmoid      bool    // output gate
	Eps          float32 // of the norms of queries and keys
}

// Channels is the width of the convolution.
func (h DeltaShape) Channels() int { return (2*h.Keys + h.Values) * h.Dim }

// Delta loads the kernels.
func (s *Set) Delta(h DeltaShape) (*Delta, error) {
	if h.Taps > 8 || h.Dim > 256 || h.Keys < 1 || h.Values%h.Keys != 0 {
		return nil, fmt.Errorf("delta net with %d and %d heads of %d values, %d taps: no kernel has this shape", h.Keys, h.Values, h.Dim, h.Taps)
	}
	o := &Delta{set: s, shape: h}
	m := kernels.Delta(h.Dim)
	var err error
	if o.conv, err = s.load(m, "convolve"); err != nil {
		return nil, err
	}
	if o.delta, err = s.load(m, "delta"); err != nil {
		return nil, err
	}
	if o.gate, err = s.load(m, "gate_norm"); err != nil || h.Dim != 32 && h.Dim != 64 && h.Dim != 128 {
		return o, err
	}
	for name, k := range map[string]**compute.Kernel{
		"chunk_solve": &o.solve, "chunk_pass": &o.pass, "convolve_many": &o.convMany, "convolve_keep": &o.convKeep,
	} {
		if *k, err = s.load(kernels.Chunks(h.Dim), name); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// A prompt is worked off in chunks (chunk.cl), chunkSegment tokens at a time, from
// chunkLeast tokens on.
const (
	chunk        = 32
	chunkSegment = 512
	chunkLeast   = 64
)

// ScratchBytes is the room that a step of tokens tokens wants in Scratch; 0:
// none.
func (o *Delta) ScratchBytes(tokens int) int64 {
	if o.solve == nil || tokens < chunkLeast {
		return 0
	}
	h := o.shape
	each := 2*chunk*h.Dim + chunk*chunk + 3*chunk // REC
	return 4 * int64(up(min(tokens, chunkSegment), chunk)) * int64(h.Values) * int64(each)
}

// chunks is the net over the tokens of s, all kept.
func (o *Delta) chunks(q *compute.Queue, s *DeltaStep, flags int) error {
	h, set := o.shape, o.set
	ch := h.Channels()
	const rows = 16 // of a work-group, chunk.cl
	for base := 0; base < s.Tokens; base += chunkSegment {
		n, first := min(chunkSegment, s.Tokens-base), 0
		if base == 0 {
			first = 1
		}
		err := q.Launch(o.solve, compute.Dim{X: up(n, chunk), Y: h.Values}, compute.Dim{X: 256},
			compute.Mem(s.Conv), compute.Int(ch), compute.Mem(s.Raw), compute.Int(s.LdRaw), compute.Mem(s.A), compute.Mem(s.DT),
			compute.Int(base), compute.Int(n), compute.Int(h.Values), compute.Int(h.Keys), compute.Float(h.Eps), compute.Int(flags), compute.Mem(s.Scratch))
		if err != nil {
			return err
		}
		err = q.Launch(o.pass, compute.Dim{X: h.Dim / rows, Y: h.Values}, compute.Dim{X: 128},
			compute.Mem(s.Conv), compute.Int(ch), compute.Mem(s.Scratch), compute.Int(base), compute.Int(n), compute.Int(h.Values), compute.Int(h.Keys),
			compute.Mem(s.State.S), compute.Mem(set.or(s.Old.K)), compute.Mem(set.or(s.Old.D)), compute.Mem(set.or(s.Old.G)), compute.Mem(s.Pos),
			compute.Int(first), compute.Int(flags), compute.Mem(s.Attn))
		if err != nil {
			return err
		}
	}
	return nil
}

// DeltaState is what a delta net keeps of a timeline.
type DeltaState struct {
	S    *compute.Buffer // (value heads, dim, dim)
	Hist *compute.Buffer // (taps-1, channels)
}

// DeltaLog is what the tokens of a tentative window would do.
type DeltaLog struct {
	U *compute.Buffer // (window, channels)
	K *compute.Buffer // (window, keys, dim)
	D *compute.Buffer // (window, values, dim)
	G *compute.Buffer // (window, values)
}

// DeltaStep is one run over tokens.
type DeltaStep struct {
	Tokens     int
	U          *compute.Buffer // (tokens, LdU): q | k | v before the convolution
	LdU        int
	Raw        *compute.Buffer // (tokens, LdRaw): alphas, betas
	LdRaw      int
	Z          *compute.Buffer // (tokens, LdZ): output gate
	LdZ        int
	Taps       *compute.Buffer // (taps, channels), oldest first
	A, DT      *compute.Buffer // (values)
	Norm       *compute.Buffer // (dim)
	NormEps    float32
	State      DeltaState
	Old, Log   DeltaLog        // of the last and of this tentative window; may be empty
	Keep       bool            // change the state; else log
	Pos        *compute.Buffer // [1]: tokens of the last window that were right
	Conv, Attn *compute.Buffer // scratch: (tokens, channels), (tokens, values*dim)
	Scratch    *compute.Buffer // ScratchBytes; nil: the tokens of a prompt go one by one
	To         *Acts
}

// Run makes to = rms(o) * norm * act(z).
func (o *Delta) Run(q *compute.Queue, s *DeltaStep) error {
	h, set := o.shape, o.set
	ch := h.Channels()
	keep := 0
	if s.Keep {
		keep = 1
	}
	const convSiLU = 8
	n := o.ScratchBytes(s.Tokens)
	chunks := s.Keep && n > 0 && s.Scratch != nil && s.Scratch.Len() >= n
	var err error
	if chunks {
		const each = 16 // tokens of a work-item, chunk.cl
		err = q.Launch(o.convMany, compute.Dim{X: up(ch, 64), Y: up(s.Tokens, each)}, compute.Dim{X: 64},
			compute.Mem(s.U), compute.Int(s.LdU), compute.Int(s.Tokens), compute.Int(ch), compute.Int(h.Taps), compute.Mem(s.Taps), compute.Mem(s.State.Hist),
			compute.Mem(set.or(s.Old.U)), compute.Mem(s.Pos), compute.Int(convSiLU), compute.Mem(s.Conv))
		if err == nil {
			err = q.Launch(o.convKeep, compute.Dim{X: up(ch, 64)}, compute.Dim{X: 64},
				compute.Mem(s.U), compute.Int(s.LdU), compute.Int(s.Tokens), compute.Int(ch), compute.Int(h.Taps), compute.Mem(s.State.Hist))
		}
	} else {
		err = q.Launch(o.conv, compute.Dim{X: up(ch, 64)}, compute.Dim{X: 64},
			compute.Mem(s.U), compute.Int(s.LdU), compute.Int(s.Tokens), compute.Int(ch), compute.Int(h.Taps), compute.Mem(s.Taps), compute.Mem(s.State.Hist),
			compute.Mem(set.or(s.Old.U)), compute.Mem(set.or(s.Log.U)), compute.Mem(s.Pos), compute.Int(keep|convSiLU), compute.Mem(s.Conv))
	}
	if err != nil {
		return err
	}
	flags := keep
	if h.ByMod {
		flags |= 2
	}
	if h.FusedBA {
		flags |= 4
	}
	const rows = 2 * 4 // of a work-group, delta.cl
	if chunks {
		err = o.chunks(q, s, flags)
	} else {
		err = q.Launch(o.delta, compute.Dim{X: up(h.Dim, rows), Y: h.Values}, compute.Dim{X: 4 * set.lanes},
			compute.Mem(s.Conv), compute.Int(ch), compute.Mem(s.Raw), compute.Int(s.LdRaw), compute.Mem(s.A), compute.Mem(s.DT),
			compute.Int(s.Tokens), compute.Int(h.Values), compute.Int(h.Keys), compute.Float(h.Eps), compute.Mem(s.State.S),
			compute.Mem(set.or(s.Old.K)), compute.Mem(set.or(s.Old.D)), compute.Mem(set.or(s.Old.G)),
			compute.Mem(set.or(s.Log.K)), compute.Mem(set.or(s.Log.D)), compute.Mem(set.or(s.Log.G)), compute.Mem(s.Pos), compute.Int(flags), compute.Mem(s.Attn))
	}
	if err != nil {
		return err
	}
	flags = 0
	if h.Sigmoid {
		flags |= 1
	}
	if s.To.X != nil {
		flags |= 4
	}
	if s.To.Q != nil {
		flags |= 8
		if h.Dim%32 != 0 {
			return fmt.Errorf("delta net with heads of %d values: cannot be rounded in units of 32", h.Dim)
		}
	}
	return q.Launch(o.gate, compute.Dim{X: up(h.Values, 4), Y: s.Tokens}, compute.Dim{X: 4 * set.lanes},
		compute.Mem(s.Attn), compute.Mem(s.Z), compute.Int(s.LdZ), compute.Mem(s.Norm), compute.Int(h.Values), compute.Float(s.NormEps), compute.Int(flags),
		compute.Mem(set.or(s.To.X)), compute.Mem(set.or(s.To.Q)), compute.Mem(set.or(s.To.M)))
}

// Convolve is a short convolution alone: y = taps * u over time, with its
// history. Keep as in DeltaStep.
func (o *Delta) Convolve(q *compute.Queue, y, u *compute.Buffer, ldu, tokens, channels, taps int, w, hist, pos *compute.Buffer) error {
	return q.Launch(o.conv, compute.Dim{X: up(channels, 64)}, compute.Dim{X: 64},
		compute.Mem(u), compute.Int(ldu), compute.Int(tokens), compute.Int(channels), compute.Int(taps), compute.Mem(w), compute.Mem(hist),
		compute.Mem(o.set.none), compute.Mem(o.set.none), compute.Mem(pos), compute.Int(1), compute.Mem(y))
}
