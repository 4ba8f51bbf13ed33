//go:build slow

package light_test

import (
	"outcrop/engine/quant"
	"outcrop/gpu/compute/light"
)

// formats is engine/quant as light wants it.
var formats light.Decode = func(typ uint32, dst []float32, src []byte) error {
	f, err := quant.Of(quant.Type(typ))
	if err == nil {
		f.Decode(dst, src)
	}
	return err
}
