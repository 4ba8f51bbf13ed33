package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"outcrop/engine/guard"
	"outcrop/engine/token"
)

// Tests of real memory pressure: the engine runs as a process of its own in a
// control group with a limit, beside a second one that takes memory. They
// take minutes: the build tag slow or OUTCROP_SLOW=1 runs them, OUTCROP_PLOTS
// names a folder for the recorded readings.

func slow(t *testing.T) {
	t.Helper()
	if !slowTests && os.Getenv("OUTCROP_SLOW") == "" {
		t.Skip("takes minutes and a control group with a limit; the tag slow or OUTCROP_SLOW=1 runs it")
	}
}

// child is a process of a test: this test program again.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // its standard output, closed at its end
	err   *strings.Builder
}

// start begins a child in the group; it waits for a line before it does
// anything, so that all its memory is the group's.
func (g *group) start(role string, env ...string) *child {
	t := g.t
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPressureChild$", "-test.timeout=30m")
	cmd.Env = append(append(os.Environ(), "OUTCROP_CHILD="+role, "GOMEMLIMIT=off"), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c := &child{cmd: cmd, lines: make(chan string, 1<<16), err: &strings.Builder{}}
	cmd.Stderr = c.err
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			c.lines <- s.Text()
		}
		close(c.lines)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	g.add(cmd.Process.Pid)
	c.say(t, "go")
	return c
}

func (c *child) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		t.Fatalf("the child takes no orders any more: %v\n%s", err, c.err)
	}
}

// TestPressureChild is what children run; alone it does nothing.
func TestPressureChild(t *testing.T) {
	role := os.Getenv("OUTCROP_CHILD")
	if role == "" {
		t.Skip("only for other tests of this file")
	}
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	switch role {
	case "engine":
		childEngine(t, in)
	case "ballast":
		childBallast(t, in)
	case "floor":
		childFloor(t)
	}
}

