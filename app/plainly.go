package app

import "strings"

// plainly is an error as a person reads it: those of the history that say too
// little get words of ours. The marks are SQLite's texts of SQLITE_FULL and
// SQLITE_READONLY (sqlite3.h).
func plainly(err error) string {
	switch s := err.Error(); {
	case strings.Contains(s, "database or disk is full"):
		return tr("The disk that holds the conversations is full. Free some room and do it again; what stands in the field is kept.")
	case strings.Contains(s, "attempt to write a readonly database"):
		return tr("The conversations cannot be written: their file or its folder is read-only.")
	}
	return sentence(err)
}
