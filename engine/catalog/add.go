package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"outcrop/engine/gguf"
)

// Add puts what lies at path on the list: a GGUF file, any shard of a split
// one, or every pack below a folder. name may be empty; it is allowed for one
// pack only. Packs that are on the list already are returned as they are.
// Files that look like packs and cannot be read are listed too, with a note:
// "needs a newer program" is better seen than missing.
func (c *Catalog) Add(path, name string) ([]Entry, error) {
	return c.add(path, name, "")
}

// AddFrom is Add with the address the file was downloaded from.
func (c *Catalog) AddFrom(path, name, origin string) ([]Entry, error) {
	return c.add(path, name, origin)
}

func (c *Catalog) add(path, name, origin string) ([]Entry, error) {
	if name != "" {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if isStarter(name) {
			return nil, fmt.Errorf("%q: %w", name, ErrExists)
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("add %s: %w", path, err)
	}
	found, err := Scan(abs)
	if err != nil {
		return nil, err
	}
	// The list is JSON, which holds no other text: such a path would be another
	// one when it is read back.
	for _, e := range found {
		for _, f := range e.Files {
			if !utf8.ValidString(f.Path) {
				return nil, fmt.Errorf("add %q: the name is not UTF-8 text, so the list cannot hold it; give the file another name", f.Path)
			}
		}
	}
	if name != "" && len(found) > 1 {
		return nil, fmt.Errorf("add %s: it holds %d packs, so one name does not fit; add them without a name", path, len(found))
	}
	for i := range found {
		found[i].Added = time.Now().UTC().Truncate(time.Second)
		found[i].Origin = origin
		if name != "" {
			found[i].Name = name
		}
	}
	err = c.edit(func(l *listFile) error {
		for i, e := range found {
			if j := slices.IndexFunc(l.Packs, func(o Entry) bool { return o.Path == e.Path }); j >= 0 {
				// The same file again: what is known of it is refreshed, its name stays.
				e.Name, e.Added = l.Packs[j].Name, l.Packs[j].Added
				if e.Origin == "" {
					e.Origin = l.Packs[j].Origin
				}
				if name != "" {
					if k := l.find(name); k >= 0 && k != j {
						return fmt.Errorf("%q: %w", name, ErrExists)
					}
					e.Name = name
				}
				l.Packs[j], found[i] = e, e
				continue
			}
			if name != "" && l.find(name) >= 0 {
				return fmt.Errorf("%q: %w", name, ErrExists)
			}
			e.Name = l.free(e.Name)
			found[i] = e
			l.Packs = append(l.Packs, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// free finds a name that is not taken: name, name-2, name-3 ...
func (l *listFile) free(name string) string {
	for i := 1; ; i++ {
		n := name
		if i > 1 {
			n = fmt.Sprintf("%s-%d", name, i)
		}
		if l.find(n) < 0 && !isStarter(n) {
			return n
		}
	}
}

// scanDepth is how deep below a folder packs are looked for: enough for
// publisher/model/file trees of other programs, not for a whole home.
const scanDepth = 5

// Scan finds the packs at path without touching the list.
func Scan(path string) ([]Entry, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("add %s: %w", path, plain(err))
	}
	if !st.IsDir() {
		e, err := examine(path)
		if err != nil {
			return nil, fmt.Errorf("add %s: %w", path, err)
		}
		return []Entry{e}, nil
	}
	var out []Entry
	var bad []string
	seen := map[string]bool{}
	base := strings.Count(filepath.Clean(path), string(filepath.Separator))
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if p == path {
				return err
			}
			return nil // a folder we may not read holds no pack for us
		}
		if d.IsDir() {
			if p != path && (strings.HasPrefix(d.Name(), ".") || strings.Count(p, string(filepath.Separator))-base >= scanDepth) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.EqualFold(filepath.Ext(p), ".gguf") {
			return nil
		}
		key := p
		if prefix, _, _, ok := gguf.ShardName(p); ok {
			key = prefix
		}
		if seen[key] {
			return nil
		}
		seen[key] = true
		e, err := examine(p)
		if err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", filepath.Base(p), err))
			return nil
		}
		if e.Arch == "clip" || strings.HasPrefix(strings.ToLower(filepath.Base(p)), "mmproj") {
			return nil // a picture encoder beside a model is not a pack of its own
		}
		out = append(out, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add %s: %w", path, plain(err))
	}
	if len(out) == 0 {
		if len(bad) > 0 {
			return nil, fmt.Errorf("add %s: no pack in it can be used: %s", path, strings.Join(bad, "; "))
		}
		return nil, fmt.Errorf("add %s: no GGUF file in this folder or below", path)
	}
	return out, nil
}

// examine reads the header of a pack. A header that cannot be read at all is
// an error; one that is readable and not usable is an entry with a note.
func examine(path string) (Entry, error) {
	f, err := gguf.Open(path)
	if err != nil {
		m, merr := gguf.ReadMeta(path)
		if merr != nil || !errors.Is(err, gguf.ErrUnknownType) {
			return Entry{}, err
		}
		e := Entry{Path: path, Note: err.Error() + ": this pack needs a newer version of the program"}
		e.describe(m)
		if fl, ferr := fileOf(path); ferr == nil {
			e.Files = []File{fl}
		}
		return e, nil
	}
	defer f.Close()
	e := Entry{Path: path}
	for i, s := range f.Shards() {
		if i == 0 {
			e.Path = s.Path
		}
		fl, err := fileOf(s.Path)
		if err != nil {
			return Entry{}, err
		}
		e.Files = append(e.Files, fl)
	}
	e.describe(f.Meta())
	return e, nil
}

// describe takes name, title and family from the header and the file's name.
func (e *Entry) describe(m *gguf.Meta) {
	e.Arch, _ = m.String("general.architecture")
	e.Title, _ = m.String("general.name")
	name := strings.TrimSuffix(filepath.Base(e.Path), filepath.Ext(e.Path))
	if prefix, _, _, ok := gguf.ShardName(e.Path); ok {
		name = filepath.Base(prefix)
	}
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r < ' ' {
			return '-'
		}
		return r
	}, name))
	if checkName(name) != nil {
		name = "pack"
	}
	e.Name = name
}

func fileOf(path string) (File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return File{}, plain(err)
	}
	return File{Path: path, Size: st.Size(), Modified: st.ModTime().UTC()}, nil
}

// plain drops the path from a file error, for messages that name it already.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
