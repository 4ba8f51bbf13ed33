//go:build !linux

package quant

import "testing"

// perSecond runs f in a loop and reports how much of amount, in billions, is
// done in a second.
func perSecond(b *testing.B, amount float64, unit string, f func()) {
	for b.Loop() {
		f()
	}
	b.ReportMetric(amount*float64(b.N)/b.Elapsed().Seconds()/1e9, unit)
}
