package cli

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropCached asks the system to forget what it keeps of files, and says which
// part of them it still keeps.
func dropCached(files []string) (float64, error) {
	var pages, kept int
	for _, name := range files {
		n, k, err := dropFile(name)
		if err != nil {
			return -1, err
		}
		pages, kept = pages+n, kept+k
	}
	return float64(kept) / float64(max(1, pages)), nil
}

func dropFile(name string) (pages, kept int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, 0, err
	}
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return 0, 0, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Munmap(mem)
	page := os.Getpagesize()
	in := make([]byte, (len(mem)+page-1)/page)
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), uintptr(unsafe.Pointer(&in[0]))); e != 0 {
		return 0, 0, e
	}
	for _, b := range in {
		kept += int(b & 1)
	}
	return len(in), kept, nil
}
