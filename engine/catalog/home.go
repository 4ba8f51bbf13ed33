package catalog

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/adrg/xdg"
)

// DataDir is where the program keeps its data: OUTCROP_HOME if that is set,
// else the user's data folder.
func DataDir() string {
	if home := os.Getenv("OUTCROP_HOME"); home != "" {
		return home
	}
	return filepath.Join(folder("XDG_DATA_HOME", ".local/share", xdg.DataHome), "outcrop")
}

// CacheDir is where the program keeps what it can make again: below OUTCROP_HOME
// if that is set, else the user's cache folder.
func CacheDir() string {
	if home := os.Getenv("OUTCROP_HOME"); home != "" {
		return filepath.Join(home, "cache")
	}
	return filepath.Join(folder("XDG_CACHE_HOME", ".cache", xdg.CacheHome), "outcrop")
}

// folder is one of the user's folders. Where HOME is not set, as under some
// service managers, the home is that of the list of users; without one, a folder
// for this user among the temporary ones.
func folder(variable, below, usual string) string {
	home, lost := homeless()
	if !lost || os.Getenv(variable) != "" {
		return usual
	}
	return filepath.Join(home, filepath.FromSlash(below))
}

func homeless() (home string, lost bool) {
	if runtime.GOOS == "windows" || os.Getenv("HOME") != "" {
		return "", false
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) && u.HomeDir != "/" {
		if st, err := os.Stat(u.HomeDir); err == nil && st.IsDir() {
			return u.HomeDir, true
		}
	}
	return passing(), true
}

// passing is a folder for this user alone among the temporary ones, the same
// at every start. Others may make files there too: one that is not ours alone is left
// alone and a fresh one made.
var passing = sync.OnceValue(func() string {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("outcrop-home-%d", os.Getuid()))
	os.Mkdir(dir, 0o700)
	if st, err := os.Lstat(dir); err == nil && st.IsDir() && st.Mode().Perm()&0o077 == 0 {
		return dir
	}
	if fresh, err := os.MkdirTemp("", "outcrop-home-"); err == nil {
		return fresh
	}
	return dir
})

// HomeNote says where data is kept when this user has no home folder and
// nothing else says where; it is empty in every other case.
func HomeNote() string {
	home, lost := homeless()
	if !lost || os.Getenv("OUTCROP_HOME") != "" || os.Getenv("XDG_DATA_HOME") != "" || filepath.Dir(home) != filepath.Clean(os.TempDir()) {
		return ""
	}
	return fmt.Sprintf("this user has no home folder (HOME is not set), so data is kept in %s for now; OUTCROP_HOME=DIR puts it elsewhere", DataDir())
}
