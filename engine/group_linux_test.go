package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// group is a control group of the memory controller made for a test.
type group struct {
	t   *testing.T
	dir string
	v2  bool
}

// newGroup makes a group that may use limit bytes and no swap. It skips the
// test where the system lets us make none.
func newGroup(t *testing.T, limit int64) *group {
	t.Helper()
	name := fmt.Sprintf("outcrop-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	var why []string
	try := func(base string, v2 bool) *group {
		g := &group{t: t, dir: filepath.Join(base, name), v2: v2}
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			why = append(why, err.Error())
			return nil
		}
		file, swap, top := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.FormatInt(limit, 10)
		none := top // version 1 limits RAM and swap together
		if v2 {
			file, swap, none = "memory.max", "memory.swap.max", "0"
		}
		if err := os.WriteFile(filepath.Join(g.dir, file), []byte(top), 0o644); err != nil {
			why = append(why, err.Error())
			os.Remove(g.dir)
			return nil
		}
		_ = os.WriteFile(filepath.Join(g.dir, swap), []byte(none), 0o644)
		t.Cleanup(func() {
			for range 50 { // processes that just ended may still be leaving
				if os.Remove(g.dir) == nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Logf("the group %s could not be removed", g.dir)
		})
		return g
	}
	if g := try("/sys/fs/cgroup/memory", false); g != nil {
		return g
	}
	bases := []string{"/sys/fs/cgroup"}
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		if _, own, ok := strings.Cut(string(b), "0::"); ok {
			// A group delegated to us, as by systemd-run --user --scope -p Delegate=yes.
			bases = append(bases, filepath.Join("/sys/fs/cgroup", strings.TrimSpace(own)))
		}
	}
	for _, base := range bases {
		enableMemory(base)
		if g := try(base, true); g != nil {
			return g
		}
	}
	t.Skipf("no control group can be made here (%s); run as root, or in systemd-run --user --scope -p Delegate=yes", strings.Join(why, "; "))
	return nil
}

// enableMemory lets groups below base have limits. A group with processes
// cannot, so ours moves into one below it first.
func enableMemory(base string) {
	control := filepath.Join(base, "cgroup.subtree_control")
	if b, err := os.ReadFile(control); err != nil || slices.Contains(strings.Fields(string(b)), "memory") {
		return
	}
	if os.WriteFile(control, []byte("+memory"), 0o644) == nil {
		return
	}
	leaf := filepath.Join(base, "outcrop-test-self")
	if os.Mkdir(leaf, 0o755) == nil || os.IsExist(os.Mkdir(leaf, 0o755)) {
		_ = os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644)
		_ = os.WriteFile(control, []byte("+memory"), 0o644)
	}
}

func (g *group) add(pid int) {
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// kills is how many processes of the group the kernel has killed for memory.
func (g *group) kills() int {
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		g.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(v))
			return n
		}
	}
	g.t.Skip("this kernel does not count kills in ", file)
	return 0
}
