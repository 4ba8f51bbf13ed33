// Package computetest opens devices for tests. It is imported by tests only.
//
// Without a card that is PoCL, the OpenCL platform for processors (Debian
// package pocl-opencl-icd). OUTCROP_TEST_GPU=1 adds every card that a driver
// finds; OUTCROP_TEST_GPU=opencl,cuda only those drivers'. OUTCROP_TEST_OVERLAP=1
// sets compute.Options.Overlap.
package computetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/gpu/compute"
)

// Each runs fn as a subtest on every device, or skips with the reason that
// there is none.
func Each(t *testing.T, fn func(t *testing.T, d *compute.Device)) {
	t.Helper()
	Prepare()
	found := 0
	want := os.Getenv("OUTCROP_TEST_GPU")
	var why []string
	for _, drv := range compute.Drivers() {
		infos, err := drv.Devices()
		if err != nil {
			why = append(why, err.Error())
			continue
		}
		for _, i := range infos {
			if want != "" && want != "1" && !strings.Contains(","+want+",", ","+drv.Name()+",") {
				continue
			}
			if (want == "") != i.CPU {
				continue
			}
			found++
			t.Run(drv.Name(), func(t *testing.T) { fn(t, Open(t, drv, i)) })
		}
	}
	if found == 0 {
		t.Skip("no device to test on (Debian: apt install pocl-opencl-icd): " + strings.Join(why, "; "))
	}
}

// Open opens a device and closes it at the end of the test.
func Open(t testing.TB, drv compute.Driver, i compute.Info) *compute.Device {
	t.Helper()
	d, err := compute.Open(drv, i, compute.Options{Cache: os.Getenv("OUTCROP_TEST_CACHE"), Plain: i.CPU, Overlap: os.Getenv("OUTCROP_TEST_OVERLAP") != ""})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

// Prepare keeps PoCL's compile cache out of the home folder, and that of each
// test program to itself: packages are tested side by side, and a compiler that
// has mapped a file of the cache dies of SIGBUS when another program writes it
// anew, on a thread of PoCL's that Go knows nothing of.
func Prepare() {
	if os.Getenv("POCL_CACHE_DIR") == "" {
		os.Setenv("POCL_CACHE_DIR", filepath.Join(os.TempDir(), "outcrop-pocl", filepath.Base(os.Args[0])))
	}
}
