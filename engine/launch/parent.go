package launch

import (
	"io"
	"os"
	"time"
)

// WithParent is the child's side: it calls end once r (standard input, whose
// other end the parent holds) is at its end, and leaves the process by force
// if end has not led to an exit after grace. It is the second of two guards:
// the first is the kernel's signal at the parent's death, which some systems
// do not have.
func WithParent(r io.Reader, grace time.Duration, end func()) {
	go func() {
		io.Copy(io.Discard, r)
		time.AfterFunc(grace, func() { os.Exit(exitParentGone) })
		end()
	}()
}

// exitParentGone is the status of an engine that left because its parent did.
const exitParentGone = 3
