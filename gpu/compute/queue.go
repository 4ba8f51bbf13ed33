package compute

import "fmt"

// stageSize is one half of the pinned buffer through which ordinary host memory
// travels: pageable copies reach a twentieth of the link's speed on NVIDIA (3
// of 55 GB/s measured), and a copy through it leaves the caller's memory free
// on return.
const stageSize = 4 << 20

// Queue enqueues work inside Do or Record. It is not for use outside.
type Queue struct {
	dev       *Device
	leave     bool
	recording bool
	fenced    bool // the next launch may not overlap
	l         launch
	pins      []*Host // host memory that a recording refers to
}

// Launch starts kernel k with groups work-groups of local work-items each.
func (q *Queue) Launch(k *Kernel, groups, local Dim, args ...Arg) error {
	if skip := q.dev.opts.Skip; skip != nil && skip(k.name) {
		return nil
	}
	if k.dev != q.dev {
		return fmt.Errorf("launch %s: the kernel belongs to %s", k.name, k.dev.info)
	}
	ref, err := k.handle()
	if err != nil {
		return fmt.Errorf("launch %s: %w", k.name, err)
	}
	l := &q.l
	l.kernel, l.name, l.groups, l.local, l.args = ref, k.name, groups.three(), local.three(), args
	l.overlap = k.prog.waits && !q.fenced
	q.fenced = false
	if err := l.check(q.dev.info.MaxGroup); err != nil {
		return err
	}
	for i := range args {
		b := args[i].buf
		if args[i].size == 0 && (b == nil || b.dev != q.dev || b.base.freed) {
			return fmt.Errorf("launch %s: argument %d is not a live buffer of %s", k.name, i, q.dev.info)
		}
	}
	if err := q.dev.back.launch(l); err != nil {
		return fmt.Errorf("launch %s on %s: %w", k.name, q.dev.info, err)
	}
	return nil
}

// Write copies src to b at off. src may be used again on return.
func (q *Queue) Write(b *Buffer, off int64, src []byte) error {
	if err := b.inside(off, int64(len(src))); err != nil {
		return err
	}
	if q.recording {
		return fmt.Errorf("write: only pinned memory can be recorded")
	}
	if len(src) == 0 {
		return nil
	}
	stage, err := q.staging()
	if err != nil {
		return err
	}
	for place := 0; len(src) > 0; place ^= 1 {
		half := stage[place*stageSize:][:stageSize]
		if err := q.dev.back.settle(place); err != nil {
			return q.wrap("write", err)
		}
		n := copy(half, src)
		if err := q.dev.back.write(b.ref, off, half[:n:n]); err != nil {
			return q.wrap("write", err)
		}
		if err := q.dev.back.mark(place); err != nil {
			return q.wrap("write", err)
		}
		src, off = src[n:], off+int64(n)
	}
	return nil
}

// Read copies b at off to dst, after all work enqueued before, and waits for it.
func (q *Queue) Read(dst []byte, b *Buffer, off int64) error {
	if err := b.inside(off, int64(len(dst))); err != nil {
		return err
	}
	if q.recording {
		return fmt.Errorf("read: only pinned memory can be recorded")
	}
	stage, err := q.staging()
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		n := min(len(dst), len(stage))
		if err := q.dev.back.read(stage[:n:n], b.ref, off); err != nil {
			return q.wrap("read", err)
		}
		if err := q.Finish(); err != nil {
			return err
		}
		copy(dst, stage[:n])
		dst, off = dst[n:], off+int64(n)
	}
	return nil
}

func (q *Queue) staging() ([]byte, error) {
	d := q.dev
	if d.stage == nil {
		h, err := d.host(2 * stageSize)
		if err != nil {
			return nil, fmt.Errorf("staging memory: %w", err)
		}
		d.stage = h
	}
	return d.stage.mem, nil
}

// WriteHost copies n bytes of h at hoff to b at off, asynchronously.
func (q *Queue) WriteHost(b *Buffer, off int64, h *Host, hoff, n int64) error {
	if err := q.pinned(b, off, h, hoff, n); err != nil {
		return err
	}
	return q.wrap("write", q.dev.back.write(b.ref, off, h.mem[hoff:hoff+n:hoff+n]))
}