// childEngine decodes until it is told to stop, or so many tokens, and prints
// what it reads and chooses.
func childEngine(t *testing.T, in *bufio.Scanner) {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// As engine/launch does: this process goes first.
	os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0o644)
	p, err := OpenPack(os.Getenv("PACK"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := Load(t.Context(), p, Options{Draft: "off", Threads: 1, FileTier: number("FILE") != 0, ExpertRAM: number("COPIES"), Context: int(number("CONTEXT"))})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	drive(m, rand.New(rand.NewPCG(3, 3)), 0.5, -1)
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var out sync.Mutex
	say := func(format string, a ...any) {
		out.Lock()
		fmt.Printf(format+"\n", a...)
		out.Unlock()
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Watch(ctx, m, WatchOptions{
			Root:   os.DirFS("/"),
			Config: guard.Config{RAMFloor: number("FLOOR"), Enabled: number("GUARD") != 0},
			OnReading: func(r guard.Reading, d guard.Decision) {
				b, _ := json.Marshal(look{r.RAMTotal.N, r.RAMAvailable.N, r.Held, m.tele.used.Load(), int(d.Step), d.Level.String(), d.Words})
				say("look %s", b)
			},
		})
	}()
	told := make(chan struct{})
	go func() {
		in.Scan()
		close(told)
	}()
	say("ready")
	id := token.ID(1)
	most := int(number("TOKENS"))
	var ids []token.ID
	for len(ids) < most || most == 0 {
		select {
		case <-told:
			most = len(ids)
			continue
		default:
		}
		if s.Tokens() == m.Context() {
			s.Reset()
		}
		if err := s.advance(t.Context(), []token.ID{id}, 1); err != nil {
			say("failed %v", err)
			break
		}
		id = argmax(s.fresh)
		ids = append(ids, id)
		say("id %d", id)
	}
	stop()
	<-ended
	say("done %d", len(ids))
}

// look is one reading of the guard on its way to the test.
type look struct {
	Total, Available, Held, Tokens int64
	Step                           int
	Level                          string
	Words                          []string
}

// childBallast takes memory that cannot be taken back: "grow MiB MiB/s", "free".
func childBallast(t *testing.T, in *bufio.Scanner) {
	var held [][]byte
	for in.Scan() {
		f := strings.Fields(in.Text())
		switch f[0] {
		case "grow":
			n, _ := strconv.Atoi(f[1])
			rate, _ := strconv.Atoi(f[2])
			begin := time.Now()
			for i := range n {
				b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
				if err != nil {
					t.Fatal(err)
				}
				for j := 0; j < len(b); j += 4096 {
					b[j] = byte(i) | 1
				}
				held = append(held, b)
				fmt.Printf("at %d\n", len(held))
				time.Sleep(time.Until(begin.Add(time.Duration(i+1) * time.Second / time.Duration(rate))))
			}
		case "free":
			for _, b := range held {
				unix.Munmap(b)
			}
			held = nil
			fmt.Println("at 0")
		}
	}
}

// pressureShape is the pack of these tests: 302 MiB of experts.
var pressureShape = moeShape{layers: 16, experts: 32, used: 4, dim: 768, ff: 512}

// pressurePack makes it, on a disk: a file system in RAM would not do.
func pressurePack(t *testing.T) string {
	path := pressureShape.write(t, diskDir(t))
	t.Cleanup(func() { os.Remove(path) })
	forgetFile(t, path)
	return path
}

// diskDir is a folder on a disk.
func diskDir(t *testing.T) string {
	dir := t.TempDir()
	if d := os.Getenv("OUTCROP_DISK"); d != "" {
		dir = d
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC) {
		t.Skipf("%s is in RAM; set OUTCROP_DISK to a folder on a disk", dir)
	}
	return dir
}

// forgetFile drops a file from the page cache, so that whoever reads it next
// is charged for it.
func forgetFile(t *testing.T, path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}

// A pack bigger than the limit: 256 tokens, no kill, the ids of a run without
// limit. Once from mapped pages, once with copies of half of what is allowed.
func TestPressureLimitBelowModel(t *testing.T) {
	slow(t)
	t.Parallel()
	path := pressurePack(t)
	const tokens = 256
	run := func(limit int64, copies int64) (ids []string, kills int, took time.Duration) {
		forgetFile(t, path)
		g := newGroup(t, limit)
		begin := time.Now()
		c := g.start("engine", "PACK="+path, "FILE=1", "GUARD=0", "FLOOR=0", "CONTEXT=4096", "TOKENS="+strconv.Itoa(tokens), "COPIES="+strconv.FormatInt(copies, 10))
		for line := range c.lines {
			if id, ok := strings.CutPrefix(line, "id "); ok {
				ids = append(ids, id)
			}
		}
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("the engine ended with %v after %d tokens\n%s", err, len(ids), c.err)
		}
		return ids, g.kills(), time.Since(begin)
	}
	want, _, _ := run(8<<30, 0)
	limit := pressureShape.expertBytes() * 6 / 10
	for _, c := range []struct {
		name   string
		copies int64
	}{{"mapped pages", 0}, {"copies", limit / 2}} {
		ids, kills, took := run(limit, c.copies)
		if kills != 0 || len(ids) != tokens || !slices.Equal(ids, want) {
			t.Errorf("%s: %d tokens, %d kills, the same ids: %v", c.name, len(ids), kills, slices.Equal(ids, want))
		}
		t.Logf("%s: %d tokens of a pack with %d MiB of experts in a group of %d MiB in %.1f s, %.1f tok/s with loading", c.name, len(ids), pressureShape.expertBytes()>>20, limit>>20, took.Seconds(), tokens/took.Seconds())
	}
}

// floorShape has experts of 1.77 MB, as models of 30B-A3B shape do; 1.1 GB of them.
var floorShape = moeShape{layers: 10, experts: 64, used: 8, dim: 2048, ff: 512}

