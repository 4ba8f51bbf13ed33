package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// Preset is a named system prompt with its sampling.
type Preset struct {
	Name     string   `json:"name"`
	System   string   `json:"system,omitempty"`
	Sampling Sampling `json:"sampling"`
}

// Presets lists them by name.
func (s *Store) Presets() ([]Preset, error) {
	rows, err := s.db.Query("SELECT name, system, sampling FROM preset ORDER BY name COLLATE NOCASE")
	if err != nil {
		return nil, fmt.Errorf("list presets: %w", err)
	}
	defer rows.Close()
	var list []Preset
	for rows.Next() {
		var p Preset
		var sampling string
		if err := rows.Scan(&p.Name, &p.System, &sampling); err != nil {
			return nil, fmt.Errorf("list presets: %w", err)
		}
		if err := json.Unmarshal([]byte(sampling), &p.Sampling); err != nil {
			return nil, fmt.Errorf("preset %q: %w", p.Name, err)
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

// SavePreset writes a preset under its name.
func (s *Store) SavePreset(p Preset) error {
	if p.Name == "" {
		return fmt.Errorf("save preset: it has no name")
	}
	sampling, err := json.Marshal(p.Sampling)
	if err != nil {
		return err
	}
	if _, err := s.db.Exec(`INSERT INTO preset(name, system, sampling) VALUES(?,?,?)
		ON CONFLICT(name) DO UPDATE SET system=excluded.system, sampling=excluded.sampling`, p.Name, p.System, string(sampling)); err != nil {
		return fmt.Errorf("save preset %q: %w", p.Name, err)
	}
	return nil
}

// DeletePreset takes one away.
func (s *Store) DeletePreset(name string) error {
	if _, err := s.db.Exec("DELETE FROM preset WHERE name=?", name); err != nil {
		return fmt.Errorf("delete preset %q: %w", name, err)
	}
	return nil
}

// Light is one first light: what passed on which device and driver, when.
type Light struct {
	Device, Driver string
	PCI            string // address of the card, "" for what is none
	Name           string // the driver's name of it, "cuda:0"; "cpu"
	Passed, Total  int    // Total 0: it did not come to an end, Text says why
	Text           string // in words
	Time           time.Time
}

// OK says whether every check passed and there were some.
func (l Light) OK() bool { return l.Total > 0 && l.Passed == l.Total }

// AddLight writes the result of a first light.
func (s *Store) AddLight(l Light) error {
	if l.Time.IsZero() {
		l.Time = s.now()
	}
	if _, err := s.db.Exec("INSERT INTO light(device, driver, pci, name, passed, total, text, created) VALUES(?,?,?,?,?,?,?,?)",
		l.Device, l.Driver, l.PCI, l.Name, l.Passed, l.Total, l.Text, l.Time.UnixMilli()); err != nil {
		return fmt.Errorf("save first light: %w", err)
	}
	return nil
}

// Lights lists first lights, the newest first.
func (s *Store) Lights(limit int) ([]Light, error) {
	rows, err := s.db.Query("SELECT device, driver, pci, name, passed, total, text, created FROM light ORDER BY id DESC LIMIT ?", limit)
	if err != nil {
		return nil, fmt.Errorf("list first lights: %w", err)
	}
	defer rows.Close()
	var list []Light
	for rows.Next() {
		var l Light
		var ms int64
		if err := rows.Scan(&l.Device, &l.Driver, &l.PCI, &l.Name, &l.Passed, &l.Total, &l.Text, &ms); err != nil {
			return nil, fmt.Errorf("list first lights: %w", err)
		}
		l.Time = at(ms)
		list = append(list, l)
	}
	return list, rows.Err()
}
