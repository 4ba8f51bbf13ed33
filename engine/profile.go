package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
)

// profileFile is the saved form of a model's expert use.
type profileFile struct {
	Version int         `json:"version"`
	Pack    string      `json:"pack"` // name and shape: a profile fits no other pack
	Experts [][]float32 `json:"experts"`
}

const profileVersion = 1

// profileID names a pack and the shape that a profile must have.
func (m *Model) profileID() string {
	return fmt.Sprintf("%s/%s/%d", m.pack.Name, m.spec.arch, m.pack.size)
}

// Heat is how often each expert was used lately: by layer and expert, nil for
// layers without experts. Any goroutine may ask.
func (m *Model) Heat() [][]float32 { return m.heat.read() }

// SaveProfile writes the learnt expert use to a file. A process that dies
// while writing leaves the old file.
func (m *Model) SaveProfile(path string) error {
	b, err := json.Marshal(profileFile{profileVersion, m.profileID(), m.heat.read()})
	if err != nil {
		return fmt.Errorf("save profile: %w", err)
	}
	if err := replaceFile(path, b); err != nil {
		return fmt.Errorf("save profile %s: %w", path, err)
	}
	return nil
}

// LoadProfile reads what SaveProfile wrote. A missing file is an error that
// wraps fs.ErrNotExist; a damaged one, or one of another pack, is refused and
// changes nothing.
func (m *Model) LoadProfile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("load profile: %w", err)
	}
	defer f.Close()
	var p profileFile
	if err := json.NewDecoder(io.LimitReader(f, 64<<20)).Decode(&p); err != nil {
		return fmt.Errorf("load profile %s: %w; delete the file to start over", path, err)
	}
	if p.Version != profileVersion || p.Pack != m.profileID() {
		return fmt.Errorf("load profile %s: it is version %d of pack %q, want version %d of %q", path, p.Version, p.Pack, profileVersion, m.profileID())
	}
	for _, l := range p.Experts {
		for _, v := range l {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) || v < 0 {
				return fmt.Errorf("load profile %s: it holds the count %v; delete the file to start over", path, v)
			}
		}
	}
	if !m.heat.set(p.Experts) {
		return fmt.Errorf("load profile %s: its layers and experts are not those of the pack", path)
	}
	return nil
}

// ResetProfile forgets the learnt expert use.
func (m *Model) ResetProfile() {
	zero := m.heat.read()
	for _, l := range zero {
		clear(l)
	}
	m.heat.set(zero)
}
