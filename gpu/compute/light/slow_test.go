//go:build slow

package light_test

import "outcrop/gpu/compute/light"

var formats light.Decode = decode
