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

	"outcrop/engine"
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
	OursPeak    int64       `json:"ours_peak_rss_bytes,omitempty"`
	TheirsPeak  int64       `json:"theirs_peak_rss_bytes,omitempty"`
	MedianOurs  speedPair   `json:"ours_median"`
	MedianTheir speedPair   `json:"theirs_median"`
}

type speedPair struct {
	Prefill float64 `json:"prefill_tok_s"`
	Decode  float64 `json:"decode_tok_s"`
}

// compare runs this program's bench and a peer's in turn, each in a process of
// its own, so that both meet the same machine: ours, theirs, ours, theirs.
func (p *Program) compare(ctx context.Context, peer, arg string, l loadFlags, o engine.BenchOptions) (comparison, error) {
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
	words := strings.Fields(peer)
	if len(words) == 0 {
		return out, fmt.Errorf("compare: no command was given; a llama-bench, or a program that takes -p -n -t -r and a file")
	}
	theirs := append(words[1:], "-p", num(o.Prompt), "-n", num(o.Generate), "-t", num(l.threads), "-r", "1")
	if len(o.Depths) > 1 {
		return out, fmt.Errorf("compare: --depth gives %d depths, want one", len(o.Depths))
	}
	if o.Depths[0] > 0 {
		theirs = append(theirs, "-d", num(o.Depths[0]))
	}
	if strings.HasPrefix(filepath.Base(words[0]), "llama-bench") {
		theirs = append(theirs, "-o", "json", "-m", file)
	} else {
		theirs = append(theirs, file)
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
		out.OursPeak = max(out.OursPeak, r.PeakRSSBytes) // by its own word: the process also measures bandwidth
		b, peak, err := output(ctx, words[0], theirs)
		if err != nil {
			return out, err
		}
		s, err := parsePeer(b)
		if err != nil {
			return out, fmt.Errorf("compare: %s: %w", peer, err)
		}
		out.Theirs = append(out.Theirs, s)
		out.TheirsPeak = max(out.TheirsPeak, peak)
	}
	out.MedianOurs, out.MedianTheir = medians(out.Ours), medians(out.Theirs)
	out.Prefill = ratio(out.MedianOurs.Prefill, out.MedianTheir.Prefill)
	out.Decode = ratio(out.MedianOurs.Decode, out.MedianTheir.Decode)
	return out, nil
}

// output runs a program and gives what it printed, and its peak memory in
// bytes (0 where the system does not tell).
func output(ctx context.Context, name string, args []string) ([]byte, int64, error) {
	c := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, 0, fmt.Errorf("compare: run %s: %w: %s", name, err, strings.TrimSpace(lastLine(errs.String())))
	}
	return out.Bytes(), peakOf(c.ProcessState), nil
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
		slices.Sort(v)
		if len(v) == 0 {
			return 0
		}
		return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
	}
	return speedPair{mid(func(p speedPair) float64 { return p.Prefill }), mid(func(p speedPair) float64 { return p.Decode })}
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
	if c.OursPeak > 0 && c.TheirsPeak > 0 {
		rows = append(rows, []string{"peak memory", size(c.OursPeak), size(c.TheirsPeak), fmt.Sprintf("%.2f", float64(c.OursPeak)/float64(c.TheirsPeak))})
	}
	table(p.Out, rows)
	fmt.Fprintf(p.Out, "medians of %d runs in turn, %d threads; peer: %s\n", len(c.Ours), c.Threads, c.Peer)
}
