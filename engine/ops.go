package engine

import (
	"math"

	"outcrop/engine/quant"
)

// Element-wise steps of the forward pass that are not vector operations of
// package quant.

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// clampedSiluMul is the gate of gpt-oss: g = min(g,7), u = clamp(u,-7,7),
// g * sigmoid(1.702 g) * (u + 1).
func clampedSiluMul(g, u []float32) {
	u = u[:len(g)]
	for i, v := range g {
		a := min(v, 7)
		b := max(min(u[i], 7), -7)
		g[i] = a * sigmoid(1.702*a) * (b + 1)
	}
}

// gateMul applies an activation: g = act(g) * u.
func (a activation) gateMul(g, u []float32) {
	switch a {
	case silu:
		quant.SwiGLU(g, g, u)
	case geluTanh:
		quant.GeGLU(g, g, u)
	case clampedSilu:
		clampedSiluMul(g, u)
	}
}
