package gpu

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// maxFile bounds every file read: nothing in sys or proc that matters is near
// it, and a recorded machine is foreign input.
const maxFile = 4 << 20

// errNoFile says that a name is there and has nothing to read.
var errNoFile = errors.New("not a regular file")

// read gives a file's text without its trailing newline. Opening a pipe would
// wait for its writer for ever, so what is no regular file is not opened.
func read(root fs.FS, name string) (string, error) {
	st, err := fs.Stat(root, name)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", errNoFile
	}
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b), "\n"), nil
}

// text is read for files whose absence is an answer in itself.
func text(root fs.FS, name string) string {
	s, err := read(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// number reads a file that holds one integer, decimal or 0x hexadecimal. The
// reading names the file, and why it is unknown: absent, unreadable or no
// number. sysfs answers some files with an error instead of a value.
func number(root fs.FS, name string) Reading[int64] {
	s, err := read(root, name)
	if err != nil {
		return Unknown[int64]("/"+name, reason(err))
	}
	v, ok := parseInt(s)
	if !ok {
		return Unknown[int64]("/"+name, "not a number: "+clip(s))
	}
	return Known(v, "/"+name)
}

// parseInt reads one integer; what does not fit in 63 bits is refused, not
// wrapped.
func parseInt(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	if u, err := strconv.ParseInt(s, 0, 64); err == nil {
		return u, true
	}
	return 0, false
}

// hex16 reads a PCI vendor or device file.
func hex16(root fs.FS, name string) (uint16, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(text(root, name), "0x"), 16, 16)
	return uint16(v), err == nil
}

// reason gives the short cause of a file error.
func reason(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		err = pe.Err
	}
	switch {
	case err == fs.ErrNotExist:
		return "no such file"
	case err == fs.ErrPermission:
		return "permission denied"
	}
	s := err.Error()
	if s == "no such file or directory" {
		return "no such file"
	}
	return s
}

// clip shortens foreign text for a message.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return strconv.Quote(s)
}

// exists says whether a name is there.
func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// names lists a folder, empty when it cannot be read.
func names(root fs.FS, dir string) []string {
	es, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil
	}
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.Name()
	}
	return out
}

// link gives the name a symbolic link points to, relative to root, or "" when
// name is no link. Targets that leave the root by ".." end at the root, as they
// would in a chroot.
func link(root fs.FS, name string) string {
	t, err := fs.ReadLink(root, name)
	if err != nil {
		return ""
	}
	if !path.IsAbs(t) {
		t = path.Join("/", path.Dir(name), t)
	}
	return strings.TrimPrefix(path.Clean(t), "/")
}

// lines calls f for each line of s.
func lines(s string, f func(line string)) {
	sc := bufio.NewScanner(strings.NewReader(s))
	sc.Buffer(make([]byte, 0, 4096), maxFile)
	for sc.Scan() {
		f(sc.Text())
	}
}

// keyed gives the value of one "key: value" line of a file such as /proc/meminfo,
// and whether there is one.
func keyed(s, key string) (string, bool) {
	for line := range strings.Lines(s) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}
