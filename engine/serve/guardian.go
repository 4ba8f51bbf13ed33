package serve

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"outcrop/engine"
	"outcrop/engine/guard"
	"outcrop/engine/wire"
)

// errMemory ends an answer because memory is nearly gone.
var errMemory = errors.New("memory is nearly gone")

// guardConfig is a preset by its name, for the machine below root; "" is
// daily, and "off" measures and never asks for anything.
func guardConfig(preset string, root fs.FS) guard.Config {
	var c guard.Config
	for _, p := range guard.Presets {
		if p.Name == preset || preset == "" && p.Name == "daily" {
			c = p.Config
		}
	}
	return c.For(memoryNow(root).RAMTotal.N)
}

// memoryNow is one look at a machine's memory, without rates.
func memoryNow(root fs.FS) guard.Reading {
	return guard.NewReader(root, 0, os.Getpagesize()).Read(time.Now(), nil, nil)
}

// MemoryLevel is the guard's word for the memory of a machine: good, watch,
// act, critical or unknown.
func MemoryLevel(root fs.FS) string {
	r := memoryNow(root)
	return guard.LevelOf(r, guardConfig("", root)).String()
}

// watcher has the guard look after a model until the returned function is
// called, which waits for the end.
func watcher(m *engine.Model, o engine.WatchOptions) func(onChange func(guard.Decision)) (stop func() error) {
	return func(onChange func(guard.Decision)) func() error {
		o.OnChange = onChange
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- engine.Watch(ctx, m, o) }()
		return func() error {
			cancel()
			return <-done
		}
	}
}

// guarded does the server's part of a decision: the model has given back what
// it could, and what is left is the answer and the pack itself.
func (s *Server) guarded(d guard.Decision) {
	words := ""
	for _, w := range d.Words {
		words = w
		s.log.Warn("guard", "step", d.Step.String(), "what", w)
	}
	s.mu.Lock()
	before := s.guardStep
	s.guardStep = d.Step
	s.mu.Unlock()
	s.tele.wake()
	if d.Step >= guard.EndRequest && before < guard.EndRequest {
		s.endAnswer(errMemory)
	}
	if d.Step >= guard.Unload && before < guard.Unload && s.o.Unload != nil {
		s.o.Unload(words)
	}
}

// guardNow is the guard's part of telemetry.
func (s *Server) guardNow(t engine.Sample) wire.Guard {
	g := wire.Guard{Preset: s.o.Guard, Step: t.Step, Acting: t.Step != "" && t.Step != guard.Normal.String(), Words: []string{}}
	if g.Preset == "" {
		g.Preset = "daily"
	}
	for _, w := range t.Words {
		g.Words = append(g.Words, w.Text)
	}
	return g
}
