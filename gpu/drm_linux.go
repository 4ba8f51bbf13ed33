package gpu

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of the two Intel drivers.
const (
	ioctlXeQuery   = 0xc0286440 // DRM_IOCTL_XE_DEVICE_QUERY
	ioctlI915Query = 0xc0106479 // DRM_IOCTL_I915_QUERY
	xeQueryMem     = 1
	xeQueryUnits   = 3 // GT_LIST
	i915QueryMem   = 4
)

func ioctl(fd uintptr, req uintptr, arg unsafe.Pointer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, req, uintptr(arg))
		switch e {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
			continue
		}
		return e
	}
}

// queryXe asks an xe render node for its memory.
func queryXe(f *os.File) ([]region, error) {
	buf, err := xeQuery(f, xeQueryMem)
	if err != nil {
		return nil, err
	}
	return parseXeRegions(buf)
}

// xeVersion asks for the graphics IP version; "" when it is not told.
func xeVersion(driver string, f *os.File) string {
	if driver != "xe" {
		return ""
	}
	buf, err := xeQuery(f, xeQueryUnits)
	if err != nil {
		return ""
	}
	v, err := parseXeVersion(buf)
	if err != nil {
		return ""
	}
	return v
}

// xeQuery makes one DRM_XE_DEVICE_QUERY. The first call tells the size.
func xeQuery(f *os.File, what uint32) ([]byte, error) {
	q := struct {
		ext   uint64
		query uint32
		size  uint32
		data  uint64
		res   [2]uint64
	}{query: what}
	if err := ioctl(f.Fd(), ioctlXeQuery, unsafe.Pointer(&q)); err != nil {
		return nil, fmt.Errorf("DRM_XE_DEVICE_QUERY: %w", err)
	}
	if q.size == 0 || q.size > 1<<16 {
		return nil, fmt.Errorf("DRM_XE_DEVICE_QUERY: size %d", q.size)
	}
	buf := make([]byte, q.size)
	q.data = uint64(uintptr(unsafe.Pointer(&buf[0])))
	err := ioctl(f.Fd(), ioctlXeQuery, unsafe.Pointer(&q))
	runtime.KeepAlive(buf)
	if err != nil {
		return nil, fmt.Errorf("DRM_XE_DEVICE_QUERY: %w", err)
	}
	return buf, nil
}

// queryI915 does the same on i915.
func queryI915(f *os.File) ([]region, error) {
	item := struct {
		id     uint64
		length int32
		flags  uint32
		data   uint64
	}{id: i915QueryMem}
	q := struct {
		n, flags uint32
		items    uint64
	}{n: 1, items: uint64(uintptr(unsafe.Pointer(&item)))}
	err := ioctl(f.Fd(), ioctlI915Query, unsafe.Pointer(&q))
	runtime.KeepAlive(&item)
	if err != nil {
		return nil, fmt.Errorf("DRM_I915_QUERY: %w", err)
	}
	if item.length <= 0 || item.length > 1<<16 {
		return nil, fmt.Errorf("DRM_I915_QUERY: length %d", item.length)
	}
	buf := make([]byte, item.length)
	item.data = uint64(uintptr(unsafe.Pointer(&buf[0])))
	err = ioctl(f.Fd(), ioctlI915Query, unsafe.Pointer(&q))
	runtime.KeepAlive(buf)
	runtime.KeepAlive(&item)
	if err != nil {
		return nil, fmt.Errorf("DRM_I915_QUERY: %w", err)
	}
	return parseI915Regions(buf)
}

// queryDRM asks the right one. f is the render node, opened for reading and
// writing.
func queryDRM(driver string, f *os.File) (rs []region, source string, err error) {
	switch driver {
	case "xe":
		rs, err = queryXe(f)
		return rs, "DRM_XE_DEVICE_QUERY_MEM_REGIONS", err
	case "i915":
		rs, err = queryI915(f)
		return rs, "DRM_I915_QUERY_MEMORY_REGIONS", err
	}
	return nil, "", fmt.Errorf("no memory query for driver %q", driver)
}
