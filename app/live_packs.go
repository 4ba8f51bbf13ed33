package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"outcrop/engine/catalog"
	"outcrop/engine/plan"
)

// LivePacks is the user's list of packs. What stands inside a file is read by
// a child process of this program, so that a file that breaks the reader
// costs one line in the list and not the window.
type LivePacks struct {
	Catalog *catalog.Catalog
	Root    string // of the machine that plans are made for; "" is this one

	mu     sync.Mutex
	folder string
	site   string
}

var _ Packs = (*LivePacks)(nil)

// placer is told where packs are fetched from and put.
type placer interface{ SetPlaces(folder, site string) }

// SetPlaces sets the folder for fetched packs and the site they come from;
// "" is the default.
func (l *LivePacks) SetPlaces(folder, site string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.folder, l.site = folder, site
}

func (l *LivePacks) downloader() *catalog.Downloader {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &catalog.Downloader{Dir: l.folder, Site: l.site, Token: os.Getenv("HF_TOKEN")}
	if d.Dir == "" {
		d.Dir = catalog.PacksDir()
	}
	return d
}

// List gives the starter, unpacked so that it can be started, and what the
// user added.
func (l *LivePacks) List() ([]catalog.Entry, error) {
	path, err := l.Catalog.Starter()
	list, lerr := l.Catalog.List()
	for i := range list {
		if list[i].Demo && err == nil {
			list[i].Path = path
		}
	}
	return list, errors.Join(err, lerr)
}

// Add puts what lies at a path on the list.
func (l *LivePacks) Add(path string) ([]catalog.Entry, error) { return l.Catalog.Add(path, "") }

// Remove takes a pack off the list; undo puts it back.
func (l *LivePacks) Remove(name string) (undo func() error, err error) {
	e, err := l.Catalog.Remove(name)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Catalog.Restore(e) }, nil
}

// Health looks at a pack's files. The starter is unpacked when it is needed.
func (l *LivePacks) Health(e catalog.Entry) catalog.Health {
	if e.Demo {
		if _, err := l.Catalog.Starter(); err != nil {
			return catalog.Health{Status: catalog.Gone, Text: err.Error()}
		}
	}
	return catalog.Check(e)
}

// Inspect reads everything that a file says of itself.
func (l *LivePacks) Inspect(ctx context.Context, e catalog.Entry) (PackInfo, error) {
	var in PackInfo
	err := ask(ctx, &in, "packs", "inspect", e.Path, "--json")
	return in, err
}

// Plan says whether and how a pack fits.
func (l *LivePacks) Plan(ctx context.Context, e catalog.Entry, w plan.Wishes) (plan.Plan, error) {
	args := []string{"plan", e.Path, "--json"}
	if w.Context > 0 {
		args = append(args, fmt.Sprintf("--context=%d", w.Context))
	}
	if w.KV != "" {
		args = append(args, "--kv="+w.KV)
	}
	if w.RAMFloor > 0 {
		args = append(args, fmt.Sprintf("--ram-floor=%d", w.RAMFloor))
	}
	if w.VRAMReserve > 0 {
		args = append(args, fmt.Sprintf("--vram-reserve=%d", w.VRAMReserve))
	}
	var vram []int
	for _, n := range w.VRAMCaps {
		vram = append(vram, int(n>>30))
	}
	args = append(args, placeArgs(string(w.Placement), string(w.Experts), w.Slots, limitText(vram), w.RAMCap)...)
	switch {
	case w.NoCard:
		args = append(args, "--no-card")
	case len(w.Cards) > 0 && l.Root == "":
		args = append(args, "--device="+strings.Join(w.Cards, ","))
	}
	if l.Root != "" {
		args = append(args, "--root="+l.Root)
	}
	var p plan.Plan
	err := ask(ctx, &p, args...)
	return p, err
}

// Measure measures this machine with a pack, so that plans know its rates.
func (l *LivePacks) Measure(ctx context.Context, e catalog.Entry) error {
	var p plan.Plan
	return askFor(ctx, 3*time.Minute, &p, "plan", e.Path, "--measure", "--json")
}

// measurer measures the machine that packs run on.
type measurer interface {
	Measure(ctx context.Context, e catalog.Entry) error
}

// ask runs this program with arguments and reads its JSON.
func ask(ctx context.Context, v any, args ...string) error {
	return askFor(ctx, 30*time.Second, v, args...)
}

func askFor(ctx context.Context, most time.Duration, v any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var out, fault bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &fault
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(fault.String())
		if i := strings.LastIndex(text, "\n"); i >= 0 {
			text = text[i+1:]
		}
		text = strings.TrimPrefix(text, "outcrop: ")
		if text == "" {
			text = err.Error()
		}
		return errors.New(text)
	}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		return fmt.Errorf("read the answer of outcrop %s: %w", strings.Join(args[:min(2, len(args))], " "), err)
	}
	return nil
}

// Known lists packs that can be fetched.
func (l *LivePacks) Known() []catalog.Known { return catalog.KnownPacks }

// Find looks a reference up.
func (l *LivePacks) Find(ctx context.Context, ref string) (catalog.Source, error) {
	return l.downloader().Find(ctx, ref)
}

// Download fetches a source and puts it on the list.
func (l *LivePacks) Download(ctx context.Context, s catalog.Source, progress func(catalog.Progress)) ([]catalog.Entry, error) {
	path, err := l.downloader().Get(ctx, s, progress)
	if err != nil {
		return nil, err
	}
	return l.Catalog.AddFrom(path, "", s.Origin)
}

// Unfinished lists what was begun.
func (l *LivePacks) Unfinished() ([]catalog.Unfinished, error) { return l.downloader().Unfinished() }

// Discard deletes what an unfinished download left.
func (l *LivePacks) Discard(name string) error { return l.downloader().Discard(name) }
