// Package store keeps conversations, presets and settings in one SQLite file.
//
// It owns the file's shape, its migrations and its safety: a write-ahead log
// flushed at each commit, so that a kill at any moment leaves every
// acknowledged change readable; a busy timeout, so that two copies of the
// program may use one file; a backup before every migration. It knows nothing
// of windows or engines.
package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// Store is an open file. Its methods may be called from any goroutine.
type Store struct {
	db   *sql.DB
	path string
	now  func() time.Time
}

// ErrDamaged says that the file is no readable database. SetAside moves it
// away so that a new one can be begun.
var ErrDamaged = errors.New("the history file is damaged")

// ErrNewer says that a newer version of the program wrote the file.
var ErrNewer = errors.New("the history file was written by a newer version")

// ErrNone says that what was asked for is not there.
var ErrNone = errors.New("not found")

// Open opens the file at path, creates it and its folder where missing, and
// brings an older one up to date after copying it beside itself.
func Open(path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	// What was said is for this user only, whatever the folder allows; SQLite
	// gives its log the mode of the file. An error here is one of opening, too.
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		f.Close()
	} else if !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("open history: %w", err) // SQLite would not say why
	} else if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o077 != 0 {
		os.Chmod(path, st.Mode().Perm()&^0o077)
	}
	// FULL flushes the log at each commit: a commit outlives even a power cut.
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
	}}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("open history %s: %w", path, err)
	}
	db.SetMaxOpenConns(1) // one connection: no waiting for ourselves
	s := &Store{db: db, path: path, now: time.Now}
	if err := s.migrate(); err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the file and folds the log into it.
func (s *Store) Close() error {
	s.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)") // a failure only leaves the log beside the file
	return s.db.Close()
}

// Path is where the file lies.
func (s *Store) Path() string { return s.path }

// SetAside renames a damaged file and its log, and says where it is now.
func SetAside(path string) (string, error) {
	to := fmt.Sprintf("%s.damaged-%s", path, time.Now().Format("20060102-150405"))
	if err := os.Rename(path, to); err != nil {
		return "", fmt.Errorf("set the damaged history aside: %w", err)
	}
	for _, ext := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+ext, to+ext); err != nil && !errors.Is(err, os.ErrNotExist) {
			return to, fmt.Errorf("set the damaged history's log aside: %w", err)
		}
	}
	return to, nil
}

func damaged(err error) bool {
	s := err.Error()
	return strings.Contains(s, "not a database") || strings.Contains(s, "malformed")
}

func (s *Store) stamp() int64 { return s.now().UnixMilli() }

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// tx runs f in one transaction.
func (s *Store) tx(f func(*sql.Tx) error) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		tx.Rollback()
		return err
	}
	return tx.Commit()
}

// Setting reads the setting of a key into v (a pointer) and says whether it
// was there; v is untouched when it was not.
func (s *Store) Setting(key string, v any) (bool, error) {
	var text string
	err := s.db.QueryRow("SELECT value FROM setting WHERE key = ?", key).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read setting %s: %w", key, err)
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return false, fmt.Errorf("read setting %s: %w", key, err)
	}
	return true, nil
}

// SetSetting writes a setting; nil takes it away, so that the default holds.
func (s *Store) SetSetting(key string, v any) error {
	if v == nil {
		if _, err := s.db.Exec("DELETE FROM setting WHERE key = ?", key); err != nil {
			return fmt.Errorf("reset setting %s: %w", key, err)
		}
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write setting %s: %w", key, err)
	}
	if _, err := s.db.Exec(`INSERT INTO setting(key, value) VALUES(?, ?)
		ON CONFLICT(key) DO UPDATE SET value = excluded.value`, key, string(text)); err != nil {
		return fmt.Errorf("write setting %s: %w", key, err)
	}
	return nil
}
