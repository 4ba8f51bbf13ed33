//go:build amd64 && !linux

package quant

import "errors"

// askTiles: other systems have ways of their own, which are not written yet.
func askTiles() error {
	return errors.New("this processor has AMX; it is used on Linux only")
}
