package launch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"outcrop/engine/wire"
)

// Exit says how an engine ended.
type Exit struct {
	Code    int           // exit status; -1 when a signal ended it
	Signal  string        // SIGKILL, SIGSEGV ...; "" without
	OOM     bool          // the kernel killed it because memory ran out
	Stopped bool          // we asked for it
	Ran     time.Duration // how long it lived
	Text    string        // what happened, in one or two sentences
	Next    string        // one step that helps; "" when none is needed
	Before  []Reading     // the last readings before the end, oldest first
	Log     []string      // the last lines of its standard error
}

// ExitError is an engine that ended although nobody asked for it.
type ExitError struct{ Exit Exit }

func (e *ExitError) Error() string { return e.Exit.Text }

// Reading is the machine's memory and the engine's own at one moment.
type Reading struct {
	Time    time.Time
	Memory  wire.Memory
	Process wire.Process
}

// facts is everything explain may look at.
type facts struct {
	code    int
	signal  string
	stopped bool
	ran     time.Duration
	kills   killCounts // since the start
	kmsg    bool       // the kernel's log names this process as killed for memory
	before  []Reading
	log     []string
	fault   string // line that began a crash, see tail
	foreign bool   // it was in a driver's library
	what    string // "the test"; "" is the engine
}

// killCounts counts processes that the kernel killed for memory; -1 is
// unknown.
type killCounts struct{ group, machine float64 }

func (k killCounts) since(old killCounts) killCounts {
	d := func(now, then float64) float64 {
		if now < 0 || then < 0 {
			return -1
		}
		return now - then
	}
	return killCounts{d(k.group, old.group), d(k.machine, old.machine)}
}

// explain turns what is known of an end into words. It is pure.
func explain(f facts) Exit {
	e := Exit{Code: f.code, Signal: f.signal, Stopped: f.stopped, Ran: f.ran, Before: f.before, Log: f.log}
	last := lastMessage(f.log)
	what := f.what
	if what == "" {
		what = "the engine"
	}
	What := "T" + what[1:]
	signal := f.signal
	if name, _, ok := strings.Cut(f.fault, ": "); ok && signal == "" && strings.HasPrefix(name, "SIG") {
		signal = name // the Go runtime caught it, wrote a trace and left with 2
	}
	switch {
	case f.stopped:
		e.Text = What + " was stopped."
	case f.signal == "SIGKILL":
		switch {
		case f.kmsg, f.kills.group > 0:
			e.OOM = true
			e.Text = "The kernel ended " + what + " because memory ran out." + readingWords(f.before)
		case f.kills.machine > 0:
			e.OOM = true
			e.Text = What + " was killed, and the kernel counted a process killed for memory at that time: most likely memory ran out." + readingWords(f.before)
		case f.kills.group == 0 || f.kills.machine == 0:
			e.Text = What + " was killed from outside (SIGKILL). The kernel counted no kill for memory." + readingWords(f.before)
			e.Next = "start it again; if nobody killed it, look into the system's log"
		default:
			e.Text = What + " was killed (SIGKILL); this system does not tell whether memory was the reason." + readingWords(f.before)
			e.Next = "start it again, with a smaller context if memory was low"
		}
		if e.OOM {
			e.Next = "close other programs, or start again with a smaller context or a smaller pack"
		}
	case f.signal == "SIGTERM" || f.signal == "SIGINT" || f.signal == "SIGHUP":
		e.Text = fmt.Sprintf("%s was asked to end by another program (%s).", What, f.signal)
		e.Next = "start it again"
	case f.foreign:
		if signal == "" {
			signal = "a fault without a name"
		}
		e.Signal = signal
		e.Text = fmt.Sprintf("%s crashed (%s) inside a library of the system after %s: most likely the card's driver.", What, signal, round(f.ran))
		e.Next = "start it on the CPU, and update the card's driver before it is used again"
	case signal == "SIGSEGV" || signal == "SIGBUS" || signal == "SIGILL" || signal == "SIGFPE" || signal == "SIGABRT":
		e.Signal = signal
		e.Text = fmt.Sprintf("%s crashed (%s) after %s.", What, signal, round(f.ran))
		e.Next = "start it again; the last lines of its log say where it was"
		if signal == "SIGBUS" {
			e.Text = What + " lost a mapped file (SIGBUS): the pack was changed, truncated, or its disk went away."
			e.Next = "check the pack's files, then start again"
		}
	case f.signal != "":
		e.Text = fmt.Sprintf("%s was ended by signal %s after %s.", What, f.signal, round(f.ran))
		e.Next = "start it again"
	case f.code == exitParentGone:
		e.Text = What + " ended because the program that started it was gone."
	case f.code == 0:
		e.Text = What + " ended by itself, without an error."
		e.Next = "start it again"
	case panicked(f) != "":
		e.Text = fmt.Sprintf("%s failed with a fault of its own: %s.", What, panicked(f))
		e.Next = "start it again, and report the last lines of its log"
	case f.code == 2 && last != "":
		e.Text = What + " did not understand how it was started: " + sentence(last)
		e.Next = "check the settings"
	case last != "":
		e.Text = What + " ended with an error: " + sentence(last)
		e.Next = "see the last lines of its log"
	default:
		e.Text = fmt.Sprintf("%s ended with exit code %d and no message.", What, f.code)
		e.Next = "start it again"
	}
	return e
}

