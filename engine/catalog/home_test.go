package catalog

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Without HOME, data goes to the home of the list of users or to a temporary
// folder, never to /.local of the whole machine.
func TestWithoutHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("HOME is not used there")
	}
	for _, v := range []string{"HOME", "OUTCROP_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(v, "")
	}
	for _, d := range []string{DataDir(), CacheDir()} {
		if !filepath.IsAbs(d) || strings.HasPrefix(d, "/.") || filepath.Base(d) != "outcrop" {
			t.Errorf("without HOME: %s", d)
		}
	}
	if n := HomeNote(); n != "" && !strings.Contains(n, DataDir()) {
		t.Errorf("the note is %q, data is in %s", n, DataDir())
	}
	t.Setenv("OUTCROP_HOME", "/elsewhere")
	if DataDir() != "/elsewhere" || CacheDir() != filepath.Join("/elsewhere", "cache") || HomeNote() != "" {
		t.Errorf("OUTCROP_HOME is not used: %s, %s, %q", DataDir(), CacheDir(), HomeNote())
	}
	t.Setenv("OUTCROP_HOME", "")
	t.Setenv("HOME", t.TempDir())
	if HomeNote() != "" || strings.HasPrefix(DataDir(), os.TempDir()+"/outcrop-home") {
		t.Errorf("with HOME: %s, %q", DataDir(), HomeNote())
	}
}