func childFloor(t *testing.T) {
	for round := range uint64(3) {
		for _, mode := range []string{"pages", "copies"} {
			r := measureTier(t, os.Getenv("PACK"), mode, Options{ExpertRAM: floorShape.expertBytes() / 3}, 24, round, 0)
			fmt.Printf("%s %.4f %.2f %s\n", mode, r.share(), r.tokS, r)
		}
	}
}

// Experts of twice what the group may use, chosen evenly: decode must reach
// most of what the disk could give at best, and leave mapped pages behind.
func TestPressureDiskFloor(t *testing.T) {
	slow(t)
	dir := diskDir(t)
	path := floorShape.write(t, dir)
	t.Cleanup(func() { os.Remove(path) })
	forgetFile(t, path)
	g := newGroup(t, floorShape.expertBytes()/2)
	c := g.start("floor", "PACK="+path)
	share, rate := map[string][]float64{}, map[string][]float64{}
	for line := range c.lines {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "pages" && f[0] != "copies" {
			continue
		}
		t.Log(line)
		v, _ := strconv.ParseFloat(f[1], 64)
		share[f[0]] = append(share[f[0]], v)
		v, _ = strconv.ParseFloat(f[2], 64)
		rate[f[0]] = append(rate[f[0]], v)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, c.err)
	}
	if len(share["copies"]) == 0 {
		t.Skip("nothing was measured: ", c.err)
	}
	// The best of three: what else the machine does can only make it less.
	pages, copies, s := median(rate["pages"]), median(rate["copies"]), slices.Max(share["copies"])
	t.Logf("copies %.1f tok/s, %.0f %% of the disk's floor at best; mapped pages %.1f tok/s", copies, 100*s, pages)
	if s < 0.6 {
		t.Errorf("decode gets %.0f %% of what the disk can give, want 60", 100*s)
	}
	if copies < 1.5*pages {
		t.Errorf("copies give %.1f tok/s, mapped pages %.1f", copies, pages)
	}
}

// sample is one line of a recorded run.
type sample struct {
	seconds float64
	look
	ballast int64
	tokens  int
}

// scene runs the engine with all experts held as copies, and beside it a
// process that takes memory, holds it, and gives it back.
type scene struct {
	samples  []sample
	ids      []string
	words    []string
	kills    int
	killed   bool // the engine, by the kernel
	worst    time.Duration
	failed   string
	finished bool
}

const (
	sceneLimit   = 688 << 20
	sceneFloor   = 128 << 20
	sceneBallast = 408 // MiB
	sceneRate    = 12  // MiB/s
)

func runScene(t *testing.T, path string, guarded bool) (r scene) {
	forgetFile(t, path)
	g := newGroup(t, sceneLimit)
	on := "GUARD=0"
	if guarded {
		on = "GUARD=1"
	}
	// A short context: a cache of 4096 tokens would fill by 33 MiB during the
	// scene, and its end is compared with its start.
	e := g.start("engine", "PACK="+path, "FILE=0", on, "CONTEXT=1024", "TOKENS=0", "COPIES=-1", "FLOOR="+strconv.Itoa(sceneFloor))
	b := g.start("ballast")
	begin := time.Now()
	var ballast int64
	phase, grown := "start", time.Time{}
	last := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	lines := e.lines
	for lines != nil {
		select {
		case line, ok := <-lines:
			if !ok {
				lines = nil
				break
			}
			switch kind, rest, _ := strings.Cut(line, " "); kind {
			case "id":
				r.ids = append(r.ids, rest)
				if phase != "start" {
					r.worst = max(r.worst, time.Since(last))
				}
				last = time.Now()
			case "look":
				s := sample{seconds: time.Since(begin).Seconds(), ballast: ballast << 20, tokens: len(r.ids)}
				if err := json.Unmarshal([]byte(rest), &s.look); err != nil {
					t.Fatal(err)
				}
				r.samples = append(r.samples, s)
				r.words = append(r.words, s.Words...)
				// The end: what was held before is held again.
				full := r.samples[0].Held
				if phase == "freed" && (s.Held >= full*95/100 || time.Since(grown) > 4*time.Minute) {
					phase = "end"
					e.say(t, "stop")
				}
			case "failed":
				r.failed = rest
			case "done":
				r.finished = true
			}
		case line, ok := <-b.lines:
			if !ok {
				b.lines = nil
				break
			}
			if n, err := strconv.ParseInt(strings.TrimPrefix(line, "at "), 10, 64); err == nil {
				ballast = n
			}
		case <-tick.C:
			switch {
			case phase == "start" && len(r.samples) >= 8:
				phase = "growing"
				b.say(t, fmt.Sprintf("grow %d %d", sceneBallast, sceneRate))
			case phase == "growing" && ballast == sceneBallast:
				phase, grown = "grown", time.Now()
			case phase == "grown" && time.Since(grown) > 15*time.Second:
				phase = "freed"
				b.say(t, "free")
			case time.Since(begin) > 10*time.Minute:
				t.Fatal("the scene does not end")
			}
		}
	}
	if err := e.cmd.Wait(); err != nil {
		if st, ok := e.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() && st.Signal() == syscall.SIGKILL {
			r.killed = true
		} else {
			t.Errorf("the engine: %v\n%s", err, e.err)
		}
	}
	r.kills = g.kills()
	return r
}

