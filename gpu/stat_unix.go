//go:build unix

package gpu

import (
	"io/fs"
	"syscall"
)

// statPerm reads owner and mode of a real file. fs.FileInfo has the mode but
// not the owner, which only the system's own structure tells.
func statPerm(info fs.FileInfo) (perm, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return perm{}, false
	}
	return perm{mode: uint32(info.Mode().Perm()), uid: int64(st.Uid), gid: int64(st.Gid)}, true
}
