package compute

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Device is one open card. Its methods may be called from any goroutine; the
// work happens on the device's own one, in the order of the calls. They must
// not be called from inside Do, Record or another Device method's function:
// that would wait for itself.
type Device struct {
	info Info
	opts Options
	back backend
	jobs chan *job
	stop chan struct{} // closed by Close
	done chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	closed bool
	fault  error // why the device is of no more use

	builder builder
	waiting atomic.Bool  // the device's goroutine waits for a compiler
	waited  atomic.Int64 // how often it has

	used   atomic.Int64
	pinned atomic.Int64
	limit  atomic.Int64 // bytes of device memory that may be used, 0: all
	queue  Queue
	stage  *Host

	// children, in order of making: closed last first
	programs []*Program // guarded by builder.mu
	bases    map[*base]struct{}
	hosts    map[*Host]struct{}
	seqs     map[*Sequence]struct{}
}

type job struct {
	fn   func() error
	done chan error
}

// Open makes a context on the device that i describes.
func Open(drv Driver, i Info, o Options) (*Device, error) {
	d := &Device{
		info: i, opts: o.defaults(),
		jobs: make(chan *job), stop: make(chan struct{}), done: make(chan struct{}),
		bases: map[*base]struct{}{}, hosts: map[*Host]struct{}{}, seqs: map[*Sequence]struct{}{},
	}
	d.queue.dev = d
	d.builder.dev, d.builder.most = d, builders(i, d.opts)
	sweepCache(d.opts.Cache)
	go d.loop()
	err := d.run(d.opts.Build, func() (err error) {
		d.back, err = drv.open(i, d.opts)
		return err
	})
	if err != nil {
		close(d.stop)
		return nil, fmt.Errorf("open %s: %w", i, err)
	}
	return d, nil
}

// loop is the device's goroutine. CUDA contexts belong to threads, so it keeps
// one for itself.
func (d *Device) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(d.done)
	for {
		select {
		case j := <-d.jobs:
			j.done <- guarded(j.fn)
		case <-d.stop:
			return
		}
	}
}

// guarded turns a panic of fn into an error: the caller's goroutine is another
// one, and a broken step must not end the process.
func guarded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanicked, p, debug.Stack())
		}
	}()
	return fn()
}

// run hands fn to the device's goroutine and waits for it, at most limit. A
// device that failed is not asked again.
func (d *Device) run(limit time.Duration, fn func() error) error {
	d.mu.Lock()
	err, closed := d.fault, d.closed
	d.mu.Unlock()
	switch {
	case err != nil:
		return err
	case closed:
		return ErrClosed
	}
	return d.hand(limit, fn)
}

func (d *Device) hand(limit time.Duration, fn func() error) error {
	j := &job{fn: fn, done: make(chan error, 1)}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	waited := d.waited.Load()
	for jobs, stop := d.jobs, d.stop; ; {
		select {
		case jobs <- j:
			jobs, stop = nil, nil
		case <-stop:
			return ErrClosed
		case err := <-j.done:
			if err != nil && fatal(err) {
				d.fail(err)
			}
			return err
		case <-timer.C:
			// The time of a compiler, which has a limit of its own, is not the device's.
			n := d.waited.Load()
			if !d.waiting.Load() && n == waited {
				return d.hung(limit)
			}
			waited = n
			timer.Reset(limit)
		}
	}
}

func (d *Device) hung(limit time.Duration) error {
	err := fmt.Errorf("%s: %w: no answer in %v", d.info, ErrHung, limit)
	d.fail(err)
	return err
}

func (d *Device) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		d.fault = err
	}
}

// Err says why the device is of no more use: nil while it works.
func (d *Device) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// Memory gives free and total bytes of device memory as the driver reports
// them; known is false when it reports nothing.
func (d *Device) Memory() (free, total int64, known bool) {
	err := d.run(d.opts.Watchdog, func() error {
		free, total, known = d.back.memory()
		return nil
	})
	return d.left(free, total, known && err == nil)
}

// Used gives the bytes that this program holds on the device, and pinned for it
// in host memory.
func (d *Device) Used() (device, pinned int64) { return d.used.Load(), d.pinned.Load() }

// Do runs fn on the device's goroutine. What fn enqueues runs in order; Do
// waits for all of it before it returns, unless fn's last act was Leave. The
// queue is valid inside fn only.
func (d *Device) Do(fn func(q *Queue) error) error {
	return d.run(d.opts.Watchdog, func() error {
		q := &d.queue
		q.leave, q.fenced = false, true
		err := fn(q)
		if err != nil {
			// The first error counts; what was enqueued must still end before
			// the memory it uses may go.
			d.back.finish()
			return err
		}
		if q.leave {
			return nil
		}
		return q.Finish()
	})
}

// Close frees everything that was made on the device, and the context. A
// device that hung is left alone: its goroutine may never come back.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	fault := d.fault
	d.mu.Unlock()
	built := d.builder.stop()
	if errors.Is(fault, ErrHung) {
		close(d.stop)
		return nil
	}
	select {
	case <-built:
	case <-time.After(closeGrace):
		// Memory goes at once, the context when the compilers let it go.
		err := d.hand(d.opts.Watchdog, func() error {
			err := d.back.finish()
			d.freeMemory()
			return err
		})
		go func() {
			<-built
			d.end()
		}()
		return known(fault, err)
	}
	return known(fault, d.end())
}

// known leaves out what a device's fault has said before.
func known(fault, err error) error {
	if fault != nil {
		return nil
	}
	return err
}

// end frees everything that is left, and the context.
func (d *Device) end() error {
	defer close(d.stop)
	return d.hand(d.opts.Watchdog, func() error {
		err := d.back.finish()
		for s := range d.seqs {
			s.free()
		}
		d.builder.mu.Lock()
		list := d.programs
		d.programs = nil
		d.builder.mu.Unlock()
		for i := len(list) - 1; i >= 0; i-- {
			list[i].free()
		}
		d.freeMemory()
		d.back.close()
		return err
	})
}

// freeMemory gives back what callers did not. It runs on the device's goroutine.
func (d *Device) freeMemory() {
	for s := range d.seqs {
		s.free()
	}
	for b := range d.bases {
		b.free()
	}
	for h := range d.hosts {
		h.free()
	}
}
