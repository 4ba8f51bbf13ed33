package rates

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// openPast opens a file so that reads come from the disk: with direct reads, or
// where the file system has none, by dropping what the cache holds of a piece
// before it is read.
func openPast(path string, size int) (r reader, how string, err error) {
	// Large pages, as the engine's experts have: on small ones a read goes to
	// the disk in many short pieces, at little more than half the rate.
	all, err := unix.Mmap(-1, 0, size+2*hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return r, "", fmt.Errorf("room to read to: %w", err)
	}
	off := int(-uintptr(unsafe.Pointer(&all[0])) & (hugePage - 1))
	_ = unix.Madvise(all[off:off+(size+hugePage-1)&^(hugePage-1)], unix.MADV_HUGEPAGE)
	r.buf = all[off : off+size]
	r.free = func() { unix.Munmap(all) }
	how = "direct"
	if r.file, err = os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0); err == nil {
		return r, how, nil
	}
	if r.file, err = os.Open(path); err != nil {
		r.free()
		return r, "", err
	}
	r.past = func(off, n int64) { _ = unix.Fadvise(int(r.file.Fd()), off, n, unix.FADV_DONTNEED) }
	return r, "through the page cache, dropped before", nil
}

// diskKey names the file system a file lies on.
func diskKey(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("find the disk of %s: %w", path, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "", fmt.Errorf("find the disk of %s: %w", path, err)
	}
	// The number alone may be given to another disk after a restart.
	return fmt.Sprintf("device %d:%d, file system %x, %d blocks", unix.Major(st.Dev), unix.Minor(st.Dev), fs.Type, fs.Blocks), nil
}
