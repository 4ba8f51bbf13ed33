// Package rates measures how fast this machine moves and computes weights: the
// CPU by thread count, RAM, the disk a pack lies on, the link to each card. The
// planner's speeds are only as good as these numbers, and guessing them is what
// makes a plan promise what the machine cannot do.
//
// Each rate is measured once and kept in a file under a key that says what it
// depends on: the processor and its kernels, the file system, a card with its
// driver's version and link width. When a key changes, that rate is measured
// again and the others stay.
package rates

import (
	"context"
	"fmt"
	"time"

	"outcrop/engine/quant"
	"outcrop/gpu"
)

// CPU is how fast the processor computes with weights.
type CPU struct {
	Key     string    `json:"key"`
	Time    time.Time `json:"time"`
	Experts []Threads `json:"experts"` // expert weights, by number of threads
	RAM     float64   `json:"ram"`     // bytes a second read from memory by the most threads
}

// Threads is the rate of a number of threads together.
type Threads struct {
	Threads   int     `json:"threads"`
	PerSecond float64 `json:"per_second"` // bytes of expert weights
	Format    string  `json:"format"`
}

// Disk is how fast a file system reads past the page cache.
type Disk struct {
	Key    string    `json:"key"`
	Time   time.Time `json:"time"`
	Expert float64   `json:"expert"` // bytes a second, random reads of Size
	Size   int64     `json:"size"`   // bytes: an expert of the pack it was measured with
	Random float64   `json:"random"` // random reads of 2 MB
	Stream float64   `json:"stream"` // one part of the file after the other
	How    string    `json:"how"`    // "direct", or how the page cache was kept out
}

// Card is how fast a card and its link are.
type Card struct {
	Key          string        `json:"key"`
	Time         time.Time     `json:"time"`
	HostToDevice float64       `json:"host_to_device"` // bytes a second from pinned memory
	HandOff      time.Duration `json:"hand_off"`       // one small write and one read-back
	// Bytes of weights a second that one token is multiplied with, and of prompts
	// bytes a second times tokens; 0: its kernels did not run.
	Read     float64 `json:"read"`
	Multiply float64 `json:"multiply"`
}

// Rates is everything measured so far.
type Rates struct {
	Version int    `json:"version"`
	CPU     []CPU  `json:"cpu"`
	Disks   []Disk `json:"disks"`
	Cards   []Card `json:"cards"`
}

// version changes when rates are measured in another way.
const version = 2

// Work says what to measure. Only Machine is needed.
type Work struct {
	Machine gpu.Machine
	Threads int // most threads the engine would use; 0: one a core

	// Pack is a file of the pack; empty: no disk is measured. Expert is the
	// size of one of its experts in bytes, Format, Rows and Cols the shape of an
	// expert's largest matrix; zero values stand for a common expert.
	Pack       string
	Expert     int64
	Format     quant.Type
	Rows, Cols int

	// Links are the cards that can be used.
	Links map[gpu.PCI]Link

	Again    bool // measure everything, whatever is kept
	Progress func(what string)

	effort effort // zero: the usual one
}

// effort bounds what measuring costs.
type effort struct {
	cpuBytes  int64         // weights that are multiplied
	cpuTime   time.Duration // of each of three runs of a number of threads
	diskTime  time.Duration // of each of three ways of reading, at most
	diskBytes int64         // likewise
	diskLeast int64         // smallest file worth measuring with
	linkTime  time.Duration
}

// usual is the effort outside of tests. The weights are several times the
// caches of any desktop processor, so that every byte comes from RAM, as
// experts do. The disk stays within two seconds and a gigabyte, and a smaller
// file would soon be read at the same places again, which some disk remembers.
var usual = effort{
	cpuBytes: 256 << 20, cpuTime: 120 * time.Millisecond,
	diskTime: 600 * time.Millisecond, diskBytes: 320 << 20, diskLeast: 256 << 20,
	linkTime: 150 * time.Millisecond,
}

// Missing says what Measure would measure, in words. It is quick.
func (s *Store) Missing(w Work) []string {
	var out []string
	for _, j := range s.jobs(w) {
		out = append(out, j.what)
	}
	return out
}

