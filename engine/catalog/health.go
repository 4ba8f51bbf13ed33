package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Status is how the files of a pack are.
type Status string

// The states of a pack's files.
const (
	Good    Status = "good"    // as they were when the pack was added
	Changed Status = "changed" // another size or time: read the header again
	Gone    Status = "gone"    // not there, or not readable
	Odd     Status = "odd"     // there, and not usable by this version
)

// Health is the state of a pack's files, with a sentence.
type Health struct {
	Status Status `json:"status"`
	Text   string `json:"text"`
}

// Check looks at the files of a pack; it reads no data.
func Check(e Entry) Health {
	if e.Demo {
		return Health{Good, "part of the program"}
	}
	h := Health{Good, "unchanged since it was added"}
	for _, f := range e.Files {
		st, err := os.Stat(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Health{Gone, fmt.Sprintf("the file %s is not there any more; put it back, or remove the pack from the list", f.Path)}
		case err != nil:
			return Health{Gone, fmt.Sprintf("the file %s cannot be read: %v", f.Path, plain(err))}
		case st.Size() != f.Size:
			h = Health{Changed, fmt.Sprintf("%s has another size than when it was added (%d bytes, was %d); add it again to refresh", filepath.Base(f.Path), st.Size(), f.Size)}
		case h.Status == Good && !st.ModTime().UTC().Equal(f.Modified):
			h = Health{Changed, fmt.Sprintf("%s was written since it was added; add it again to refresh", filepath.Base(f.Path))}
		}
	}
	if h.Status == Good && e.Note != "" {
		return Health{Odd, e.Note}
	}
	return h
}
