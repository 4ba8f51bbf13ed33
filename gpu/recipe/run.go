package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"outcrop/gpu"
)

// Job is another program that runs under a recipe.
type Job struct {
	Args     []string // program and arguments
	In       io.Reader
	Out, Err io.Writer
	Keep     string        // folder for recipe.json, output.txt and readings.jsonl; "" keeps nothing
	Machine  gpu.Machine   // whose cards are read
	Root     fs.FS         // where the readings come from
	Live     bool          // Root is the machine this runs on
	Every    time.Duration // between readings; 0: one second
}

// Reading is one line of readings.jsonl: what the guard looks at while a job
// runs.
type Reading struct {
	Time      time.Time                 `json:"time"`
	Available gpu.Reading[int64]        `json:"available"` // bytes of RAM
	Pressure  gpu.Reading[gpu.Pressure] `json:"pressure"`
	Process   gpu.Reading[gpu.ProcMem]  `json:"process"` // the job's own memory
	Faults    gpu.Reading[int64]        `json:"major_faults"`
	Cards     []gpu.CardReadings        `json:"cards"`
}

// Ended is how a job ended, in words, with the last readings before it.
type Ended struct {
	Code   int     `json:"code"` // exit code; 128 and its number for a signal, as shells have it
	Signal string  `json:"signal,omitempty"`
	OOM    bool    `json:"oom"` // the kernel ended it for want of memory
	Text   string  `json:"text"`
	Last   Reading `json:"last"`
}

// Run starts a program with the recipe in its environment, shows and keeps its
// output, and reads RAM, pressure and cards every second until it ends. The
// error is for a program that could not be started; how it ended is in Ended.
func (r Recipe) Run(ctx context.Context, j Job) (Ended, error) {
	if len(j.Args) == 0 {
		return Ended{}, errors.New("run: no program given")
	}
	if j.Every <= 0 {
		j.Every = time.Second
	}
	out, errw := j.Out, j.Err
	var log io.Writer = io.Discard
	if j.Keep != "" {
		files, err := r.keep(j.Keep)
		if err != nil {
			return Ended{}, err
		}
		defer files.close()
		out, errw, log = io.MultiWriter(j.Out, files.out), io.MultiWriter(j.Err, files.out), files.readings
	}
	c := exec.CommandContext(ctx, j.Args[0], j.Args[1:]...)
	c.Env = r.Apply(os.Environ())
	c.Stdin, c.Stdout, c.Stderr = j.In, out, errw
	before := oomKills(j)
	if err := c.Start(); err != nil {
		return Ended{}, fmt.Errorf("run %s: %w", j.Args[0], err)
	}
	done := make(chan struct{})
	var last Reading
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		last = j.watch(c.Process.Pid, log, done)
	}()
	err := c.Wait()
	close(done)
	wg.Wait()
	return ended(j, c, err, last, oomKills(j) > before), nil
}

// watch writes readings until the job has ended, and gives the last ones.
func (j Job) watch(pid int, log io.Writer, done <-chan struct{}) Reading {
	p := strconv.Itoa(pid)
	s := gpu.NewSampler(j.Root, j.Machine, j.Live)
	defer s.Close()
	if j.Live {
		s.Watch(p)
	}
	enc := json.NewEncoder(log)
	tick := time.NewTicker(j.Every)
	defer tick.Stop()
	var last Reading
	for {
		h := j.Machine.Host
		if h.OS == "linux" {
			h.Memory, h.Cgroup = gpu.ReadMeminfo(j.Root), gpu.ReadCgroup(j.Root)
		}
		x := Reading{Time: time.Now(), Available: h.Available(), Pressure: gpu.ReadPressure(j.Root, "proc/pressure/memory"), Process: gpu.ReadProcMem(j.Root, p), Faults: gpu.ReadMajorFaults(j.Root, p)}
		x.Cards = s.Sample(x.Time)
		if x.Process.Known || last.Time.IsZero() {
			last = x // a process that is going has no memory any more: keep the reading before
		}
		_ = enc.Encode(x) // a full disk must not end the job
		select {
		case <-done:
			return last
		case <-tick.C:
		}
	}
}

// oomKills is the kernel's count of processes it ended, of our group or of the
// machine.
func oomKills(j Job) int64 {
	if g := gpu.ReadCgroup(j.Root).OOMKills; g.Known {
		return g.Value
	}
	return gpu.ReadVMStat(j.Root).Value.OOMKills
}

// ended says in words how a program ended.
func ended(j Job, c *exec.Cmd, err error, last Reading, oom bool) Ended {
	e := Ended{Code: c.ProcessState.ExitCode(), Last: last}
	n := 0
	if e.Signal, n = signalOf(c.ProcessState); n > 0 {
		e.Code = 128 + n
	}
	name := filepath.Base(j.Args[0])
	switch {
	case err == nil:
		e.Text = name + " ended well"
	case e.Signal == "killed" && oom, e.Code == 137 && oom:
		e.OOM = true
		e.Text = fmt.Sprintf("%s was ended by the kernel because memory ran out; a second before, %.1f GiB of RAM were available and it held %.1f GiB of its own", name, float64(last.Available.Value)/(1<<30), float64(last.Process.Value.Anon)/(1<<30))
	case e.Signal != "":
		e.Text = fmt.Sprintf("%s was ended by a signal (%s)", name, e.Signal)
	default:
		e.Text = fmt.Sprintf("%s ended with code %d", name, e.Code)
	}
	return e
}

// kept are the files of a job.
type kept struct{ out, readings *os.File }

func (k kept) close() {
	k.out.Close()
	k.readings.Close()
}

func (r Recipe) keep(dir string) (kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return kept{}, fmt.Errorf("keep the run: %w", err)
	}
	text, err := r.Export("json")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "recipe.json"), []byte(text), 0o600)
	}
	if err != nil {
		return kept{}, fmt.Errorf("keep the run: %w", err)
	}
	var k kept
	if k.out, err = os.OpenFile(filepath.Join(dir, "output.txt"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		return kept{}, fmt.Errorf("keep the run: %w", err)
	}
	if k.readings, err = os.OpenFile(filepath.Join(dir, "readings.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		k.out.Close()
		return kept{}, fmt.Errorf("keep the run: %w", err)
	}
	return k, nil
}
