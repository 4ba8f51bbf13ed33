//go:build !unix

package recipe

import "os"

// signalOf has no answer where processes end without signals.
func signalOf(*os.ProcessState) (string, int) { return "", 0 }
