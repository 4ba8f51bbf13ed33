package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// file is the JSON of an export: whole conversations with every branch.
type file struct {
	Format        string       `json:"format"` // fileFormat
	Version       int          `json:"version"`
	Written       time.Time    `json:"written"`
	Conversations []exportItem `json:"conversations"`
}

type exportItem struct {
	Conversation
	Messages []Message `json:"messages"`
}

const (
	fileFormat  = "outcrop conversations"
	fileVersion = 1
	// importLimit bounds what one import reads.
	importLimit = 256 << 20
)

// ExportJSON writes conversations with all their branches; no ids means all.
func (s *Store) ExportJSON(w io.Writer, ids ...int64) error {
	var list []Conversation
	if len(ids) == 0 {
		all, err := s.Conversations()
		if err != nil {
			return err
		}
		list = all
	}
	for _, id := range ids {
		c, err := s.Conversation(id)
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	f := file{Format: fileFormat, Version: fileVersion, Written: s.now().UTC().Truncate(time.Second)}
	for _, c := range list {
		m, err := s.Messages(c.ID)
		if err != nil {
			return err
		}
		f.Conversations = append(f.Conversations, exportItem{c, m})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(f); err != nil {
		return fmt.Errorf("export conversations: %w", err)
	}
	return nil
}

// Import reads an export and adds its conversations as new ones; all of them
// or, after an error, none.
func (s *Store) Import(r io.Reader) (added int, err error) {
	var f file
	if err := json.NewDecoder(io.LimitReader(r, importLimit)).Decode(&f); err != nil {
		return 0, fmt.Errorf("import conversations: not a JSON export of Outcrop: %w", err)
	}
	if f.Format != fileFormat {
		return 0, fmt.Errorf("import conversations: format is %q, want %q", f.Format, fileFormat)
	}
	if f.Version < 1 || f.Version > fileVersion {
		return 0, fmt.Errorf("import conversations: version is %d, this program reads 1 to %d", f.Version, fileVersion)
	}
	err = s.tx(func(tx *sql.Tx) error {
		for i, item := range f.Conversations {
			if err := importOne(tx, item); err != nil {
				return fmt.Errorf("conversation %d of the file: %w", i+1, err)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("import conversations: %w", err)
	}
	return len(f.Conversations), nil
}

func importOne(tx *sql.Tx, item exportItem) error {
	sampling, err := json.Marshal(item.Sampling)
	if err != nil {
		return err
	}
	r, err := tx.Exec(`INSERT INTO conversation(title, named, system, sampling, preset, pack, draft, leaf, created, updated)
		VALUES(?,?,?,?,?,?,?,0,?,?)`, item.Title, item.Named, item.System, string(sampling), item.Preset, item.Pack, item.Draft,
		item.Created.UnixMilli(), item.Updated.UnixMilli())
	if err != nil {
		return err
	}
	id, err := r.LastInsertId()
	if err != nil {
		return err
	}
	ids := map[int64]int64{0: 0}
	for _, m := range item.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("message %d has role %q, want user or assistant", m.ID, m.Role)
		}
		if _, twice := ids[m.ID]; twice {
			return fmt.Errorf("message id %d stands there twice", m.ID)
		}
		parent, ok := ids[m.Parent]
		if !ok {
			return fmt.Errorf("message %d follows %d, which does not stand before it", m.ID, m.Parent)
		}
		old := m.ID
		m.Conversation, m.Parent = id, parent
		if ids[old], err = insertMessage(tx, m); err != nil {
			return err
		}
	}
	_, err = tx.Exec("UPDATE conversation SET leaf=? WHERE id=?", ids[item.Leaf], id)
	return err
}

// ExportMarkdown writes the branch shown as a readable page.
func (s *Store) ExportMarkdown(w io.Writer, id int64) error {
	c, err := s.Conversation(id)
	if err != nil {
		return err
	}
	list, err := s.Messages(id)
	if err != nil {
		return err
	}
	var b strings.Builder
	title := c.Title
	if title == "" {
		title = "Conversation"
	}
	fmt.Fprintf(&b, "# %s\n\n%s", title, c.Created.Format("2006-01-02 15:04"))
	if c.Pack != "" {
		fmt.Fprintf(&b, " · %s", c.Pack)
	}
	b.WriteString("\n")
	if c.System != "" {
		fmt.Fprintf(&b, "\n## System\n\n%s\n", c.System)
	}
	for _, m := range NewTree(list).Path(c.Leaf) {
		switch m.Role {
		case "user":
			fmt.Fprintf(&b, "\n## You\n\n%s\n", m.Content)
		default:
			name := m.Pack
			if name == "" {
				name = "Answer"
			}
			fmt.Fprintf(&b, "\n## %s\n\n", name)
			if m.Reasoning != "" {
				fmt.Fprintf(&b, "> %s\n\n", strings.ReplaceAll(m.Reasoning, "\n", "\n> "))
			}
			fmt.Fprintf(&b, "%s\n", m.Content)
			if m.Error != "" {
				fmt.Fprintf(&b, "\n*%s*\n", m.Error)
			}
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("export conversation %d: %w", id, err)
	}
	return nil
}
