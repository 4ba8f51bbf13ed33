package engine

import (
	"unsafe"

	win "golang.org/x/sys/windows"
)

// systemCores counts cores of the fastest kind. The affinity of the process is
// in what the Go runtime counts (runtime.NumCPU), which bounds it.
func systemCores() int {
	ask := win.NewLazySystemDLL("kernel32.dll").NewProc("GetLogicalProcessorInformationEx")
	if ask.Find() != nil {
		return 0
	}
	var n uint32
	ask.Call(0, 0, uintptr(unsafe.Pointer(&n))) // fails, and says how much it wants
	if n == 0 || n > 1<<20 {
		return 0
	}
	b := make([]byte, n)
	if ok, _, _ := ask.Call(0, uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n))); ok == 0 || int(n) > len(b) {
		return 0
	}
	return parseWindowsCores(b[:n])
}
