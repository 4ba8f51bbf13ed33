package gpu

import (
	"io/fs"
	"os"
	"runtime"
)

// Open reads the machine at root: "" or "/" is the machine itself, with what
// only running drivers answer; anything else is a recorded machine unpacked
// into a folder. It also gives the file system for a [Sampler] and a report (on
// a live machine the drivers' answers lie in it as a file), and whether the
// machine is live, the sampler's last argument.
func Open(root string) (m Machine, fsys fs.FS, live bool, err error) {
	if root != "" && root != "/" {
		fsys = os.DirFS(root)
		m, err = Detect(fsys)
		return m, fsys, false, err
	}
	fsys = os.DirFS("/")
	if runtime.GOOS == "windows" {
		return DetectWindows(probeWindows()), fsys, true, nil
	}
	if m, err = Detect(fsys); err != nil {
		return m, fsys, true, err
	}
	a := liveAnswers(fsys, m)
	return detect(fsys, a), liveFS{fsys, a.Text()}, true, nil
}
