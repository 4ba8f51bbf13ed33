package gpu

import (
	"io/fs"
	"os"
)

// Open reads the machine at root: "" or "/" is the machine itself, with what
// only running drivers answer; anything else is a recorded machine unpacked
// into a folder. It also gives the file system for a [Sampler] and whether the
// machine is live.
func Open(root string) (m Machine, fsys fs.FS, live bool, err error) {
	live = root == "" || root == "/"
	if live {
		root = "/"
	}
	fsys = os.DirFS(root)
	m, err = Detect(fsys)
	return m, fsys, live, err
}
