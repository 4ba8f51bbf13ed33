//go:build !unix

package compute

import (
	"runtime"
	"unsafe"
)

// pages takes n bytes from a page's start, which stay where they are until they are
// freed.
func pages(n int64) (mem []byte, free func(), err error) {
	const page = 1 << 16 // at least what any system's pages are
	raw := make([]byte, n+page)
	pin := new(runtime.Pinner)
	pin.Pin(&raw[0])
	at := int64(-uintptr(unsafe.Pointer(&raw[0])) & (page - 1))
	return raw[at : at+n : at+n], pin.Unpin, nil
}
