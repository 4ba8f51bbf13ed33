package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestMain lets the test binary be the program that is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("OUTCROP_TEST_WRITER"); path != "" {
		write(path)
		return
	}
	os.Exit(m.Run())
}

// write adds messages for ever and says the id of each after its commit.
func write(path string) {
	s, err := Open(path)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	c, err := s.NewConversation(Conversation{Title: "w"})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	n, _ := strconv.Atoi(os.Getenv("OUTCROP_TEST_COUNT"))
	for i := 0; n == 0 || i < n; i++ {
		m, err := s.Add(Message{Conversation: c.ID, Role: "user", Content: strings.Repeat("text ", 50) + strconv.Itoa(i)})
		if err == nil {
			m.Content += " and more"
			err = s.Save(m)
		}
		if err == nil {
			err = s.SetSetting("last", m.ID)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(m.ID)
	}
	s.Close()
}

func writer(path string, count int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "OUTCROP_TEST_WRITER="+path, "OUTCROP_TEST_COUNT="+strconv.Itoa(count))
	return cmd
}

// TestKilledWhileWriting kills a writer at random moments: every message that
// it said was written must be readable afterwards, and the file sound.
func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	rounds := 50
	if testing.Short() {
		rounds = 8
	}
	r := rand.New(rand.NewPCG(1, 2))
	said := map[int64]bool{}
	for round := range rounds {
		cmd := writer(path, 0)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for left := r.IntN(12); left >= 0 && lines.Scan(); left-- {
			id, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Fatalf("round %d: the writer says %q", round, lines.Text())
			}
			said[id] = true
		}
		// Burn an unpredictable little while, so that the kill falls anywhere
		// in a transaction.
		for range r.IntN(200_000) {
			_ = r.Uint64()
		}
		cmd.Process.Kill()
		for lines.Scan() {
			if id, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				said[id] = true
			}
		}
		cmd.Wait()
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var sound string
	if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Fatalf("integrity check: %q, %v", sound, err)
	}
	if _, err := s.db.Exec("INSERT INTO message_text(message_text) VALUES('integrity-check')"); err != nil {
		t.Errorf("the search index is not sound: %v", err)
	}
	have := map[int64]bool{}
	list, err := s.Conversations()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		ms, err := s.Messages(c.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			have[m.ID] = true
			if said[m.ID] && !strings.HasSuffix(m.Content, " and more") {
				t.Errorf("message %d was said to be saved and is not", m.ID)
			}
		}
	}
	for id := range said {
		if !have[id] {
			t.Errorf("message %d was said to be written and is gone", id)
		}
	}
	t.Logf("%d kills, %d messages acknowledged, %d found", rounds, len(said), len(have))
}

// TestTwoCopies writes from three processes at once.
func TestTwoCopies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	const each = 25
	var cmds []*exec.Cmd
	for range 3 {
		cmd := writer(path, each)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if strings.Contains(out.String(), "error") {
				t.Errorf("a writer says: %s", out.String())
			}
		}()
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a writer ended with %v", err)
		}
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var n int
	if err := s.db.QueryRow("SELECT count(*) FROM message").Scan(&n); err != nil || n != 3*each {
		t.Errorf("got %d messages, %v, want %d", n, err, 3*each)
	}
}
