package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// migrations bring a file from version i to i+1; the number of steps done is
// the file's user_version. A released step is never edited, only followed.
var migrations = []string{
	`CREATE TABLE conversation (
		id       INTEGER PRIMARY KEY AUTOINCREMENT,
		title    TEXT NOT NULL DEFAULT '',
		named    INTEGER NOT NULL DEFAULT 0,  -- 1: the person chose the title
		system   TEXT NOT NULL DEFAULT '',
		sampling TEXT NOT NULL DEFAULT '{}',  -- JSON of Sampling
		preset   TEXT NOT NULL DEFAULT '',
		pack     TEXT NOT NULL DEFAULT '',
		draft    TEXT NOT NULL DEFAULT '',
		leaf     INTEGER NOT NULL DEFAULT 0,  -- last message of the branch shown
		created  INTEGER NOT NULL,            -- unix milliseconds, as all times here
		updated  INTEGER NOT NULL,
		deleted  INTEGER NOT NULL DEFAULT 0   -- when; 0: not
	);
	CREATE INDEX conversation_updated ON conversation(deleted, updated DESC);
	CREATE TABLE message (
		id           INTEGER PRIMARY KEY AUTOINCREMENT,
		conversation INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
		parent       INTEGER NOT NULL DEFAULT 0,  -- 0: first of its branch
		role         TEXT NOT NULL,
		content      TEXT NOT NULL,
		reasoning    TEXT NOT NULL DEFAULT '',
		pack         TEXT NOT NULL DEFAULT '',
		finish       TEXT NOT NULL DEFAULT '',    -- stop, length, context, cancelled, error; '' while it is written
		error        TEXT NOT NULL DEFAULT '',
		stats        TEXT NOT NULL DEFAULT '{}',  -- JSON of Stats
		created      INTEGER NOT NULL
	);
	CREATE INDEX message_of ON message(conversation, id);
	CREATE VIRTUAL TABLE message_text USING fts5(content, content='message', content_rowid='id', tokenize='trigram');
	CREATE TRIGGER message_added AFTER INSERT ON message BEGIN
		INSERT INTO message_text(rowid, content) VALUES (new.id, new.content);
	END;
	CREATE TRIGGER message_gone AFTER DELETE ON message BEGIN
		INSERT INTO message_text(message_text, rowid, content) VALUES ('delete', old.id, old.content);
	END;
	CREATE TRIGGER message_changed AFTER UPDATE OF content ON message BEGIN
		INSERT INTO message_text(message_text, rowid, content) VALUES ('delete', old.id, old.content);
		INSERT INTO message_text(rowid, content) VALUES (new.id, new.content);
	END;
	CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);
	CREATE TABLE preset (
		name     TEXT PRIMARY KEY,
		system   TEXT NOT NULL DEFAULT '',
		sampling TEXT NOT NULL DEFAULT '{}'
	);`,
	`CREATE TABLE light (
		id      INTEGER PRIMARY KEY AUTOINCREMENT,
		device  TEXT NOT NULL,
		driver  TEXT NOT NULL,
		passed  INTEGER NOT NULL,
		total   INTEGER NOT NULL,
		text    TEXT NOT NULL,
		created INTEGER NOT NULL
	);`,
	`ALTER TABLE light ADD COLUMN pci TEXT NOT NULL DEFAULT '';  -- address of the card; '' for the CPU and before version 3
	ALTER TABLE light ADD COLUMN name TEXT NOT NULL DEFAULT '';  -- the driver's name of it, "cuda:0"; "cpu" for the CPU
	UPDATE light SET name = 'cpu';  -- until then the window tested nothing else`,
}

func (s *Store) migrate() error {
	var have int
	if err := s.db.QueryRow("PRAGMA user_version").Scan(&have); err != nil {
		if damaged(err) {
			return fmt.Errorf("%w: %s: %v", ErrDamaged, s.path, err)
		}
		return fmt.Errorf("open history %s: %w", s.path, err)
	}
	switch {
	case have > len(migrations):
		return fmt.Errorf("%w: %s has version %d, this program knows %d; use the newer program, or choose another data folder in Settings",
			ErrNewer, s.path, have, len(migrations))
	case have == len(migrations):
		return nil
	}
	if have > 0 {
		if err := s.backup(have); err != nil {
			return err
		}
	}
	// The version is read again inside the transaction: another copy of the
	// program may have been faster.
	err := s.tx(func(tx *sql.Tx) error {
		if err := tx.QueryRow("PRAGMA user_version").Scan(&have); err != nil {
			return err
		}
		for ; have < len(migrations); have++ {
			if _, err := tx.Exec(migrations[have]); err != nil {
				return fmt.Errorf("step %d: %w", have+1, err)
			}
		}
		_, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", len(migrations)))
		return err
	})
	if err != nil {
		return fmt.Errorf("bring history %s up to date: %w", s.path, err)
	}
	return nil
}

// backup copies the file as it was, once a version.
func (s *Store) backup(version int) error {
	to := fmt.Sprintf("%s.before-v%d", s.path, version+1)
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("back up history: %w", err)
	}
	if _, err := s.db.Exec("VACUUM INTO ?", to); err != nil {
		return fmt.Errorf("back up history to %s: %w", to, err)
	}
	return nil
}
