package desktop

import (
	"testing"
	"time"
)

// A toolkit that does not come back must not keep the program, nor what closes.
func TestLastly(t *testing.T) {
	never, over := make(chan struct{}), make(chan struct{})
	close(over)
	for name, c := range map[string]struct {
		over     <-chan struct{}
		closeAll func()
		ends     bool
	}{
		"in good time":       {over, func() { t.Error("in good time: closed behind its back") }, false},
		"hangs":              {never, func() {}, true},
		"closing hangs, too": {never, func() { <-never }, true},
	} {
		ended, begun := false, time.Now()
		lastly(c.over, 30*time.Millisecond, c.closeAll, func(int) { ended = true })
		if ended != c.ends {
			t.Errorf("%s: the program was ended: %v", name, ended)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}
