package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Sampling is how answers are drawn; nil fields mean the pack's default.
type Sampling struct {
	Temperature   *float64 `json:"temperature,omitempty"`
	TopP          *float64 `json:"top_p,omitempty"`
	TopK          *int     `json:"top_k,omitempty"`
	MinP          *float64 `json:"min_p,omitempty"`
	RepeatPenalty *float64 `json:"repeat_penalty,omitempty"`
	Presence      *float64 `json:"presence_penalty,omitempty"`
	Frequency     *float64 `json:"frequency_penalty,omitempty"`
	MaxTokens     *int     `json:"max_tokens,omitempty"`
	Seed          *int64   `json:"seed,omitempty"`
	Stop          []string `json:"stop,omitempty"`
	Thinking      *bool    `json:"thinking,omitempty"`
}

// Conversation is one chat. Leaf is the last message of the branch shown.
type Conversation struct {
	ID       int64     `json:"id"`
	Title    string    `json:"title"`
	Named    bool      `json:"named,omitempty"` // the person chose the title
	System   string    `json:"system,omitempty"`
	Sampling Sampling  `json:"sampling"`
	Preset   string    `json:"preset,omitempty"`
	Pack     string    `json:"pack,omitempty"`
	Draft    string    `json:"draft,omitempty"`
	Leaf     int64     `json:"leaf,omitempty"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
}

// Stats are the figures of one answer; zero means not known.
type Stats struct {
	Tokens     int     `json:"tokens,omitempty"`
	Prompt     int     `json:"prompt,omitempty"`
	Reused     int     `json:"reused,omitempty"`
	TokS       float64 `json:"tok_s,omitempty"`
	PromptTokS float64 `json:"prompt_tok_s,omitempty"`
	FirstMS    float64 `json:"first_ms,omitempty"`
	Drafted    int     `json:"drafted,omitempty"`
	Accepted   int     `json:"accepted,omitempty"`
	ThinkMS    float64 `json:"think_ms,omitempty"`
	Context    int     `json:"context,omitempty"`
}

// Message is one turn. Parent 0 begins a branch; several messages with one
// parent are branches.
type Message struct {
	ID           int64     `json:"id"`
	Conversation int64     `json:"-"`
	Parent       int64     `json:"parent,omitempty"`
	Role         string    `json:"role"` // user, assistant
	Content      string    `json:"content"`
	Reasoning    string    `json:"reasoning,omitempty"`
	Pack         string    `json:"pack,omitempty"`
	Finish       string    `json:"finish,omitempty"` // stop, length, context, cancelled, error; "" while it is written
	Error        string    `json:"error,omitempty"`
	Stats        Stats     `json:"stats"`
	Created      time.Time `json:"created"`
}

const conversationColumns = "id, title, named, system, sampling, preset, pack, draft, leaf, created, updated"

type scanner interface{ Scan(...any) error }

func scanConversation(r scanner) (Conversation, error) {
	var c Conversation
	var sampling string
	var created, updated int64
	if err := r.Scan(&c.ID, &c.Title, &c.Named, &c.System, &sampling, &c.Preset, &c.Pack, &c.Draft, &c.Leaf, &created, &updated); err != nil {
		return c, err
	}
	c.Created, c.Updated = at(created), at(updated)
	if err := json.Unmarshal([]byte(sampling), &c.Sampling); err != nil {
		return c, fmt.Errorf("sampling of conversation %d: %w", c.ID, err)
	}
	return c, nil
}

// Conversations lists what is not deleted, the last changed first.
func (s *Store) Conversations() ([]Conversation, error) {
	rows, err := s.db.Query("SELECT " + conversationColumns + " FROM conversation WHERE deleted = 0 ORDER BY updated DESC, id DESC")
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	defer rows.Close()
	var list []Conversation
	for rows.Next() {
		c, err := scanConversation(rows)
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

// Conversation reads one, deleted or not.
func (s *Store) Conversation(id int64) (Conversation, error) {
	c, err := scanConversation(s.db.QueryRow("SELECT "+conversationColumns+" FROM conversation WHERE id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("conversation %d: %w", id, ErrNone)
	}
	if err != nil {
		return c, fmt.Errorf("read conversation %d: %w", id, err)
	}
	return c, nil
}

// NewConversation writes a conversation and gives it back with its id.
func (s *Store) NewConversation(c Conversation) (Conversation, error) {
	sampling, err := json.Marshal(c.Sampling)
	if err != nil {
		return c, err
	}
	now := s.stamp()
	if c.Created.IsZero() {
		c.Created = at(now)
	}
	if c.Updated.IsZero() {
		c.Updated = c.Created
	}
	r, err := s.db.Exec(`INSERT INTO conversation(title, named, system, sampling, preset, pack, draft, leaf, created, updated)
		VALUES(?,?,?,?,?,?,?,?,?,?)`, c.Title, c.Named, c.System, string(sampling), c.Preset, c.Pack, c.Draft, c.Leaf,
		c.Created.UnixMilli(), c.Updated.UnixMilli())
	if err != nil {
		return c, fmt.Errorf("begin conversation: %w", err)
	}
	c.ID, err = r.LastInsertId()
	return c, err
}

// SaveConversation writes everything of c but its messages and its times.
func (s *Store) SaveConversation(c Conversation) error {
	sampling, err := json.Marshal(c.Sampling)
	if err != nil {
		return err
	}
	return s.one("save", c.ID, `UPDATE conversation SET title=?, named=?, system=?, sampling=?, preset=?, pack=?, draft=?, leaf=? WHERE id=?`,
		c.Title, c.Named, c.System, string(sampling), c.Preset, c.Pack, c.Draft, c.Leaf, c.ID)
}

// SaveDraft writes only the unsent text.
func (s *Store) SaveDraft(id int64, draft string) error {
	return s.one("save draft of", id, "UPDATE conversation SET draft=? WHERE id=?", draft, id)
}

// Delete hides a conversation; Restore shows it again.
func (s *Store) Delete(id int64) error {
	return s.one("delete", id, "UPDATE conversation SET deleted=? WHERE id=?", s.stamp(), id)
}

// Restore undoes Delete.
func (s *Store) Restore(id int64) error {
	return s.one("restore", id, "UPDATE conversation SET deleted=0 WHERE id=?", id)
}

// Purge removes for good what was deleted before t, and says how many.
func (s *Store) Purge(t time.Time) (int, error) {
	r, err := s.db.Exec("DELETE FROM conversation WHERE deleted > 0 AND deleted < ?", t.UnixMilli())
	if err != nil {
		return 0, fmt.Errorf("purge conversations: %w", err)
	}
	n, err := r.RowsAffected()
	return int(n), err
}

func (s *Store) one(what string, id int64, query string, args ...any) error {
	r, err := s.db.Exec(query, args...)
	if err != nil {
		return fmt.Errorf("%s conversation %d: %w", what, id, err)
	}
	if n, err := r.RowsAffected(); err == nil && n == 0 {
		return fmt.Errorf("%s conversation %d: %w", what, id, ErrNone)
	}
	return nil
}

// Messages reads the whole tree of a conversation, oldest first.
func (s *Store) Messages(conversation int64) ([]Message, error) {
	rows, err := s.db.Query(`SELECT id, conversation, parent, role, content, reasoning, pack, finish, error, stats, created
		FROM message WHERE conversation = ? ORDER BY id`, conversation)
	if err != nil {
		return nil, fmt.Errorf("read messages of %d: %w", conversation, err)
	}
	defer rows.Close()
	var list []Message
	for rows.Next() {
		var m Message
		var stats string
		var created int64
		if err := rows.Scan(&m.ID, &m.Conversation, &m.Parent, &m.Role, &m.Content, &m.Reasoning, &m.Pack, &m.Finish, &m.Error, &stats, &created); err != nil {
			return nil, fmt.Errorf("read messages of %d: %w", conversation, err)
		}
		m.Created = at(created)
		if err := json.Unmarshal([]byte(stats), &m.Stats); err != nil {
			return nil, fmt.Errorf("figures of message %d: %w", m.ID, err)
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

// Add writes a new message, makes it the leaf of its conversation, and gives
// it back with its id.
func (s *Store) Add(m Message) (Message, error) {
	now := s.stamp()
	if m.Created.IsZero() {
		m.Created = at(now)
	}
	err := s.tx(func(tx *sql.Tx) error {
		var err error
		if m.ID, err = insertMessage(tx, m); err != nil {
			return err
		}
		r, err := tx.Exec("UPDATE conversation SET leaf=?, updated=? WHERE id=?", m.ID, now, m.Conversation)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err == nil && n == 0 {
			return ErrNone
		}
		return nil
	})
	if err != nil {
		return m, fmt.Errorf("add message to conversation %d: %w", m.Conversation, err)
	}
	return m, nil
}

func insertMessage(tx *sql.Tx, m Message) (int64, error) {
	stats, err := json.Marshal(m.Stats)
	if err != nil {
		return 0, err
	}
	r, err := tx.Exec(`INSERT INTO message(conversation, parent, role, content, reasoning, pack, finish, error, stats, created)
		VALUES(?,?,?,?,?,?,?,?,?,?)`, m.Conversation, m.Parent, m.Role, m.Content, m.Reasoning, m.Pack, m.Finish, m.Error,
		string(stats), m.Created.UnixMilli())
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// Save rewrites the text, end and figures of a message.
func (s *Store) Save(m Message) error {
	stats, err := json.Marshal(m.Stats)
	if err != nil {
		return err
	}
	r, err := s.db.Exec(`UPDATE message SET content=?, reasoning=?, pack=?, finish=?, error=?, stats=? WHERE id=?`,
		m.Content, m.Reasoning, m.Pack, m.Finish, m.Error, string(stats), m.ID)
	if err != nil {
		return fmt.Errorf("save message %d: %w", m.ID, err)
	}
	if n, err := r.RowsAffected(); err == nil && n == 0 {
		return fmt.Errorf("save message %d: %w", m.ID, ErrNone)
	}
	return nil
}
