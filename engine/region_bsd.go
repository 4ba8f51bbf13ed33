//go:build unix && !linux

package engine

import "golang.org/x/sys/unix"

// dropPages lets the system take anonymous pages when it wants them; outside
// of Linux the advice to drop them keeps them.
const dropPages = unix.MADV_FREE

// largePages are given without being asked for, where there are any.
func largePages([]byte) {}
