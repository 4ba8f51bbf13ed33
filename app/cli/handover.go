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
	rows := [][]string{{"after layer", "from", "to", "a token", "", "a piece of a prompt", "", "between the cards' work"}}
	for _, h := range list {
		gap := "n/a"
		if h.GapUS > 0 {
			gap = fmt.Sprintf("%.0f us", h.GapUS)
		}
		rows = append(rows, []string{fmt.Sprint(h.After), h.From, h.To,
			size(h.TokenBytes), fmt.Sprintf("%.0f us", h.TokenUS), size(h.ChunkBytes), fmt.Sprintf("%.0f us", h.ChunkUS), gap})
	}
	fmt.Fprintln(p.Out)
	table(p.Out, rows)
}
