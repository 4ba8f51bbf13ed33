//go:build !amd64 && !arm64

package quant

// machineLevels is what this kind of processor has beside the plain loops.
func machineLevels() []*kernels { return nil }
