package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Resolved is what a PACK argument means.
type Resolved struct {
	Name string // for people: the name in the list, or the file's name
	Path string // a GGUF file or a folder
	Demo bool
}

// Resolve finds the pack that a command's argument means: nothing is the
// starter; then a name in the list, a file or folder, and at last the only
// name that begins like this.
func (c *Catalog) Resolve(arg string) (Resolved, error) {
	if arg == "" || isStarter(arg) {
		p, err := c.Starter()
		return Resolved{StarterName, p, true}, err
	}
	list, lerr := c.List()
	for _, e := range list {
		if strings.EqualFold(e.Name, arg) {
			return c.use(e)
		}
	}
	if _, err := os.Stat(arg); err == nil {
		abs, err := filepath.Abs(arg)
		if err != nil {
			return Resolved{}, err
		}
		for _, e := range list {
			if e.Path == abs && !e.Demo {
				return c.use(e)
			}
		}
		return Resolved{Name: strings.TrimSuffix(filepath.Base(abs), filepath.Ext(abs)), Path: abs}, nil
	}
	if looksLikePath(arg) {
		return Resolved{}, fmt.Errorf("pack %s: no such file or folder", arg)
	}
	if lerr != nil {
		return Resolved{}, lerr
	}
	var hits, names []string
	var hit Entry
	for _, e := range list {
		names = append(names, e.Name)
		if strings.HasPrefix(strings.ToLower(e.Name), strings.ToLower(arg)) {
			hits = append(hits, e.Name)
			hit = e
		}
	}
	switch len(hits) {
	case 1:
		return c.use(hit)
	case 0:
		return Resolved{}, fmt.Errorf("pack %q: %w, and no file of this name; the list has: %s", arg, ErrUnknown, strings.Join(names, ", "))
	}
	return Resolved{}, fmt.Errorf("pack %q: several names begin like this: %s", arg, strings.Join(hits, ", "))
}

func (c *Catalog) use(e Entry) (Resolved, error) {
	if e.Demo {
		p, err := c.Starter()
		return Resolved{e.Name, p, true}, err
	}
	if h := Check(e); h.Status == Gone {
		return Resolved{}, fmt.Errorf("pack %s: %s", e.Name, h.Text)
	}
	return Resolved{Name: e.Name, Path: e.Path}, nil
}

func looksLikePath(s string) bool {
	return strings.ContainsAny(s, `/\`) || strings.EqualFold(filepath.Ext(s), ".gguf")
}
