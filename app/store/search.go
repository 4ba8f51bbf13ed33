package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Hit is one place where a search found its words.
type Hit struct {
	Conversation int64
	Message      int64 // 0: the title matched
	Title        string
	Snippet      string // text around the match
	From, To     int    // the match, in bytes of Snippet
}

// Search finds text in titles and messages that are not deleted, the newest
// first. Case does not matter. Fewer than three characters are looked for
// without the index, which is made of groups of three.
func (s *Store) Search(query string, limit int) ([]Hit, error) {
	query = strings.TrimSpace(query)
	if query == "" {
		return nil, nil
	}
	like := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(query) + "%"
	hits, err := s.hits(`SELECT id, 0, title, title FROM conversation
		WHERE deleted = 0 AND title LIKE ? ESCAPE '\' ORDER BY updated DESC LIMIT ?`, query, like, limit)
	if err != nil {
		return nil, err
	}
	const from = `SELECT c.id, m.id, c.title, m.content FROM message m JOIN conversation c ON c.id = m.conversation `
	var more []Hit
	if utf8.RuneCountInString(query) >= 3 {
		match := `"` + strings.ReplaceAll(query, `"`, `""`) + `"`
		more, err = s.hits(from+`WHERE c.deleted = 0 AND m.id IN (SELECT rowid FROM message_text WHERE message_text MATCH ?)
			ORDER BY m.id DESC LIMIT ?`, query, match, limit)
	} else {
		more, err = s.hits(from+`WHERE c.deleted = 0 AND m.content LIKE ? ESCAPE '\' ORDER BY m.id DESC LIMIT ?`, query, like, limit)
	}
	if err != nil {
		return nil, err
	}
	hits = append(hits, more...)
	if len(hits) > limit {
		hits = hits[:limit]
	}
	return hits, nil
}

func (s *Store) hits(sql, query string, args ...any) ([]Hit, error) {
	rows, err := s.db.Query(sql, args...)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer rows.Close()
	var list []Hit
	for rows.Next() {
		var h Hit
		var text string
		if err := rows.Scan(&h.Conversation, &h.Message, &h.Title, &text); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		h.Snippet, h.From, h.To = snippet(text, query)
		list = append(list, h)
	}
	return list, rows.Err()
}

// snippet cuts one line of text around the first match.
func snippet(text, query string) (string, int, int) {
	text = strings.Join(strings.Fields(text), " ")
	query = strings.Join(strings.Fields(query), " ")
	at := foldIndex(text, query)
	if at < 0 {
		return cut(text, 90), 0, 0
	}
	begin := at
	for n := 0; n < 30 && begin > 0; n++ {
		_, w := utf8.DecodeLastRuneInString(text[:begin])
		begin -= w
	}
	out := text[begin:]
	from := at - begin
	if begin > 0 {
		out = "…" + out
		from += len("…")
	}
	to := from + len(query)
	return cut(out, max(90, utf8.RuneCountInString(out[:min(to, len(out))]))), from, min(to, len(out))
}

// foldIndex finds query in text whatever the case, by bytes of the same
// length only, so that positions hold.
func foldIndex(text, query string) int {
	for i := range text {
		if end := i + len(query); end <= len(text) && strings.EqualFold(text[i:end], query) {
			return i
		}
	}
	return -1
}

func cut(s string, runes int) string {
	n := 0
	for i := range s {
		if n == runes {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
