package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"outcrop/engine/plan"
)

// profileFile is the saved form of a model's expert use.
type profileFile struct {
	Version int         `json:"version"`
	Pack    string      `json:"pack"` // name and shape: a profile fits no other pack
	Experts [][]float32 `json:"experts"`
}

const profileVersion = 1

// profileID names a pack and the shape that a profile must have.
func (p *Pack) profileID() string { return fmt.Sprintf("%s/%s/%d", p.Name, p.Arch, p.size) }

// Heat is how often each expert was used lately: by layer and expert, nil for
// layers without experts. Any goroutine may ask.
func (m *Model) Heat() [][]float32 { return m.heat.read() }

// SaveProfile writes the learnt expert use to a file. A process that dies
// while writing leaves the old file.
func (m *Model) SaveProfile(path string) error {
	b, err := json.Marshal(profileFile{profileVersion, m.pack.profileID(), m.heat.read()})
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
	counts, err := m.pack.readProfile(path)
	if err != nil {
		return err
	}
	if !m.heat.set(counts) {
		return fmt.Errorf("load profile %s: its layers and experts are not those of the pack", path)
	}
	return nil
}

// UseProfile tells the planner how unevenly experts are used, as a saved
// profile has it. Layers that it says nothing of stay as they are.
func (p *Pack) UseProfile(facts *plan.Pack, path string) error {
	counts, err := p.readProfile(path)
	if err != nil {
		return err
	}
	for i := range min(len(counts), len(facts.Layers)) {
		l, sum := &facts.Layers[i], 0.0
		for _, v := range counts[i] {
			sum += float64(v)
		}
		if len(counts[i]) != l.Experts || sum < float64(4*l.Experts) {
			continue // too little to tell hot from lucky
		}
		l.HotShare = make([]float64, l.Experts)
		for e, v := range counts[i] {
			l.HotShare[e] = float64(v) / sum
		}
		slices.SortFunc(l.HotShare, func(a, b float64) int { return cmp.Compare(b, a) })
	}
	return nil
}

// readProfile reads the counts of a file that SaveProfile wrote for this pack.
func (p *Pack) readProfile(path string) ([][]float32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load profile: %w", err)
	}
	defer f.Close()
	var got profileFile
	if err := json.NewDecoder(io.LimitReader(f, 64<<20)).Decode(&got); err != nil {
		return nil, fmt.Errorf("load profile %s: %w; delete the file to start over", path, err)
	}
	if got.Version != profileVersion || got.Pack != p.profileID() {
		return nil, fmt.Errorf("load profile %s: it is version %d of pack %q, want version %d of %q", path, got.Version, got.Pack, profileVersion, p.profileID())
	}
	for _, l := range got.Experts {
		for _, v := range l {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) || v < 0 {
				return nil, fmt.Errorf("load profile %s: it holds the count %v; delete the file to start over", path, v)
			}
		}
	}
	return got.Experts, nil
}

// ResetProfile forgets the learnt expert use.
func (m *Model) ResetProfile() {
	zero := m.heat.read()
	for _, l := range zero {
		clear(l)
	}
	m.heat.set(zero)
}
