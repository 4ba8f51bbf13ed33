//go:build !unix

package gpu

import "io/fs"

// statPerm has no answer where files have no owner number.
func statPerm(fs.FileInfo) (perm, bool) { return perm{}, false }
