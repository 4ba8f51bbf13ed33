package quant

import (
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// threadTime is the processor time of this thread. Benchmarks report speed by
// it, so that other processes on the machine count less.
func threadTime() time.Duration {
	var ts syscall.Timespec
	const clockThread = 3 // CLOCK_THREAD_CPUTIME_ID
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThread, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// perSecond runs f in a loop and reports how much of amount, in billions, is
// done in a second of processor time.
func perSecond(b *testing.B, amount float64, unit string, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	for b.Loop() {
		f()
	}
	b.ReportMetric(amount*float64(b.N)/(threadTime()-start).Seconds()/1e9, unit)
}
