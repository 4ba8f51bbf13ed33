//go:build slow

package engine

const slowTests = true