// A second program takes more memory than is left: the guard gives copies
// back before the limit is reached, decode goes on with the same ids, and the
// copies come back when the program has gone. Without the guard the kernel
// kills the engine.
func TestPressureSecondProgram(t *testing.T) {
	slow(t)
	t.Parallel()
	path := pressurePack(t)
	on := runScene(t, path, true)
	plotScene(t, "guard-on", on)
	for _, w := range on.words {
		t.Log(w)
	}
	full, least, low, most := on.samples[0].Held, on.samples[0].Held, on.samples[0].Available, 0
	for _, s := range on.samples {
		least, low, most = min(least, s.Held), min(low, s.Available), max(most, s.Step)
	}
	end := on.samples[len(on.samples)-1]
	t.Logf("guard on: %d tokens, %d MiB of copies, %d at least, %d at the end; %d MiB left at the start, at least %d, %d at the end, of %d; furthest step %q; longest wait for a token %.1f s",
		len(on.ids), full>>20, least>>20, end.Held>>20, on.samples[0].Available>>20, low>>20, end.Available>>20, sceneLimit>>20, guard.Step(most), on.worst.Seconds())
	if on.kills != 0 || on.killed || !on.finished || on.failed != "" {
		t.Errorf("with the guard: %d kills, engine killed %v, finished %v, failed %q", on.kills, on.killed, on.finished, on.failed)
	}
	if full < pressureShape.expertBytes() {
		t.Errorf("%d bytes of copies at the start, want all %d", full, pressureShape.expertBytes())
	}
	if low <= 0 || guard.Step(most) < guard.ShrinkRAM || least > full-(sceneBallast<<20-(sceneLimit-full))/2 {
		t.Errorf("the guard did not act before the limit: %d bytes left, step %v, %d of %d bytes held", low, guard.Step(most), least, full)
	}
	if guard.Step(most) > guard.ShrinkRAM || on.worst > 10*time.Second {
		t.Errorf("decode did not go on: step %v, %v without a token", guard.Step(most), on.worst)
	}
	if end.Held < full*95/100 || end.Step != int(guard.Normal) {
		t.Errorf("in the end %d of %d bytes are held, step %v", end.Held, full, guard.Step(end.Step))
	}

	off := runScene(t, path, false)
	plotScene(t, "guard-off", off)
	t.Logf("guard off: %d tokens, %d kills", len(off.ids), off.kills)
	if !off.killed || off.kills == 0 {
		t.Errorf("without the guard the kernel must kill the engine: killed %v, %d kills", off.killed, off.kills)
	}
	if n := min(len(on.ids), len(off.ids)); n < 20 || !slices.Equal(on.ids[:n], off.ids[:n]) {
		t.Errorf("the first %d ids differ with and without pressure", n)
	}
}
