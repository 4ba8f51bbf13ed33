package gpu

import (
	"io/fs"
	"strings"
	"time"
)

// liveFS is the machine's own file system with what its drivers answered beside
// it, as a recorded machine has it. Whoever is given it sees the same facts
// again without asking the drivers, and a report made from it holds them.
type liveFS struct {
	fs.FS
	answers string
}

func (l liveFS) Open(name string) (fs.File, error) {
	if name == AnswersFile {
		return &textFile{Reader: strings.NewReader(l.answers), info: textInfo(len(l.answers))}, nil
	}
	return l.FS.Open(name)
}

func (l liveFS) Stat(name string) (fs.FileInfo, error) {
	if name == AnswersFile {
		return textInfo(len(l.answers)), nil
	}
	return fs.Stat(l.FS, name)
}

func (l liveFS) Lstat(name string) (fs.FileInfo, error) {
	if name == AnswersFile {
		return textInfo(len(l.answers)), nil
	}
	return fs.Lstat(l.FS, name)
}

func (l liveFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(l.FS, name) }
func (l liveFS) ReadLink(name string) (string, error)       { return fs.ReadLink(l.FS, name) }

// textFile is the answers as an open file.
type textFile struct {
	*strings.Reader
	info textInfo
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *textFile) Close() error               { return nil }

// textInfo describes the answers; its value is their length.
type textInfo int

func (textInfo) Name() string       { return AnswersFile }
func (i textInfo) Size() int64      { return int64(i) }
func (textInfo) Mode() fs.FileMode  { return 0o444 }
func (textInfo) ModTime() time.Time { return time.Time{} }
func (textInfo) IsDir() bool        { return false }
func (textInfo) Sys() any           { return nil }
