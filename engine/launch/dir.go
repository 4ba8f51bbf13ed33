package launch

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
)

// PrivateDir makes a fresh directory that only this user can enter (0700),
// under XDG_RUNTIME_DIR where there is one. Its name is short: a unix socket's
// path may have no more than 107 bytes.
func PrivateDir() (string, error) {
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if base == "" || len(base) > 70 {
			continue
		}
		dir, err := os.MkdirTemp(base, "outcrop-")
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
	dir, err := os.MkdirTemp("", "outcrop-")
	if err != nil {
		return "", fmt.Errorf("make a private directory for the engine's socket: %w", err)
	}
	return dir, nil
}

func randomKey() (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make a key for the engine: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
