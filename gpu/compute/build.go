package compute

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"outcrop/gpu/kernels"
)

// Modules are compiled beside the device's goroutine, several at once, each on a
// thread of its own: no launch and no copy happens there, and the device's
// goroutine waits for a module only where it launches one of its kernels.

// Urgency says when a module is compiled.
type Urgency int

const (
	Now   Urgency = iota // in the order of asking
	Later                // when nothing else is compiled or waits to be
	Spare                // only when somebody waits for it
)

// ErrDropped is what a module ends with that nobody wanted any more.
var ErrDropped = errors.New("not compiled: no longer wanted")

// closeGrace is how long Close waits for compilers, which cannot be stopped.
const closeGrace = 200 * time.Millisecond

// builder compiles the modules of a device.
type builder struct {
	dev  *Device
	most int // at once

	mu      sync.Mutex
	queue   [2][]*Program // Now, Later
	running [2]int
	stopped bool
	idle    chan struct{} // closed once stopped and nothing runs
}

// builders is how many modules are compiled at once when Options do not say. The
// compiler of processors has a lock of its own, two at once gain nothing there.
func builders(i Info, o Options) int {
	switch {
	case o.Builders > 0:
		return o.Builders
	case i.CPU:
		return 1
	}
	return min(max(runtime.GOMAXPROCS(0), 1), 16)
}

// Prepare has a module compiled, or taken from the cache, and returns at once.
func (d *Device) Prepare(m kernels.Module, u Urgency) *Program {
	p := &Program{dev: d, name: m.Name, mod: m, waits: m.Waits && d.opts.Overlap, kernels: map[string]*Kernel{}, done: make(chan struct{}), urgency: u}
	if u == Later && d.info.CPU {
		p.urgency, u = Spare, Spare // a compiler in the background would take the device's own time
	}
	b := &d.builder
	b.mu.Lock()
	defer b.mu.Unlock()
	d.programs = append(d.programs, p)
	switch {
	case b.stopped:
		p.end(ErrClosed)
	case u != Spare:
		b.queue[u] = append(b.queue[u], p)
		b.kick()
	}
	return p
}

// Load compiles a module for the device, or takes it from the cache.
func (d *Device) Load(m kernels.Module) (*Program, error) {
	p := d.Prepare(m, Now)
	if err := p.Wait(context.Background()); err != nil {
		return nil, err
	}
	return p, nil
}

// kick starts what may start. The caller holds mu.
func (b *builder) kick() {
	for u := range b.queue {
		for len(b.queue[u]) > 0 && b.running[Now]+b.running[Later] < b.most {
			if Urgency(u) == Later && b.running[Now]+len(b.queue[Now]) > 0 {
				return
			}
			p := b.queue[u][0]
			b.queue[u] = b.queue[u][1:]
			b.running[u]++
			p.running = true
			go b.run(p, u)
		}
	}
}

// run compiles p.
func (b *builder) run(p *Program, u int) {
	d := b.dev
	err := d.Err()
	if err == nil {
		err = d.aside(func() error {
			ref, err := d.back.build(source{Module: p.mod, features: d.info.Features, cache: d.opts.Cache, plain: d.opts.Plain})
			if err == nil {
				p.takeAll(ref)
			}
			return err
		})
	}
	if err != nil {
		if fatal(err) {
			d.fail(err)
		}
		err = fmt.Errorf("load %s on %s: %w", p.name, d.info, err)
	}
	p.end(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[u]--
	if b.stopped && b.running[Now]+b.running[Later] == 0 {
		close(b.idle)
	}
	b.kick()
}

// aside runs fn on a thread that the backend knows, other than the device's.
func (d *Device) aside(fn func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return guarded(func() error {
		detach, err := d.back.attach()
		if err != nil {
			return err
		}
		defer detach()
		return fn()
	})
}

// stop drops what has not begun, and gives a channel that is closed when what has
// begun has ended.
func (b *builder) stop() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	for u, list := range b.queue {
		for _, p := range list {
			p.end(ErrClosed)
		}
		b.queue[u] = nil
	}
	if !b.stopped {
		b.stopped, b.idle = true, make(chan struct{})
		if b.running[Now]+b.running[Later] == 0 {
			close(b.idle)
		}
	}
	return b.idle
}

// take removes p from the queue; false: it is not there.
func (b *builder) take(p *Program) bool {
	for u, list := range b.queue {
		for i := range list {
			if list[i] == p {
				b.queue[u] = append(list[:i:i], list[i+1:]...)
				return true
			}
		}
	}
	return false
}

// hurry puts p before everything that has not begun.
func (p *Program) hurry() {
	b := &p.dev.builder
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.running || p.ended() {
		return
	}
	if b.stopped {
		p.end(ErrClosed)
		return
	}
	b.take(p)
	b.queue[Now] = append([]*Program{p}, b.queue[Now]...)
	b.kick()
}

// Drop gives up on a module whose compiler has not begun.
func (p *Program) Drop() {
	b := &p.dev.builder
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.take(p) || p.urgency == Spare && !p.running && !p.ended() {
		p.end(ErrDropped)
	}
}

// end notes the result. Nobody but the one who took p from the queue calls it.
func (p *Program) end(err error) {
	p.err = err
	close(p.done)
}

func (p *Program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Done is closed when the module is compiled, or has failed.
func (p *Program) Done() <-chan struct{} { return p.done }

// Name is the module's.
func (p *Program) Name() string { return p.name }

// Wait waits until the module is compiled. Those that somebody waits for come
// before the others.
func (p *Program) Wait(ctx context.Context) error {
	p.hurry()
	timer := time.NewTimer(p.dev.opts.Build)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("load %s: %w", p.name, p.dev.hung(p.dev.opts.Build))
	}
}
