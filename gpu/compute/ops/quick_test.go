//go:build !slow

package ops_test

import "testing"

// Compiling every kernel for every format takes minutes on a processor. Quick
// tests take the formats that differ most; -tags slow takes all.
var wanted = map[string]bool{"F32": true, "Q4_K": true, "IQ2_XXS": true}

func wants(format string) bool { return wanted[format] }

// whole leaves out what only the slow tests run.
func whole(t *testing.T, what string) {
	t.Helper()
	t.Skip(what + " is run with -tags slow")
}

const (
	attentionCases = 2
	mostColumns    = 2
	chunked        = 77
	everyTile      = false
)
