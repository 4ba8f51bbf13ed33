//go:build unix

package engine

import (
	"bufio"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A process that is killed while it saves profiles leaves one that can be
// read: 50 times with the tag slow or OUTCROP_SLOW=1, else a few.
func TestProfileSurvivesKill(t *testing.T) {
	times := 3
	if slowTests || os.Getenv("OUTCROP_SLOW") != "" {
		times = 50
	}
	m := starterModel(t, Options{Threads: 1})
	path := filepath.Join(t.TempDir(), "profile.json")
	read := 0
	// On a busy machine the first few may be killed before they have saved anything.
	n := 0
	for ; n < times || read == 0 && n < 50; n++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProfileChild$")
		cmd.Env = append(os.Environ(), "OUTCROP_PROFILE="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadString('\n') // it saves from now on
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
		cmd.Process.Kill()
		cmd.Wait()
		switch err := m.LoadProfile(path); {
		case err == nil:
			read++
		case !errors.Is(err, fs.ErrNotExist) || read > 0:
			t.Fatalf("after a kill: %v", err)
		}
	}
	if read == 0 {
		t.Error("no profile was ever saved")
	}
	// What is left behind of unfinished files must not pile up for ever.
	if e, _ := os.ReadDir(filepath.Dir(path)); len(e) > n+1 {
		t.Errorf("%d files are left after %d kills", len(e), n)
	}
}

// TestProfileChild saves profiles without end; alone it does nothing.
func TestProfileChild(t *testing.T) {
	path := os.Getenv("OUTCROP_PROFILE")
	if path == "" {
		t.Skip("only for TestProfileSurvivesKill")
	}
	m := starterModel(t, Options{Threads: 1})
	os.Stdout.WriteString("saving\n")
	for i := 0; ; i++ {
		m.heat.touch(0, i%len(m.heat.layers[0]), 1)
		if err := m.SaveProfile(path); err != nil {
			t.Fatal(err)
		}
	}
}
