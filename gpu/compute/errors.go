package compute

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of failure that callers tell apart with errors.Is.
var (
	ErrNoDriver = errors.New("no driver")         // the library is missing or refuses to start
	ErrNoDevice = errors.New("no device")         // the driver has no device
	ErrMemory   = errors.New("out of memory")     // on the device or for pinned host memory
	ErrTooBig   = errors.New("too big")           // more than one allocation may hold: ask in chunks
	ErrBuild    = errors.New("build failed")      // a kernel did not compile or link
	ErrLost     = errors.New("device lost")       // the device fell off or was reset; open it again
	ErrHung     = errors.New("device hung")       // no answer within the watchdog's time
	ErrClosed   = errors.New("device closed")     // used after Close
	ErrMissing  = errors.New("kernel not found")  // no such kernel in the module
	ErrPanicked = errors.New("device work broke") // a panic inside Do
)

// Error is a failed call of a driver's API.
type Error struct {
	API    string // "OpenCL", "CUDA", "Level Zero"
	Call   string // "clEnqueueNDRangeKernel"
	Code   int64  // as the API gave it
	Name   string // its symbol: "CL_OUT_OF_RESOURCES"
	Kind   error  // one of the Err values above, or nil
	Detail string // what was asked; for ErrBuild the build log
}

func (e *Error) Error() string {
	var b strings.Builder
	name := e.Name
	if name == "" {
		name = "unknown error"
	}
	fmt.Fprintf(&b, "%s: %s (%d)", e.Call, name, e.Code)
	if e.Detail != "" {
		sep := ": "
		if strings.Contains(e.Detail, "\n") {
			sep = "\n"
		}
		b.WriteString(sep + strings.TrimRight(e.Detail, "\n\x00 "))
	}
	return b.String()
}

// Unwrap gives the kind, for errors.Is.
func (e *Error) Unwrap() error { return e.Kind }

// fatal tells whether the device is of no more use after err.
func fatal(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrHung)
}
