//go:build !cgo

package desktop

import "fmt"

// Run says that this build has no window: it was made without cgo, which the
// graphics driver needs.
func Run(Args) error {
	return fmt.Errorf("%w: this build was made without cgo; build with CGO_ENABLED=1, or use outcrop chat", ErrNoWindow)
}
