//go:build unix

package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A folder given as --root is foreign input: a pipe in it must not be waited
// for, nor an endless device be read as a machine file.
func TestPipesAndDevices(t *testing.T) {
	dir := t.TempDir()
	card := filepath.Join(dir, "sys/bus/pci/devices/0000:03:00.0")
	if err := os.MkdirAll(card, 0o755); err != nil {
		t.Fatal(err)
	}
	os.MkdirAll(filepath.Join(dir, "proc"), 0o755)
	os.WriteFile(filepath.Join(card, "class"), []byte("0x030000\n"), 0o644)
	os.WriteFile(filepath.Join(card, "vendor"), []byte("0x8086\n"), 0o644)
	for _, name := range []string{"proc/meminfo", "sys/bus/pci/devices/0000:03:00.0/device", "sys/bus/pci/devices/0000:03:00.0/resource"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Skipf("no pipes here: %v", err)
		}
	}
	m, err := Detect(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if m.Host.Memory.Total.Known || m.Host.Memory.Total.Why == "" {
		t.Errorf("memory read from a pipe: %+v", m.Host.Memory.Total)
	}
	for _, name := range []string{os.DevNull, filepath.Join(dir, "proc/meminfo"), dir} {
		if err := UnpackFile(name, filepath.Join(dir, "out")); err == nil || !strings.Contains(err.Error(), "regular file") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
