package compute

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// The assembler in NVIDIA's driver makes one module at a time of a process, however
// many threads ask. So copies of this program assemble beside it. A copy that
// crashes takes nothing with it, and what it had is made here.

// HelperArg is the hidden first argument that makes this program such a copy; the
// second is the number of the device; see HelperMain.
const HelperArg = "__assemble"

// helperRoom is the device memory that one copy may take, for its context.
const helperRoom = 600 << 20

// helperIdle is how long a copy waits for more before it ends.
const helperIdle = 3 * time.Second

// helperStart starts a copy; nil where the running program cannot be one.
var helperStart struct {
	sync.Mutex
	command func(device int) *exec.Cmd
}

// HelperMain is called first thing in main: when the arguments ask for a copy that
// assembles, it does, and true is returned. Else this program may start copies of
// itself from now on. It answers each message of its input with one until the input
// ends.
func HelperMain(args []string) bool {
	if len(args) < 3 || args[1] != HelperArg {
		helperStart.Lock()
		defer helperStart.Unlock()
		helperStart.command = func(device int) *exec.Cmd {
			exe, err := os.Executable()
			if err != nil {
				return nil
			}
			return exec.Command(exe, HelperArg, strconv.Itoa(device))
		}
		return false
	}
	device, err := strconv.Atoi(args[2])
	var link func([]byte) ([]byte, error)
	if err == nil {
		link, err = openLinker(device)
	}
	helperLoop(os.Stdin, os.Stdout, func(ptx []byte) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		return link(ptx)
	})
	return true
}

// Messages are a length of 4 bytes, little endian, and so many bytes. An answer has
// a byte before that: what it is.
const (
	helperMade   = 0 // machine code
	helperBroken = 1 // the log of an assembler that refused the text
	helperFailed = 2 // what else went wrong
	helperMost   = 1 << 28
)

func writeMessage(w io.Writer, b []byte) error {
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(b)))
	if _, err := w.Write(n[:]); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

func readMessage(r io.Reader) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > helperMost {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(r, b)
	return b, err
}

func helperLoop(in io.Reader, out io.Writer, link func([]byte) ([]byte, error)) {
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		ptx, err := readMessage(r)
		if err != nil {
			return
		}
		kind := byte(helperMade)
		b, err := link(ptx)
		if err != nil {
			kind, b = helperFailed, []byte(err.Error())
			var e *Error
			if errors.As(err, &e) && e.Kind == ErrBuild {
				kind, b = helperBroken, []byte(e.Detail)
			}
		}
		if w.WriteByte(kind) != nil || writeMessage(w, b) != nil || w.Flush() != nil {
			return
		}
	}
}

// errHelper is a copy that did not do its work: the text may still be sound.
var errHelper = errors.New("assemble in another process")

// assembler is one copy.
type assembler struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startAssembler(c *exec.Cmd) (*assembler, error) {
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &assembler{c, in, bufio.NewReader(out)}, nil
}

func (a *assembler) assemble(ptx []byte) ([]byte, error) {
	if err := writeMessage(a.in, ptx); err != nil {
		return nil, fmt.Errorf("%w: %w", errHelper, err)
	}
	kind, err := a.out.ReadByte()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHelper, err)
	}
	b, err := readMessage(a.out)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errHelper, err)
	case kind == helperMade && len(b) > 0:
		return b, nil
	case kind == helperBroken:
		return nil, &Error{API: "CUDA", Call: "cuLinkAddData", Name: "assembler", Kind: ErrBuild, Detail: string(b)}
	}
	return nil, fmt.Errorf("%w: %s", errHelper, b)
}

// end stops the copy, in the middle of its work if need be.
func (a *assembler) end() {
	a.in.Close()
	a.cmd.Process.Kill()
	a.cmd.Wait()
}

// assemblers are the copies of one device, and one turn of the process itself, which
// begins at once while copies start.
type assemblers struct {
	start func() (*assembler, error)
	local func(ptx []byte) ([]byte, error)
	most  func() int // copies, asked before one is started

	mu     sync.Mutex
	turn   *sync.Cond
	busy   bool // the process itself
	idle   []*assembler
	all    map[*assembler]bool
	bad    error // copies do not work here
	closed bool
	timer  *time.Timer
}

func newAssemblers(start func() (*assembler, error), local func([]byte) ([]byte, error), most func() int) *assemblers {
	p := &assemblers{start: start, local: local, most: most, all: map[*assembler]bool{}}
	p.turn = sync.NewCond(&p.mu)
	return p
}

// take waits for somebody to do the work: a copy, or nil for the process itself.
func (p *assemblers) take() (*assembler, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch n := len(p.idle); {
		case p.closed:
			return nil, ErrClosed
		case n > 0:
			a := p.idle[n-1]
			p.idle = p.idle[:n-1]
			return a, nil
		case !p.busy:
			p.busy = true
			return nil, nil
		case p.bad == nil && p.start != nil && len(p.all) < p.most():
			a, err := p.start()
			if err == nil {
				p.all[a] = true
				return a, nil
			}
			p.bad = err
		default:
			p.turn.Wait()
		}
	}
}

// give ends a turn. A copy whose turn failed ends, and no other is started.
func (p *assemblers) give(a *assembler, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case a == nil:
		p.busy = false
	case p.closed || errors.Is(err, errHelper):
		if p.all[a] {
			delete(p.all, a)
			go a.end()
		}
		if p.bad == nil {
			p.bad = err
		}
	default:
		p.idle = append(p.idle, a)
		if p.timer != nil {
			p.timer.Stop()
		}
		p.timer = time.AfterFunc(helperIdle, p.rest)
	}
	p.turn.Broadcast()
}

// rest ends the copies that have nothing to do.
func (p *assemblers) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.idle {
		delete(p.all, a)
		go a.end()
	}
	p.idle = nil
}

// assemble makes machine code of PTX.
func (p *assemblers) assemble(ptx []byte) ([]byte, error) {
	for {
		a, err := p.take()
		if err != nil {
			return nil, err
		}
		var b []byte
		if a == nil {
			b, err = p.local(ptx)
		} else {
			b, err = a.assemble(ptx)
		}
		p.give(a, err)
		if a == nil || !errors.Is(err, errHelper) {
			return b, err
		}
	}
}

// close ends all copies; who waits for one is told.
func (p *assemblers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for a := range p.all {
		delete(p.all, a)
		go a.end()
	}
	p.idle = nil
	p.turn.Broadcast()
}
