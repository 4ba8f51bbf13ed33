// Package catalog keeps the list of packs: which model files the user has,
// where they lie, and how they are. Nothing is copied when a pack is added;
// removing one takes it off the list and leaves its files alone.
//
// The list is one JSON file in the user's data folder. Two copies of the
// program may change it at once: each change holds a lock, reads, edits and
// replaces the file as a whole. The package also unpacks the starter that the
// program carries, and downloads packs (Downloader) with resume and checksum.
// It reads headers at most; loading is the engine's work.
package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"
)

// Entry is one pack of the list.
type Entry struct {
	Name   string    `json:"name"` // unique without regard to case; what commands take
	Path   string    `json:"path"` // absolute: the GGUF file, or its first shard
	Files  []File    `json:"files"`
	Arch   string    `json:"arch,omitempty"` // as the header says; "" when it does not
	Title  string    `json:"title,omitempty"`
	Added  time.Time `json:"added"`
	Origin string    `json:"origin,omitempty"` // address it was downloaded from
	Demo   bool      `json:"demo,omitempty"`   // the starter
	Note   string    `json:"note,omitempty"`   // what is odd about it, in words
}

// File is one file of a pack as it was when the pack was added.
type File struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Size is the sum of all files, in bytes.
func (e Entry) Size() (n int64) {
	for _, f := range e.Files {
		n += f.Size
	}
	return n
}

// Errors that callers act on.
var (
	ErrUnknown = errors.New("no such pack")
	ErrExists  = errors.New("a pack of this name is in the list")
	ErrStarter = errors.New("the starter is part of the program")
)

// Catalog is the list in a file. It may be used from several goroutines and
// several processes.
type Catalog struct {
	path  string
	cache string // where the starter is unpacked
}

// Open opens the list of this user. A list that is not there yet is empty.
func Open() *Catalog { return At(DataDir(), CacheDir()) }

// At opens the list in another folder, with its own cache.
func At(data, cache string) *Catalog {
	return &Catalog{path: filepath.Join(data, "packs.json"), cache: cache}
}

// Path is the file that holds the list.
func (c *Catalog) Path() string { return c.path }

// listFile is the form on disk.
type listFile struct {
	Version int     `json:"version"`
	Packs   []Entry `json:"packs"`
}

const version = 1

// List returns the starter and then the packs in the order they were added.
func (c *Catalog) List() ([]Entry, error) {
	l, err := c.read()
	return append([]Entry{c.starterEntry()}, l.Packs...), err
}

// Get finds a pack by its name, without regard to case.
func (c *Catalog) Get(name string) (Entry, error) {
	all, err := c.List()
	for _, e := range all {
		if strings.EqualFold(e.Name, name) {
			return e, nil
		}
	}
	if err != nil {
		return Entry{}, err
	}
	return Entry{}, fmt.Errorf("%q: %w", name, ErrUnknown)
}

// Remove takes a pack off the list. Its files stay where they are.
func (c *Catalog) Remove(name string) (Entry, error) {
	var gone Entry
	err := c.edit(func(l *listFile) error {
		i := l.find(name)
		if i < 0 {
			return c.unknown(name)
		}
		gone = l.Packs[i]
		l.Packs = slices.Delete(l.Packs, i, i+1)
		return nil
	})
	return gone, err
}

// Restore puts back what Remove returned.
func (c *Catalog) Restore(e Entry) error {
	return c.edit(func(l *listFile) error {
		if l.find(e.Name) >= 0 {
			return fmt.Errorf("%q: %w", e.Name, ErrExists)
		}
		l.Packs = append(l.Packs, e)
		return nil
	})
}

// Rename gives a pack another name.
func (c *Catalog) Rename(old, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return c.edit(func(l *listFile) error {
		i := l.find(old)
		if i < 0 {
			return c.unknown(old)
		}
		if j := l.find(name); j >= 0 && j != i || isStarter(name) {
			return fmt.Errorf("%q: %w", name, ErrExists)
		}
		l.Packs[i].Name = name
		return nil
	})
}

func (c *Catalog) unknown(name string) error {
	if isStarter(name) {
		return fmt.Errorf("%q: %w: it cannot be removed or renamed", name, ErrStarter)
	}
	return fmt.Errorf("%q: %w", name, ErrUnknown)
}

func (l *listFile) find(name string) int {
	return slices.IndexFunc(l.Packs, func(e Entry) bool { return strings.EqualFold(e.Name, name) })
}

// checkName allows what can be typed in a terminal and shown in one line.
func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) != name || name == "":
		return fmt.Errorf("pack name %q: empty, or with space around it", name)
	case strings.ContainsAny(name, "/\\\n\r\t"):
		return fmt.Errorf("pack name %q: no slashes or line breaks, please", name)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("pack name %q: it would be read as a flag", name)
	case len(name) > 200:
		return fmt.Errorf("pack name of %d bytes: at most 200", len(name))
	}
	return nil
}

func (c *Catalog) read() (listFile, error) {
	l := listFile{Version: version}
	b, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("read the list of packs: %w", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return l, nil
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return listFile{Version: version}, fmt.Errorf("read the list of packs %s: %w; mend it or move it away, the pack files are not touched", c.path, err)
	}
	return l, nil
}

// edit changes the list under a lock. A list that cannot be read, or that a
// newer program wrote, is left as it is.
func (c *Catalog) edit(change func(*listFile) error) error {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	lock := flock.New(c.path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the list of packs: %w", err)
	}
	defer lock.Unlock()
	l, err := c.read()
	if err != nil {
		return err
	}
	if l.Version > version {
		return fmt.Errorf("the list of packs %s was written by a newer version of this program (%d, this one knows %d)", c.path, l.Version, version)
	}
	if err := change(&l); err != nil {
		return err
	}
	l.Version = version
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := maybe.WriteFile(c.path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the list of packs: %w", err)
	}
	return nil
}