// readingWords says what the last reading before the end was.
func readingWords(rs []Reading) string {
	if len(rs) == 0 {
		return ""
	}
	r := rs[len(rs)-1]
	var parts []string
	if r.Memory.Limit.Known && r.Memory.Used.Known {
		parts = append(parts, "control group "+gib(r.Memory.Used.Value)+" of "+gib(r.Memory.Limit.Value))
	}
	if r.Memory.Available.Known {
		s := "RAM available " + gib(r.Memory.Available.Value)
		if r.Memory.Total.Known {
			s += " of " + gib(r.Memory.Total.Value)
		}
		parts = append(parts, s)
	}
	if r.Process.RSS.Known {
		s := "engine " + gib(r.Process.RSS.Value)
		if r.Process.Anon.Known && r.Process.Mapped.Known {
			s += " (" + gib(r.Process.Anon.Value) + " its own, " + gib(r.Process.Mapped.Value) + " mapped)"
		}
		parts = append(parts, s)
	}
	if r.Memory.FullAvg10.Known {
		parts = append(parts, fmt.Sprintf("memory pressure %.0f %%", r.Memory.FullAvg10.Value))
	}
	if len(parts) == 0 {
		return ""
	}
	return " Last readings before: " + strings.Join(parts, ", ") + "."
}

func gib(bytes float64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MiB", bytes/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", bytes/(1<<30))
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// panicked is the first line of a Go crash.
func panicked(f facts) string {
	for _, l := range append([]string{f.fault}, f.log...) {
		for _, p := range []string{"panic: ", "fatal error: "} {
			if s, ok := strings.CutPrefix(l, p); ok {
				return strings.TrimSpace(s)
			}
		}
	}
	return ""
}

// lastMessage is the last thing the engine said: its error, which begins with
// the program's name and may have several lines, or else its last line. Where
// to look for help is for people at a terminal, and the log of requests is no message.
func lastMessage(log []string) string {
	var lines []string // the last first
	for i := len(log) - 1; i >= 0; i-- {
		l := strings.TrimSpace(log[i])
		if m, ok := strings.CutPrefix(l, "outcrop: "); ok {
			lines = append(lines, m)
			slices.Reverse(lines)
			return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
		}
		if l != "" && !strings.HasPrefix(l, "See '") && !strings.HasPrefix(l, "time=") {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

func sentence(s string) string {
	if s != "" && !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
