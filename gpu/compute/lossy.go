package compute

import "sync/atomic"

// Lossy makes devices of another driver that are lost when a test says so: a
// real card cannot be pulled out in the middle of a kernel.
type Lossy struct {
	Driver
	left atomic.Int64 // launches until the loss; 0: none is due, -1: lost
}

// LoseAfter has the devices be lost at the n-th launch or replay from now.
func (l *Lossy) LoseAfter(n int) { l.left.Store(int64(n)) }

func (l *Lossy) open(i Info, o Options) (backend, error) {
	b, err := l.Driver.open(i, o)
	if err != nil {
		return nil, err
	}
	return &lossyBackend{b, l}, nil
}

type lossyBackend struct {
	backend
	l *Lossy
}

// step counts a launch.
func (b *lossyBackend) step() error {
	if n := b.l.left.Load(); n == 1 {
		b.l.left.Store(-1)
	} else if n > 1 {
		b.l.left.Store(n - 1)
	}
	return b.gone("launch")
}

func (b *lossyBackend) gone(call string) error {
	if b.l.left.Load() >= 0 {
		return nil
	}
	return &Error{API: b.l.Name(), Call: call, Code: -1, Name: "TEST_LOST", Kind: ErrLost}
}

func (b *lossyBackend) launch(l *launch) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.backend.launch(l)
}

func (b *lossyBackend) replay(h handle) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.backend.replay(h)
}

func (b *lossyBackend) alloc(n int64) (handle, error) {
	if err := b.gone("alloc"); err != nil {
		return 0, err
	}
	return b.backend.alloc(n)
}

func (b *lossyBackend) adopt(mem []byte) (handle, error) {
	if err := b.gone("adopt"); err != nil {
		return 0, err
	}
	return b.backend.adopt(mem)
}

func (b *lossyBackend) write(dst handle, off int64, src []byte) error {
	if err := b.gone("write"); err != nil {
		return err
	}
	return b.backend.write(dst, off, src)
}

func (b *lossyBackend) read(dst []byte, src handle, off int64) error {
	if err := b.gone("read"); err != nil {
		return err
	}
	return b.backend.read(dst, src, off)
}

func (b *lossyBackend) finish() error {
	if err := b.gone("finish"); err != nil {
		_ = b.backend.finish() // what runs on the real device must end before memory goes
		return err
	}
	return b.backend.finish()
}
