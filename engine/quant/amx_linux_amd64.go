package quant

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// askTiles asks the system, once for the process, for the right to use tile
// data (Linux 5.16 and later, Documentation/arch/x86/xstate.rst).
func askTiles() error {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18     // number of the state component
	)
	_, _, e := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	switch e {
	case 0:
		return nil
	case unix.EINVAL, unix.EOPNOTSUPP:
		return fmt.Errorf("this processor has AMX, but the kernel offers no tile data: %w; Linux 5.16 or later does, unless it was started with clearcpuid=amx_tile", e)
	case unix.ENOSPC:
		return fmt.Errorf("this processor has AMX, but a signal stack of this process is too small for tile data: %w", e)
	}
	return fmt.Errorf("this processor has AMX, but the kernel refused tile data: %w; a sandbox may forbid arch_prctl", e)
}
