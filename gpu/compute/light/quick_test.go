//go:build !slow

package light_test

import "outcrop/gpu/compute/light"

// formats: compiling every product takes a minute on a processor; -tags slow
// does it.
var formats light.Decode
