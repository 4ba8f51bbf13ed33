//go:build linux

package compute

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"

	"outcrop/gpu/kernels"
)

// The stand-in for the Level Zero loader (testdata/zestub.c) fails where its
// environment says. C reads the environment of the process's start, so every
// case is a process of its own.

const zeStubLib = "ZESTUB_LIB"

// TestLevelZeroFailures: every call that can fail becomes an error with the
// API's own name for it, of the right kind, and nothing is left behind.
func TestLevelZeroFailures(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build the Level Zero stand-in with")
	}
	lib := filepath.Join(t.TempDir(), "libze_stub.so")
	if out, err := exec.Command(gcc, "-O1", "-shared", "-fPIC", "-o", lib, "testdata/zestub.c").CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in: %v\n%s", err, out)
	}
	for _, c := range []struct {
		call, code, after string
		name              string
		kind              error
	}{
		{"", "0", "0", "", nil},
		{"zeInit", "0x78000001", "0", "ZE_RESULT_ERROR_UNINITIALIZED", ErrNoDriver},
		{"zeContextCreate", "0x70000002", "0", "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY", ErrMemory},
		{"zeCommandQueueCreate", "0x70000001", "0", "ZE_RESULT_ERROR_DEVICE_LOST", ErrLost},
		{"zeEventCreate", "0x70000003", "2", "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", ErrMemory},
		{"zeMemAllocDevice", "0x70000003", "0", "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", ErrMemory},
		{"zeMemAllocDevice", "0x78000009", "0", "ZE_RESULT_ERROR_UNSUPPORTED_SIZE", ErrTooBig},
		{"zeMemAllocHost", "0x70000002", "0", "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY", ErrMemory},
		{"zeModuleCreate", "0x70000004", "0", "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE", ErrBuild},
		{"zeKernelCreate", "0x78000011", "0", "ZE_RESULT_ERROR_INVALID_KERNEL_NAME", ErrMissing},
		{"zeKernelSetArgumentValue", "0x78000016", "0", "ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE", nil},
		{"zeCommandListClose", "0x70000001", "0", "ZE_RESULT_ERROR_DEVICE_LOST", ErrLost},
		{"zeCommandListAppendLaunchKernel", "0x70000001", "1", "ZE_RESULT_ERROR_DEVICE_LOST", ErrLost},
		{"zeCommandListAppendMemoryCopy", "0x70000003", "0", "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", ErrMemory},
		{"zeCommandQueueExecuteCommandLists", "0x70000001", "0", "ZE_RESULT_ERROR_DEVICE_LOST", ErrLost},
		{"zeCommandQueueSynchronize", "0x70000001", "0", "ZE_RESULT_ERROR_DEVICE_LOST", ErrLost},
		{"zeEventHostSynchronize", "0x70000001", "0", "ZE_RESULT_ERROR_DEVICE_LOST", ErrLost},
	} {
		t.Run(c.call+c.code, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestLevelZeroChild$", "-test.v")
			cmd.Env = append(os.Environ(), zeStubLib+"="+lib, "ZESTUB_FAIL="+c.call, "ZESTUB_CODE="+c.code, "ZESTUB_AFTER="+c.after)
			out, err := cmd.CombinedOutput()
			text := string(out)
			want := []string{"error: none", "left: 0"}
			if c.call != "" {
				want = []string{c.call + ": " + c.name, "left: 0"}
				if c.kind != nil {
					want = append(want, "kind: "+c.kind.Error()+"\n")
				}
				if c.kind == ErrBuild {
					want = append(want, "stub build log")
				}
			}
			for _, w := range want {
				if err != nil || !strings.Contains(text, w) {
					t.Errorf("%v; want %q in\n%s", err, w, text)
				}
			}
		})
	}
}

// TestLevelZeroChild does everything once with the stand-in, and says what came
// of it.
func TestLevelZeroChild(t *testing.T) {
	lib := os.Getenv(zeStubLib)
	if lib == "" {
		t.Skip("is run by TestLevelZeroFailures")
	}
	err := zeEverything(lib)
	fmt.Printf("error: %v\n", or(err, "none"))
	for _, k := range []error{ErrNoDriver, ErrMemory, ErrTooBig, ErrBuild, ErrMissing, ErrLost} {
		if errors.Is(err, k) {
			fmt.Printf("kind: %v\n", k)
		}
	}
	ref, err := purego.Dlopen(lib, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	var live func() int32
	purego.RegisterLibFunc(&live, ref, "zestub_live")
	fmt.Printf("left: %d\n", live())
}

func or(err error, text string) string {
	if err == nil {
		return text
	}
	return err.Error()
}

func zeEverything(lib string) (err error) {
	drv := zeDriver{func() (*zeAPI, error) { return openZe(lib) }}
	infos, err := drv.Devices()
	if err != nil {
		return err
	}
	i := infos[0]
	if i.Name != "stub card" || i.Vendor != 0x8086 || i.Memory != 16<<30 || i.MaxAlloc != 4<<30 || i.Units != 32 ||
		i.MaxGroup != 1024 || i.Local != 65536 || i.Features.Intel != 8 || i.API != "Level Zero 1.3" {
		return fmt.Errorf("the device reads %#v", i)
	}
	d, err := Open(drv, i, Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	b, err := d.Alloc(1 << 16)
	if err != nil {
		return err
	}
	h, err := d.Host(1 << 16)
	if err != nil {
		return err
	}
	p, err := d.Load(kernels.Light())
	if err != nil {
		return err
	}
	k, err := p.Kernel("light_add")
	if err != nil {
		return err
	}
	launch := func(q *Queue) error { return q.Launch(k, Dim{X: 2}, Dim{X: 64}, Mem(b), Int(9), Int(1)) }
	s, err := d.Record(launch)
	if err != nil {
		return err
	}
	want, got := bytes.Repeat([]byte("rock"), 100), make([]byte, 400)
	err = d.Do(func(q *Queue) error {
		for _, op := range []func() error{
			func() error { return q.Write(b, 0, want) },
			func() error { return launch(q) },
			func() error { return q.Replay(s) },
			func() error { return q.Fill(b, 400, 7, 1) },
			func() error { return q.ReadHost(h, 0, b, 0, 400) },
			func() error { return q.Read(got, b, 0) },
		} {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && (!bytes.Equal(got, want) || !bytes.Equal(h.Bytes()[:400], want)) {
		return errors.New("copies did not arrive")
	}
	return err
}
