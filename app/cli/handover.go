package cli

import (
	"fmt"

	"outcrop/engine"
)

// printHandOvers prints what it takes to hand activations from card to card.
func (p *Program) printHandOvers(list []engine.HandOver) {
	if len(list) == 0 {
		return
	}
	rows := [][]string{{"after layer", "from", "to", "a token", "", "a piece of a prompt", "", "between the cards' work", "memory"}}
	for _, h := range list {
		gap := "n/a"
		if h.GapUS > 0 {
			gap = fmt.Sprintf("%.0f us", h.GapUS)
		}
		memory := "known to both"
		if !h.Shared {
			memory = "each its own, the CPU copies"
		}
		rows = append(rows, []string{fmt.Sprint(h.After), h.From, h.To,
			size(h.TokenBytes), fmt.Sprintf("%.0f us", h.TokenUS), size(h.ChunkBytes), fmt.Sprintf("%.0f us", h.ChunkUS), gap, memory})
	}
	fmt.Fprintln(p.Out)
	table(p.Out, rows)
}

// printStages prints what each stage of a prompt did: the CPU, which feeds the
// first card, and the cards.
func (p *Program) printStages(list []engine.StageTimes) {
	pieces := int64(0)
	for _, s := range list {
		pieces = max(pieces, s.Pieces)
	}
	if pieces < 2 { // nothing flowed
		return
	}
	ms := func(v float64) string { return fmt.Sprintf("%.1f ms", v) }
	rows := [][]string{{"the last prompt", "pieces", "tokens", "at work", "of that making calls", "waited for input", "for memory to write to"}}
	for _, s := range list {
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Pieces), fmt.Sprint(s.Tokens), ms(s.Busy), ms(s.Launch), ms(s.Input), ms(s.Output)})
	}
	fmt.Fprintln(p.Out)
	table(p.Out, rows)
}
