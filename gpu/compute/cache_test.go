package compute

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestCacheTogether: those who write and read the same modules at the same time see
// whole ones or none.
func TestCacheTogether(t *testing.T) {
	dir := t.TempDir()
	data := func(k int) []byte { return bytes.Repeat([]byte{byte(k + 1)}, 200_000+k) }
	var all sync.WaitGroup
	for w := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 20 {
				k := (i + w) % 3
				key := fmt.Sprint("ptx-", k)
				if got := readCache(dir, key); got != nil && !bytes.Equal(got, data(k)) {
					t.Errorf("%s: %d bytes that nobody wrote", key, len(got))
				}
				writeCache(dir, key, data(k))
			}
		}()
	}
	all.Wait()
	for k := range 3 {
		if got := readCache(dir, fmt.Sprint("ptx-", k)); !bytes.Equal(got, data(k)) {
			t.Errorf("module %d is not there at the end", k)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, unfinished)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCacheDamage: a damaged or cut file counts as absent; what a killed program left
// goes, what another is writing stays.
func TestCacheDamage(t *testing.T) {
	dir := t.TempDir()
	writeCache(dir, "a", []byte("some kernels"))
	file := filepath.Join(dir, "a")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-1] ^= 1
	for what, b := range map[string][]byte{"cut": whole[:len(whole)-3], "damaged": damaged, "empty": nil} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readCache(dir, "a"); got != nil {
			t.Errorf("%s: %q was taken", what, got)
		}
	}
	old, fresh := filepath.Join(dir, "new-1"), filepath.Join(dir, "new-2")
	for _, f := range []string{old, fresh} {
		if err := os.WriteFile(f, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	sweepCache(dir)
	if _, err := os.Stat(old); err == nil {
		t.Error("what a killed program left is still there")
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("what another program is writing was removed")
	}
}
