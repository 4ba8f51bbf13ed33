package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"outcrop/engine"
	"outcrop/engine/vitals"
)

// comparison is what bench --compare prints. Ratios are ours over the peer's.
type comparison struct {
	Pack        string      `json:"pack"`
	Peer        string      `json:"peer"`
	Threads     int         `json:"threads"`
	Ours        []speedPair `json:"ours"`
	Theirs      []speedPair `json:"theirs"`
	Prefill     float64     `json:"prefill_ratio"`
	Decode      float64     `json:"decode_ratio"`
	OursMemory  memoryUse   `json:"ours_memory"`
	TheirMemory memoryUse   `json:"theirs_memory"`
	MedianOurs  speedPair   `json:"ours_median"`
	MedianTheir speedPair   `json:"theirs_median"`
}

type speedPair struct {
	Prefill float64 `json:"prefill_tok_s"`
	Decode  float64 `json:"decode_tok_s"`
}

// compare runs this program's bench and a peer's in turn, each in a process of
// its own, so that both meet the same machine: ours, theirs, ours, theirs.
func (p *Program) compare(ctx context.Context, peer, arg, level string, l loadFlags, o engine.BenchOptions) (comparison, error) {
	pack, res, err := p.open(arg)
	if err != nil {
		return comparison{}, err
	}
	file := pack.File().Shards()[0].Path
	pack.Close()
	self, err := os.Executable()
	if err != nil {
		return comparison{}, fmt.Errorf("compare: find this program: %w", err)
	}
	if l.threads == 0 {
		l.threads = engine.DefaultThreads()
	}
	out := comparison{Pack: res.Name, Peer: peer, Threads: l.threads}
	num := strconv.Itoa
	ours := append([]string{"bench", file, "--json", "--repeat", "1", "--prompt", num(o.Prompt), "--generate", num(o.Generate),
		"--depth", num(o.Depths[0])}, l.args()...) // the same placement, so that a card is compared with a card
	if level != "" {
		ours = append(ours, "--kernels", level)
	}
	if len(o.Depths) > 1 {
		return out, fmt.Errorf("compare: --depth gives %d depths, want one", len(o.Depths))
	}
	words := peerWords(peer, num(o.Prompt), num(o.Generate), l.threads, file)
	if len(words) == 0 {
		return out, fmt.Errorf("compare: no command was given; a llama-bench, or a program that takes -p -n -t -r and a file")
	}
	theirs := words[1:]
	if o.Depths[0] > 0 {
		theirs = append([]string{"-d", num(o.Depths[0])}, theirs...)
	}
	for i := range o.Runs {
		fmt.Fprintf(p.Err, "run %d of %d\n", i+1, o.Runs)
		b, _, err := output(ctx, self, ours)
		if err != nil {
			return out, err
		}
		var r benchResult
		if err := json.Unmarshal(b, &r); err != nil {
			return out, fmt.Errorf("compare: read our own result: %w", err)
		}
		out.Ours = append(out.Ours, speedPair{r.PrefillTokS, r.DecodeTokS})
		// By its own word: the process also measures bandwidth, with a large buffer.
		out.OursMemory.join(memoryUse{r.PeakRSSBytes, r.AnonBytes, r.MappedBytes})
		b, use, err := output(ctx, words[0], theirs)
		if err != nil {
			return out, err
		}
		s, err := parsePeer(b)
		if err != nil {
			return out, fmt.Errorf("compare: %s: %w", peer, err)
		}
		out.Theirs = append(out.Theirs, s)
		out.TheirMemory.join(use)
	}
	out.MedianOurs, out.MedianTheir = medians(out.Ours), medians(out.Theirs)
	out.Prefill = ratio(out.MedianOurs.Prefill, out.MedianTheir.Prefill)
	out.Decode = ratio(out.MedianOurs.Decode, out.MedianTheir.Decode)
	return out, nil
}

// peerWords is the command line of a peer for one run over a file.
func peerWords(peer, prompt, generate string, threads int, file string) []string {
	words := strings.Fields(peer)
	if len(words) == 0 {
		return nil
	}
	words = append(words, "-p", prompt, "-n", generate, "-t", strconv.Itoa(threads), "-r", "1")
	if strings.HasPrefix(filepath.Base(words[0]), "llama-bench") {
		return append(words, "-o", "json", "-m", file)
	}
	return append(words, file)
}

// usage of memory by a process, in bytes; 0: not known.
type memoryUse struct {
	Peak   int64 `json:"peak_rss_bytes,omitempty"`
	Anon   int64 `json:"anon_bytes,omitempty"`   // of its own, when the two together were largest
	Mapped int64 `json:"mapped_bytes,omitempty"` // of files
}

