//go:build slow

package ops_test

import "testing"

func wants(string) bool { return true }

func whole(*testing.T, string) {}

const (
	attentionCases = 100
	mostColumns    = 8
	chunked        = 600
	everyTile      = true
)
