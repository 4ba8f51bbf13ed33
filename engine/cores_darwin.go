package engine

import "golang.org/x/sys/unix"

// systemCores: the cores of the fastest kind on Apple's processors, else all.
func systemCores() int {
	for _, name := range []string{"hw.perflevel0.physicalcpu", "hw.physicalcpu"} {
		if n, err := unix.SysctlUint32(name); err == nil && n > 0 {
			return int(n)
		}
	}
	return 0
}
