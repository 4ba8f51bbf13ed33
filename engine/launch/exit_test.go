package launch

import (
	"strings"
	"testing"
	"time"

	"outcrop/engine/wire"
)

func TestExplain(t *testing.T) {
	low := []Reading{{Memory: wire.Memory{
		Total:     wire.Known(29<<30, "bytes", ""),
		Available: wire.Known(200<<20, "bytes", ""),
		FullAvg10: wire.Known(37.2, "percent", ""),
	}, Process: wire.Process{RSS: wire.Known(24<<30, "bytes", ""), Anon: wire.Known(23<<30, "bytes", ""), Mapped: wire.Known(1<<30, "bytes", "")}}}
	for _, c := range []struct {
		name string
		f    facts
		oom  bool
		want []string
	}{
		{"asked for", facts{signal: "SIGKILL", stopped: true, kills: killCounts{1, 1}}, false, []string{"stopped"}},
		// issue #1545: exit 137 in the middle of an answer on a 29 GB machine
		{"memory, own group", facts{code: -1, signal: "SIGKILL", kills: killCounts{1, 1}, before: low}, true,
			[]string{"memory ran out", "RAM available 200 MiB of 29.0 GiB", "engine 24.0 GiB (23.0 GiB its own, 1.0 GiB mapped)", "pressure 37 %"}},
		{"memory, kernel log", facts{signal: "SIGKILL", kills: killCounts{-1, -1}, kmsg: true}, true, []string{"memory ran out"}},
		{"memory, machine count", facts{signal: "SIGKILL", kills: killCounts{-1, 2}}, true, []string{"most likely"}},
		{"group knows better than machine", facts{signal: "SIGKILL", kills: killCounts{0, 0}}, false, []string{"from outside", "no kill for memory"}},
		{"nothing known", facts{signal: "SIGKILL", kills: killCounts{-1, -1}}, false, []string{"does not tell"}},
		{"crash", facts{signal: "SIGSEGV", ran: 2 * time.Second}, false, []string{"crashed (SIGSEGV)", "2s"}},
		{"disk gone", facts{signal: "SIGBUS"}, false, []string{"mapped file"}},
		{"error", facts{code: 1, log: []string{"x", "outcrop: open pack a.gguf: bad magic", ""}}, false, []string{"with an error: open pack a.gguf: bad magic."}},
		{"usage", facts{code: 2, log: []string{"unknown flag: --x"}}, false, []string{"how it was started"}},
		{"error of several lines", facts{code: 1, log: []string{"time=1 msg=x", "outcrop: no device x:", "opencl: nothing", "cuda: no library"}}, false, []string{"with an error: no device x: opencl: nothing; cuda: no library."}},
		{"usage with help", facts{code: 2, log: []string{"outcrop: unknown flag: --x", "See 'outcrop serve --help'."}}, false, []string{"how it was started: unknown flag: --x."}},
		{"panic", facts{code: 2, log: []string{"panic: runtime error: index out of range", "", "goroutine 1 [running]:"}}, false, []string{"fault of its own: runtime error"}},
		{"driver's crash", facts{code: 2, fault: "SIGSEGV: segmentation violation", foreign: true, log: []string{"gs     0x0"}, ran: 3 * time.Second}, false, []string{"crashed (SIGSEGV) inside a library", "the card's driver"}},
		{"crash of ours with a trace", facts{code: 2, fault: "SIGSEGV: segmentation violation", log: []string{"gs     0x0"}}, false, []string{"crashed (SIGSEGV) after"}},
		{"file cut short while mapped", facts{code: 2, fault: "SIGBUS: bus error code=0x2", log: []string{"exit status 2"}}, false, []string{"mapped file"}},
		{"panic with a long trace", facts{code: 2, fault: "panic: no such layer", log: []string{"goroutine 7"}}, false, []string{"fault of its own: no such layer"}},
		{"another child", facts{signal: "SIGSEGV", what: "the test"}, false, []string{"The test crashed (SIGSEGV)"}},
		{"silent", facts{code: 7}, false, []string{"exit code 7"}},
		{"end by itself", facts{code: 0}, false, []string{"without an error"}},
		{"parent gone", facts{code: exitParentGone}, false, []string{"was gone"}},
		{"asked by another", facts{signal: "SIGTERM"}, false, []string{"asked to end by another"}},
		{"another signal", facts{signal: "SIGXCPU"}, false, []string{"SIGXCPU"}},
	} {
		e := explain(c.f)
		if e.OOM != c.oom {
			t.Errorf("%s: OOM is %v", c.name, e.OOM)
		}
		for _, w := range c.want {
			if !strings.Contains(e.Text, w) {
				t.Errorf("%s: %q does not say %q", c.name, e.Text, w)
			}
		}
		if !c.f.stopped && c.f.code != exitParentGone && e.Next == "" {
			t.Errorf("%s: no next step", c.name)
		}
	}
}