// Measure measures what is missing or has another key now, keeps it and saves
// the file. It takes a few seconds the first time, and no time when nothing has
// changed. What cannot be measured is in the error; the rest is kept.
func (s *Store) Measure(ctx context.Context, w Work) (changed bool, err error) {
	for _, j := range s.jobs(w) {
		if err := ctx.Err(); err != nil {
			return changed, err
		}
		if w.Progress != nil {
			w.Progress(j.what)
		}
		if jerr := j.run(ctx); jerr != nil {
			err = fmt.Errorf("measure %s: %w", j.what, jerr)
			continue
		}
		changed = true
	}
	if changed {
		if serr := s.save(); serr != nil {
			return changed, serr
		}
	}
	return changed, err
}

type job struct {
	what string
	run  func(ctx context.Context) error
}

func (s *Store) jobs(w Work) (out []job) {
	w = w.defaults()
	if key := cpuKey(w); w.Again || s.cpu(key) == nil {
		out = append(out, job{"the processor", func(ctx context.Context) error {
			c, err := measureCPU(ctx, w)
			if err == nil {
				c.Key, c.Time = key, time.Now()
				s.r.CPU = put(s.r.CPU, c, func(o CPU) bool { return o.Key == key })
			}
			return err
		}})
	}
	if w.Pack != "" {
		key, err := diskKey(w.Pack)
		if d := s.disk(key); w.Again || d == nil || d.Size != w.Expert {
			out = append(out, job{"the disk", func(ctx context.Context) error {
				if err != nil {
					return err
				}
				d, err := measureDisk(ctx, w)
				if err == nil {
					d.Key, d.Time = key, time.Now()
					s.r.Disks = put(s.r.Disks, d, func(o Disk) bool { return o.Key == key })
				}
				return err
			}})
		}
	}
	for _, c := range w.Machine.Cards {
		l, usable := w.Links[c.PCI]
		if key := cardKey(c); usable && (w.Again || s.card(key) == nil) {
			out = append(out, job{"the link of " + c.Name, func(ctx context.Context) error {
				m, err := measureCard(ctx, l, w.effort)
				if err == nil {
					m.Key, m.Time = key, time.Now()
					s.r.Cards = put(s.r.Cards, m, func(o Card) bool { return o.Key == key })
				}
				return err
			}})
		}
	}
	return out
}

// defaults fills in a common expert: 768 x 2048 in Q4_K, 2.65 MB with three
// matrices, as in models of 30B-A3B shape.
func (w Work) defaults() Work {
	if w.Threads == 0 {
		w.Threads = max(1, w.Machine.Host.CPU.Cores)
	}
	if w.Rows == 0 || w.Cols == 0 {
		w.Format, w.Rows, w.Cols = quant.Q4_K, 768, 2048
	}
	if w.effort == (effort{}) {
		w.effort = usual
	}
	if w.Expert == 0 {
		w.Expert = 3 * 768 * 2048 * 9 / 16
	}
	return w
}

// put replaces the entry that same finds, or adds one.
func put[T any](list []T, v T, same func(T) bool) []T {
	for i := range list {
		if same(list[i]) {
			list[i] = v
			return list
		}
	}
	return append(list, v)
}

// cpuKey is what the processor's rates depend on: itself, the threads allowed,
// the kernels in use and the format that was multiplied.
func cpuKey(w Work) string {
	return fmt.Sprintf("%s, %d threads, %s, %s %dx%d", w.Machine.Host.CPU.Name, w.Threads, quant.Active(), w.Format, w.Rows, w.Cols)
}

// cardKey is what a card's rates depend on.
func cardKey(c gpu.Card) string {
	width := "unknown width"
	if c.Link.Width.Known {
		width = fmt.Sprintf("x%d", c.Link.Width.Value)
	}
	return fmt.Sprintf("%s %s, %s %s, %s", c.PCI, c.ID(), c.Driver, c.DriverVersion.Or("of unknown version"), width)
}
