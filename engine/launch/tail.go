package launch

import (
	"bufio"
	"io"
	"strings"
)

// tail is what is kept of a child's standard error: its last lines, and the
// line that began a crash, which the trace after it would push out.
type tail struct {
	lines   []string
	fault   string // "SIGSEGV: segmentation violation", "panic: ..."; "" without
	foreign bool   // the crash was in code that is not ours: a driver's library
}

const keptLines = 40

// faultStarts begin the first line of what the Go runtime writes when it ends a
// process (runtime/signal_unix.go, runtime/panic.go).
var faultStarts = []string{"panic: ", "fatal error: ", "SIGSEGV: ", "SIGBUS: ", "SIGILL: ", "SIGFPE: ", "SIGABRT: ", "SIGTRAP: ", "Exception 0x"}

func (t *tail) add(line string) {
	line = strings.TrimRight(line[:min(len(line), 2000)], "\r\n")
	for _, p := range faultStarts {
		if t.fault == "" && strings.HasPrefix(line, p) {
			t.fault = line
		}
	}
	// Go code that reads pages which the file has no more: "fatal error: fault"
	// says nothing, the line after it does.
	if name, ok := strings.CutPrefix(line, "[signal SIGBUS: "); ok && !t.foreign {
		t.fault = "SIGBUS: " + name
	}
	if strings.HasPrefix(line, "signal arrived during cgo execution") || strings.HasPrefix(line, "signal arrived during external code execution") {
		t.foreign = true
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > keptLines {
		t.lines = t.lines[len(t.lines)-keptLines:]
	}
}

// eachLine calls f with each line of r, its end included, whatever its length.
func eachLine(r io.Reader, f func(string)) {
	br := bufio.NewReaderSize(r, 4096)
	for {
		line, err := br.ReadString('\n')
		if line != "" {
			f(line)
		}
		if err != nil {
			return
		}
	}
}
