//go:build slow && linux

package ops_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOclgrind runs kernels in an interpreter that sees reads and writes out of
// bounds and races between work-items. It is slow, and version 21.10 does not
// know what newer clang makes of products and attention (a marker for restrict),
// so norms, rounding, rows, routing, drawing and the delta net are what it checks.
func TestOclgrind(t *testing.T) {
	const lib = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
	if _, err := os.Stat(lib); err != nil {
		t.Skip("Oclgrind is not installed (Debian: apt install oclgrind)")
	}
	if os.Getenv("OCLGRIND_CHECK_API") != "" {
		t.Skip("is the child")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^(TestNorm|TestNotFinite|TestSmallRows|TestRoute|TestSampleSmall|TestDeltaSmall)$", "-test.v")
	cmd.Env = append(os.Environ(), "OCL_ICD_VENDORS="+lib, "OCLGRIND_DATA_RACES=1", "OCLGRIND_CHECK_API=1", "OUTCROP_TEST_GPU=")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || strings.Count(text, "--- PASS") < 12 {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, bad := range []string{"Invalid read", "Invalid write", "data race", "runtime error detected", "FATAL"} {
		if strings.Contains(text, bad) {
			t.Errorf("Oclgrind reports %q:\n%s", bad, text)
		}
	}
}
