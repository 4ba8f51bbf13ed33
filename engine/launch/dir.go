package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// PrivateDir makes a fresh directory that only this user can enter (0700),
// under XDG_RUNTIME_DIR where there is one. Its name is short: a unix socket's
// path may have no more than 107 bytes.
func PrivateDir() (string, error) {
	sweep()
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if base == "" || len(base) > 70 {
			continue
		}
		dir, err := os.MkdirTemp(base, dirPrefix)
		if err != nil {
			continue
		}
		// MkdirTemp asks for 0700, but an odd umask may have taken bits away.
		if runtime.GOOS != "windows" {
			if err := os.Chmod(dir, 0o700); err != nil {
				os.Remove(dir)
				continue
			}
		}
		return dir, nil
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return "", fmt.Errorf("make a private directory for the engine's socket: %w", err)
	}
	return dir, nil
}

// sweep removes the directories of engines that are gone: a program that was
// killed could not do it. A socket that is young may belong to an engine that
// is about to listen.
func sweep() {
	for _, p := range Running() {
		if st, err := os.Stat(p); err != nil || time.Since(st.ModTime()) < 10*time.Second {
			continue
		}
		c, err := net.DialTimeout("unix", p, time.Second)
		if err == nil {
			c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.RemoveAll(filepath.Dir(p))
		}
	}
}

// Running lists the sockets of this user's engines, those of other copies of
// the program too. Some may belong to engines that are gone.
func Running() []string {
	var out []string
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if base == "" {
			continue
		}
		es, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, e := range es {
			p := filepath.Join(base, e.Name(), socketName)
			if strings.HasPrefix(e.Name(), dirPrefix) && !slices.Contains(out, p) {
				if st, err := os.Stat(p); err == nil && st.Mode()&os.ModeSocket != 0 {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

const (
	dirPrefix  = "outcrop-"
	socketName = "engine.sock"
)

func randomKey() (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make a key for the engine: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
