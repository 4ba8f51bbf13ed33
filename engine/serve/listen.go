package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// ListenUnix listens on a unix socket at path. Its directory is made with mode
// 0700 when it is not there; a directory that others may write into is
// refused, since they could replace the socket. A socket that a dead engine
// left is removed; one that answers is not.
func ListenUnix(path string) (net.Listener, error) {
	// The address of a socket is a field of 108 bytes with a closing zero.
	if len(path) > 107 {
		return nil, fmt.Errorf("listen on %s: the path has %d bytes, a socket's may have 107", path, len(path))
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if runtime.GOOS != "windows" && st.Mode().Perm()&0o022 != 0 && st.Mode()&fs.ModeSticky == 0 {
		return nil, fmt.Errorf("listen on %s: others may write into %s (mode %#o); use a private directory (chmod 700)", path, dir, st.Mode().Perm())
	}
	if st, err := os.Lstat(path); err == nil {
		if st.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("listen on %s: a file is in the way and it is no socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("listen on %s: another engine answers there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listen on %s: remove the old socket: %w", path, err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// The directory may be older and open to others: the socket never is.
	if err := os.Chmod(path, 0o600); err != nil && runtime.GOOS != "windows" {
		l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// ListenTCP listens on HOST:PORT. An address that others can reach needs both
// remote (the user said so) and a key.
func ListenTCP(addr string, remote bool, key string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: want HOST:PORT, such as 127.0.0.1:8080", addr)
	}
	if !Loopback(host) {
		if !remote {
			return nil, fmt.Errorf("listen on %s: others on the network could use this engine; say --allow-remote if that is wanted, or listen on 127.0.0.1", addr)
		}
		if key == "" {
			return nil, fmt.Errorf("listen on %s: an engine that others can reach needs a key: --key or OUTCROP_KEY", addr)
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen on %s: another program listens there; %s", addr, freeNear(addr))
		}
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// Loopback says whether only this machine can reach a host name.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// freeNear names the next port that is free.
func freeNear(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	n, err := net.LookupPort("tcp", port)
	if err == nil {
		for p := n + 1; p < min(n+50, 65536); p++ {
			l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(p)))
			if err == nil {
				l.Close()
				return fmt.Sprintf("port %d is free", p)
			}
		}
	}
	return "choose another port"
}

// LoopbackHosts are the names under which a loopback server may be called.
var LoopbackHosts = []string{"localhost", "127.0.0.1", "::1"}
