package app

import (
	"errors"
	"net"
	"strings"
)

// plainly is an error as a person reads it: those of the history and of networks
// that say too little, or in too technical words, get words of ours. The marks are SQLite's texts of SQLITE_FULL and
// SQLITE_READONLY (sqlite3.h).
func plainly(err error) string {
	var name *net.DNSError
	if errors.As(err, &name) {
		return tr("%s cannot be found. See whether this computer is online, then try again.", name.Name)
	}
	switch s := err.Error(); {
	case strings.Contains(s, "database or disk is full"):
		return tr("The disk that holds the conversations is full. Free some room and do it again; what stands in the field is kept.")
	case strings.Contains(s, "attempt to write a readonly database"):
		return tr("The conversations cannot be written: their file or its folder is read-only.")
	}
	return sentence(err)
}
