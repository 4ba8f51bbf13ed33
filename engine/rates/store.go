package rates

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/google/renameio/v2/maybe"
)

// Store is the file that rates are kept in. It belongs to one goroutine.
type Store struct {
	path string
	r    Rates
}

// Open reads the rates kept in a file. A missing file holds none. A damaged one
// is an error, with a store that can be used: it holds none, and saving it
// replaces the file.
func Open(path string) (*Store, error) {
	s := &Store{path: path, r: Rates{Version: version}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read rates: %w", err)
	}
	var r Rates
	if err := json.Unmarshal(b, &r); err != nil {
		return s, fmt.Errorf("read rates %s: %w; they will be measured again", path, err)
	}
	if r.Version != version {
		return s, nil // measured in another way
	}
	if err := r.check(); err != nil {
		return s, fmt.Errorf("read rates %s: %w; they will be measured again", path, err)
	}
	s.r = r
	return s, nil
}

// check refuses numbers that no measurement gives.
func (r *Rates) check() error {
	bad := func(v float64) bool { return math.IsNaN(v) || v < 0 || v > 1e15 }
	for _, c := range r.CPU {
		for _, t := range c.Experts {
			if bad(t.PerSecond) || t.PerSecond == 0 || t.Threads < 1 {
				return fmt.Errorf("%v bytes a second with %d threads", t.PerSecond, t.Threads)
			}
		}
		if bad(c.RAM) {
			return fmt.Errorf("%v bytes a second from RAM", c.RAM)
		}
	}
	for _, d := range r.Disks {
		if bad(d.Expert) || bad(d.Random) || bad(d.Stream) || d.Size < 0 {
			return fmt.Errorf("disk reads of %v, %v and %v bytes a second", d.Expert, d.Random, d.Stream)
		}
	}
	for _, c := range r.Cards {
		if bad(c.HostToDevice) || c.HandOff < 0 {
			return fmt.Errorf("a link of %v bytes a second with %v of waiting", c.HostToDevice, c.HandOff)
		}
		if bad(c.Read) || bad(c.Multiply/productTokens) {
			return fmt.Errorf("a card that multiplies %v and %v bytes a second", c.Read, c.Multiply)
		}
	}
	return nil
}

// Rates gives all that is kept.
func (s *Store) Rates() Rates { return s.r }

// save writes the file; whoever reads it finds the old or the new one.
func (s *Store) save() error {
	b, err := json.MarshalIndent(s.r, "", "  ")
	if err != nil {
		return fmt.Errorf("save rates: %w", err)
	}
	if err := maybe.WriteFile(s.path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("save rates: %w", err)
	}
	return nil
}

func (s *Store) cpu(key string) *CPU {
	for i := range s.r.CPU {
		if s.r.CPU[i].Key == key {
			return &s.r.CPU[i]
		}
	}
	return nil
}

func (s *Store) disk(key string) *Disk {
	for i := range s.r.Disks {
		if s.r.Disks[i].Key == key {
			return &s.r.Disks[i]
		}
	}
	return nil
}

func (s *Store) card(key string) *Card {
	for i := range s.r.Cards {
		if s.r.Cards[i].Key == key {
			return &s.r.Cards[i]
		}
	}
	return nil
}
