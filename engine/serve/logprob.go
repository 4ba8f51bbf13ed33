package serve

import (
	"outcrop/engine"
	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// tokenLogProb puts a step's log probability into the wire's shape.
func (b *Backend) tokenLogProb(st engine.Step) wire.TokenLogProb {
	t := b.oneLogProb(st.ID, st.LogProb)
	t.Top = []wire.TokenLogProb{}
	for _, p := range st.Top {
		t.Top = append(t.Top, b.oneLogProb(p.ID, p.LogProb))
	}
	return t
}

func (b *Backend) oneLogProb(id token.ID, lp float32) wire.TokenLogProb {
	piece := b.Tokenizer.Piece(id)
	t := wire.TokenLogProb{ID: int32(id), Token: string(piece), LogProb: float64(max(lp, -9999)), Bytes: make([]int, len(piece))}
	for i, c := range piece {
		t.Bytes[i] = int(c)
	}
	return t
}

// topAsked turns logprobs and top_logprobs into the engine's number: 0 none,
// -1 only the token's own.
func topAsked(on bool, top int, param string) (int, *httpError) {
	switch {
	case top < 0 || top > maxTop:
		return 0, bad(param, "%s is %d, want 0 to %d", param, top, maxTop)
	case !on && top > 0:
		return 0, bad(param, "%s needs logprobs to be true", param)
	case !on:
		return 0, nil
	case top == 0:
		return -1, nil
	}
	return top, nil
}