// ReadHost copies n bytes of b at off to h at hoff, asynchronously: they are
// there after Finish.
func (q *Queue) ReadHost(h *Host, hoff int64, b *Buffer, off, n int64) error {
	if err := q.pinned(b, off, h, hoff, n); err != nil {
		return err
	}
	return q.wrap("read", q.dev.back.read(h.mem[hoff:hoff+n:hoff+n], b.ref, off))
}

func (q *Queue) pinned(b *Buffer, off int64, h *Host, hoff, n int64) error {
	if err := b.inside(off, n); err != nil {
		return err
	}
	if h == nil || h.freed || h.dev != q.dev {
		return fmt.Errorf("copy: not live pinned memory of %s", q.dev.info)
	}
	if hoff < 0 || n <= 0 || hoff+n > int64(len(h.mem)) {
		return fmt.Errorf("copy %d bytes at %d of %d bytes of pinned memory", n, hoff, len(h.mem))
	}
	if q.recording {
		q.pins = append(q.pins, h)
	}
	return nil
}

// Copy copies n bytes within the device. The ranges must not overlap.
func (q *Queue) Copy(dst *Buffer, doff int64, src *Buffer, soff, n int64) error {
	if err := dst.inside(doff, n); err != nil {
		return err
	}
	if err := src.inside(soff, n); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	return q.wrap("copy", q.dev.back.copy(dst.ref, doff, src.ref, soff, n))
}

// Fill sets n bytes of b at off to value.
func (q *Queue) Fill(b *Buffer, off, n int64, value byte) error {
	if err := b.inside(off, n); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	return q.wrap("fill", q.dev.back.fill(b.ref, off, n, value))
}

// Replay runs a recorded sequence.
func (q *Queue) Replay(s *Sequence) error {
	if s.freed || s.dev != q.dev {
		return fmt.Errorf("replay: not a live sequence of %s", q.dev.info)
	}
	if q.recording {
		return fmt.Errorf("replay: a sequence cannot hold another")
	}
	return q.wrap("replay", q.dev.back.replay(s.ref))
}

// Finish waits for everything enqueued so far.
func (q *Queue) Finish() error {
	if q.recording {
		return fmt.Errorf("finish: not possible while recording")
	}
	return q.wrap("wait", q.dev.back.finish())
}

// Fence keeps the next launch from beginning before everything enqueued so far
// has ended. Launches keep their order anyway and see each other's results; a
// fence is for data that kernels read ahead of that order, which are weights.
func (q *Queue) Fence() { q.fenced = true }

// Leave lets Do return without waiting. The caller must see to it that memory
// used by the work outlives it: a later Do that does not Leave ends it.
func (q *Queue) Leave() { q.leave = true }

func (q *Queue) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s on %s: %w", what, q.dev.info, err)
}

// Sequence is a recorded list of launches, copies and fills, to be run many
// times at little cost (a CUDA graph, a Level Zero command list, prepared
// OpenCL kernels). Arguments are fixed at recording; what changes from run to
// run lies in buffers.
type Sequence struct {
	dev   *Device
	ref   handle
	freed bool
	pins  []*Host // keeps them reachable
}

// Record takes down what fn enqueues, without running it.
func (d *Device) Record(fn func(q *Queue) error) (*Sequence, error) {
	s := &Sequence{dev: d}
	err := d.run(d.opts.Watchdog, func() error {
		if err := d.back.record(); err != nil {
			return err
		}
		q := &Queue{dev: d, recording: true, fenced: true}
		ferr := guarded(func() error { return fn(q) })
		ref, err := d.back.recorded()
		if ferr != nil {
			if err == nil {
				d.back.unrecord(ref)
			}
			return ferr
		}
		if err != nil {
			return err
		}
		s.ref, s.pins = ref, q.pins
		d.seqs[s] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record on %s: %w", d.info, err)
	}
	return s, nil
}

// Free gives the sequence back.
func (s *Sequence) Free() {
	if s == nil {
		return
	}
	s.dev.run(s.dev.opts.Watchdog, func() error {
		s.free()
		return nil
	})
}

func (s *Sequence) free() {
	if s.freed {
		return
	}
	s.freed = true
	s.dev.back.unrecord(s.ref)
	delete(s.dev.seqs, s)
}

// Slice is Buffer.Slice for use inside Do and Record.
func (q *Queue) Slice(b *Buffer, off, n int64) (*Buffer, error) { return b.slice(off, n) }
