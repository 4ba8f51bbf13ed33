package compute

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A copy of the test program stands for one that assembles: it answers with the
// text in capitals, but for words that make it fail.

const copyVariable = "COMPUTE_TEST_COPY"

func TestMain(m *testing.M) {
	if os.Getenv(copyVariable) != "" {
		helperLoop(os.Stdin, os.Stdout, func(ptx []byte) ([]byte, error) {
			switch string(ptx) {
			case "refused":
				return nil, &Error{Kind: ErrBuild, Detail: "line 1: refused"}
			case "memory":
				return nil, &Error{Kind: ErrMemory, Name: "no room"}
			case "crash":
				os.Exit(7)
			case "sleep":
				time.Sleep(time.Minute)
			}
			time.Sleep(30 * time.Millisecond)
			return bytes.ToUpper(ptx), nil
		})
		return
	}
	os.Exit(m.Run())
}

func startTestCopy() (*assembler, error) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), copyVariable+"=1")
	return startAssembler(c)
}

// pool makes assemblers with so many copies; local counts what this process made.
func pool(t *testing.T, most int) (p *assemblers, local *atomic.Int64) {
	local = new(atomic.Int64)
	p = newAssemblers(startTestCopy, func(ptx []byte) ([]byte, error) {
		local.Add(1)
		time.Sleep(30 * time.Millisecond)
		return append([]byte("here "), ptx...), nil
	}, func() int { return most })
	t.Cleanup(p.close)
	return p, local
}

func each(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			do(i)
		}()
	}
	all.Wait()
}

// TestAssemblers: copies and the process itself share the work.
func TestAssemblers(t *testing.T) {
	p, local := pool(t, 3)
	var there atomic.Int64
	each(40, func(int) {
		b, err := p.assemble([]byte("text"))
		switch {
		case err != nil || string(b) != "TEXT" && string(b) != "here text":
			t.Errorf("%q, %v", b, err)
		case string(b) == "TEXT":
			there.Add(1)
		}
	})
	if len(p.all) != 3 || len(p.idle) != 3 {
		t.Errorf("%d copies, %d idle; want 3", len(p.all), len(p.idle))
	}
	if there.Load() == 0 || local.Load() == 0 {
		t.Errorf("%d modules were made by copies, %d here", there.Load(), local.Load())
	}
	p.rest()
	if len(p.all) != 0 {
		t.Errorf("%d copies are left", len(p.all))
	}
	if b, err := p.assemble([]byte("more")); err != nil || !strings.EqualFold(strings.TrimPrefix(string(b), "here "), "more") {
		t.Errorf("after a rest: %q, %v", b, err)
	}
}

// TestAssemblersFail: what a copy refuses is refused; what it fails at, crashing or
// not, is made here, and no further copy is tried.
func TestAssemblersFail(t *testing.T) {
	for _, text := range []string{"refused", "memory", "crash"} {
		p, local := pool(t, 2)
		p.busy = true // so that the first goes to a copy
		type result struct {
			b   []byte
			err error
		}
		got := make(chan result)
		go func() {
			b, err := p.assemble([]byte(text))
			got <- result{b, err}
		}()
		if text != "refused" {
			for ok := false; !ok; time.Sleep(time.Millisecond) {
				p.mu.Lock()
				ok = p.bad != nil
				p.mu.Unlock()
			}
			p.give(nil, nil)
		}
		r := <-got
		if text == "refused" {
			var e *Error
			if !errors.As(r.err, &e) || e.Kind != ErrBuild || e.Detail != "line 1: refused" || local.Load() != 0 {
				t.Errorf("refused: %q, %v, %d made here", r.b, r.err, local.Load())
			}
			continue
		}
		if r.err != nil || string(r.b) != "here "+text || local.Load() != 1 {
			t.Errorf("%s: %q, %v, %d made here", text, r.b, r.err, local.Load())
		}
		if n := len(p.all); n != 0 {
			t.Errorf("%s: %d copies are left", text, n)
		}
	}
	// A program that cannot be started.
	p := newAssemblers(func() (*assembler, error) { return nil, errors.New("no program") }, func(b []byte) ([]byte, error) { return b, nil }, func() int { return 4 })
	each(8, func(int) {
		if _, err := p.assemble([]byte("x")); err != nil {
			t.Error(err)
		}
	})
}

// TestAssemblersClose: closing ends copies in the middle of their work, and those who
// wait for a turn.
func TestAssemblersClose(t *testing.T) {
	p, _ := pool(t, 1)
	p.busy = true
	ended := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := p.assemble([]byte("sleep"))
			ended <- err
		}()
	}
	for ok := false; !ok; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		ok = len(p.all) == 1
		p.mu.Unlock()
	}
	begin := time.Now()
	p.close()
	for range 3 {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("closing took %v", took)
	}
}

// TestHelperMessages: broken messages end a copy and are told by its owner.
func TestHelperMessages(t *testing.T) {
	for _, in := range []string{"", "\x01", "\xff\xff\xff\xff", "\x05\x00\x00\x00abc"} {
		var out bytes.Buffer
		helperLoop(strings.NewReader(in), &out, func([]byte) ([]byte, error) { return []byte("x"), nil })
		if out.Len() > 0 {
			t.Errorf("%q was answered: %q", in, out.String())
		}
	}
	for _, answer := range []string{"", "\x00", "\x00\x05\x00\x00\x00ab", "\x00\x00\x00\x00\x00", "\x09\x01\x00\x00\x00x", "\x00\xff\xff\xff\xff"} {
		a := &assembler{in: discard{}, out: bufio.NewReader(strings.NewReader(answer))}
		if b, err := a.assemble([]byte("text")); !errors.Is(err, errHelper) {
			t.Errorf("answer %q: %q, %v; want errHelper", answer, b, err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
