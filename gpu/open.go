package gpu

import (
	"io/fs"
	"os"
	"runtime"
)

// Open reads the machine at root: "" or "/" is the machine itself, with what
// only running drivers answer; anything else is a recorded machine unpacked
// into a folder. It also gives the file system for a [Sampler], and whether the
// machine is live, the sampler's last argument.
func Open(root string) (m Machine, fsys fs.FS, live bool, err error) {
	live = root == "" || root == "/"
	if !live {
		fsys = os.DirFS(root)
		m, err = Detect(fsys)
		return m, fsys, false, err
	}
	m, fsys, _, err = OpenLive()
	return m, fsys, true, err
}

// OpenLive reads the machine this runs on and gives, beside it, what the running
// drivers answered, for a report.
func OpenLive() (Machine, fs.FS, Answers, error) {
	fsys := os.DirFS("/")
	if runtime.GOOS == "windows" {
		m := DetectWindows(probeWindows())
		return m, fsys, nil, nil
	}
	m, err := Detect(fsys)
	if err != nil {
		return m, fsys, nil, err
	}
	a := liveAnswers(fsys, m)
	return detect(fsys, a), fsys, a, nil
}
