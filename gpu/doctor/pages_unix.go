//go:build unix

package doctor

import "golang.org/x/sys/unix"

// pages maps memory that is taken only where it is touched, so that a buffer of
// several GiB with a tag every 2 MiB costs a few MiB.
func pages(n int64) ([]byte, func() error, error) {
	p, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return p, func() error { return unix.Munmap(p) }, nil
}