func (m *memoryUse) join(o memoryUse) {
	m.Peak = max(m.Peak, o.Peak)
	if o.Anon+o.Mapped > m.Anon+m.Mapped {
		m.Anon, m.Mapped = o.Anon, o.Mapped
	}
}

// output runs a program and gives what it printed, and the memory it took.
func output(ctx context.Context, name string, args []string) ([]byte, memoryUse, error) {
	c := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	var use memoryUse
	c.Stdout, c.Stderr = &out, &errs
	err := c.Start()
	if err == nil {
		ended, watched := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			watchMemory(c.Process.Pid, &use, ended)
		}()
		err = c.Wait()
		close(ended)
		<-watched
	}
	if err != nil {
		if said := strings.TrimSpace(lastLine(errs.String())); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return nil, use, fmt.Errorf("compare: run %s: %w", name, err)
	}
	use.Peak = peakOf(c.ProcessState)
	return out.Bytes(), use, nil
}

// watchMemory looks at a process every 20 ms until it has ended (Linux).
func watchMemory(pid int, use *memoryUse, ended <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		p := vitals.Process(vitals.Live(), pid)
		if p.Anon.Known && p.Mapped.Known {
			use.join(memoryUse{Anon: int64(p.Anon.Value), Mapped: int64(p.Mapped.Value)})
		}
		select {
		case <-ended:
			return
		case <-tick.C:
		}
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

var peerLine = regexp.MustCompile(`(?m)^\s*(prefill|decode)\s+\d+\s+tok/s\s+median\s+([0-9.]+)`)

// parsePeer reads the JSON of llama-bench, or lines such as
// "prefill 512 tok/s median 100.0".
func parsePeer(b []byte) (s speedPair, err error) {
	var rows []struct {
		Prompt int     `json:"n_prompt"`
		Gen    int     `json:"n_gen"`
		TokS   float64 `json:"avg_ts"`
	}
	if json.Unmarshal(b, &rows) == nil {
		for _, r := range rows {
			switch {
			case r.Prompt > 0 && r.Gen == 0:
				s.Prefill = r.TokS
			case r.Gen > 0 && r.Prompt == 0:
				s.Decode = r.TokS
			}
		}
	}
	for _, m := range peerLine.FindAllSubmatch(b, -1) {
		v, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return s, fmt.Errorf("read %q: %w", m[0], err)
		}
		if string(m[1]) == "prefill" {
			s.Prefill = v
		} else {
			s.Decode = v
		}
	}
	if s.Prefill <= 0 || s.Decode <= 0 {
		return s, fmt.Errorf("its output holds no prefill and decode rates")
	}
	return s, nil
}

func medians(ps []speedPair) speedPair {
	mid := func(f func(speedPair) float64) float64 {
		var v []float64
		for _, p := range ps {
			v = append(v, f(p))
		}
		return middle(v)
	}
	return speedPair{mid(func(p speedPair) float64 { return p.Prefill }), mid(func(p speedPair) float64 { return p.Decode })}
}

// middle is the median; 0 of nothing.
func middle(v []float64) float64 {
	slices.Sort(v)
	if len(v) == 0 {
		return 0
	}
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (p *Program) printComparison(c comparison) {
	row := func(name string, ours, theirs, ratio float64) []string {
		return []string{name, fmt.Sprintf("%.1f tok/s", ours), fmt.Sprintf("%.1f tok/s", theirs), fmt.Sprintf("%.2f", ratio)}
	}
	rows := [][]string{
		{"", "outcrop", "peer", "ratio"},
		row("prompt", c.MedianOurs.Prefill, c.MedianTheir.Prefill, c.Prefill),
		row("answer", c.MedianOurs.Decode, c.MedianTheir.Decode, c.Decode),
	}
	for _, m := range []struct {
		name         string
		ours, theirs int64
	}{
		{"peak memory", c.OursMemory.Peak, c.TheirMemory.Peak},
		{"of their own", c.OursMemory.Anon, c.TheirMemory.Anon},
		{"of the file", c.OursMemory.Mapped, c.TheirMemory.Mapped},
	} {
		if m.ours > 0 && m.theirs > 0 {
			rows = append(rows, []string{m.name, size(m.ours), size(m.theirs), fmt.Sprintf("%.2f", float64(m.ours)/float64(m.theirs))})
		}
	}
	table(p.Out, rows)
	fmt.Fprintf(p.Out, "medians of %d runs in turn, %d threads; peer: %s\n", len(c.Ours), c.Threads, c.Peer)
}
