// Package ops is the Go side of the kernels: for every operation its arguments
// in order and its launch geometry. Constructors have what they need compiled and are
// called outside Do; the Run methods enqueue and are called inside Do or Record.
//
// Matrices are row-major, activations are rows of floats, one row a token.
package ops

import (
	"sync"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Set holds the compiled kernels of one device (ready.go).
type Set struct {
	dev *compute.Device

	mu       sync.Mutex
	programs map[string]*compute.Program
	wanted   []*compute.Program // those of Ready, in the order of asking
	wishes   []wish
	granted  map[*compute.Program]bool // wishes that Ready has looked at, or try
	tables   map[string]*compute.Buffer
	none     *compute.Buffer // stands for an argument that is not used
	lanes    int
	tune     tune

	matrixUnits bool // there are some (units.go)
	byteUnits   bool // quantised formats take those over 8-bit numbers (mma.cl)
	flashUnits  bool // attention has a kernel for them
	tryUnits    bool // not yet proven on this device
	unitsErr    error
	halfTiles   []kernels.TileHalf
	extra       []string // macros that measurements try
}

// New makes an empty set for a device.
func New(dev *compute.Device) (*Set, error) {
	s := &Set{dev: dev, programs: map[string]*compute.Program{}, granted: map[*compute.Program]bool{}, tables: map[string]*compute.Buffer{}}
	s.lanes = dev.Info().Features.Lanes()
	s.tune.waves = 32
	s.chooseUnits()
	var err error
	s.none, err = dev.Alloc(256)
	return s, err
}

// Device is the device of the set.
func (s *Set) Device() *compute.Device { return s.dev }

// table gives a grid on the device; for "" a buffer that nobody reads.
func (s *Set) table(name string) (*compute.Buffer, error) {
	if name == "" {
		return s.none, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.tables[name]; b != nil {
		return b, nil
	}
	data, err := kernels.Table(name, s.dev.Info().Features.Nvidia > 0)
	if err != nil {
		return nil, err
	}
	b, err := s.dev.Alloc(int64(len(data)))
	if err != nil {
		return nil, err
	}
	if err := s.dev.Do(func(q *compute.Queue) error { return q.Write(b, 0, data) }); err != nil {
		return nil, err
	}
	s.tables[name] = b
	return b, nil
}

// Free gives the buffers of the set back. The compiled kernels stay with the
// device; those that no compiler has begun with are dropped.
func (s *Set) Free() {
	s.drop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, b := range s.tables {
		b.Free()
		delete(s.tables, name)
	}
	s.none.Free()
}

// or gives b, or the unused buffer for nil.
func (s *Set) or(b *compute.Buffer) *compute.Buffer {
	if b == nil {
		return s.none
	}
	return b
}

func up(n, by int) int { return (n + by - 1) / by }
