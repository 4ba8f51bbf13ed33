package quant

import "golang.org/x/sys/cpu"

// machineLevels is what this processor has beside the plain loops. Formats
// without a kernel of their own stay with the plain loop.
func machineLevels() []*kernels {
	if !cpu.ARM64.HasASIMDDP {
		return nil
	}
	return []*kernels{{level: NEON, dot: neonDots, vec: plainVec, slab: plainSlabs}}
}
