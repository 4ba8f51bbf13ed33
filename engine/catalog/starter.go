package catalog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"outcrop/assets"
)

// StarterName is the starter's name in the list.
const StarterName = "starter"

func isStarter(name string) bool { return strings.EqualFold(name, StarterName) }

// starterPath is where the starter lies once it is unpacked. The digest is in
// the name, so that a new version of the program never overwrites a file that
// an old one has mapped.
func (c *Catalog) starterPath() string {
	return filepath.Join(c.cache, assets.StarterSHA256[:12], assets.StarterName)
}

func (c *Catalog) starterEntry() Entry {
	p := c.starterPath()
	return Entry{
		Name: StarterName, Path: p, Arch: "qwen35moe", Title: "Outcrop Starter", Demo: true,
		Files: []File{{Path: p, Size: int64(len(assets.Starter))}},
		Note:  "a tiny demo model that proves your card and the app",
	}
}

// Starter gives the path of the unpacked starter; on first use, or when the
// file in the cache is not byte for byte the one inside the program, it is
// written. A cache that cannot be written is replaced by the system's
// temporary folder.
func (c *Catalog) Starter() (string, error) {
	p := c.starterPath()
	if same(p) {
		return p, nil
	}
	err := unpack(p)
	if err == nil {
		return p, nil
	}
	tmp := filepath.Join(os.TempDir(), fmt.Sprintf("outcrop-%d", os.Getuid()), assets.StarterSHA256[:12], assets.StarterName)
	if same(tmp) {
		return tmp, nil
	}
	if terr := unpack(tmp); terr != nil {
		return "", fmt.Errorf("unpack the starter pack: %w (and in the temporary folder: %v)", err, terr)
	}
	return tmp, nil
}

func unpack(p string) error {
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return err
	}
	return maybe.WriteFile(p, assets.Starter, 0o644)
}

// same compares a file with the starter, byte for byte and piece by piece: a
// few milliseconds, less than a digest would take, and no second copy in
// memory.
func same(p string) bool {
	f, err := os.Open(p)
	if err != nil {
		return false
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for at := 0; ; {
		n, err := f.Read(buf)
		if at+n > len(assets.Starter) || !bytes.Equal(buf[:n], assets.Starter[at:at+n]) {
			return false
		}
		at += n
		if err == io.EOF {
			return at == len(assets.Starter)
		}
		if err != nil {
			return false
		}
	}
}
