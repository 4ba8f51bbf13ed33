package ops

import (
	"encoding/binary"
	"errors"
	"math"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// hasUnits tells whether a device has matrix units that kernels know.
func hasUnits(f compute.Features) bool {
	return f.Nvidia >= 80 || f.DPAS && (f.Intel == 8 || f.Intel == 16)
}

// chooseUnits finds the matrix units of the set's device. Products of halves with
// float sums leave nothing to do for each block of weights, but NVIDIA's cards
// for games run them at half their rate (8.6, 8.9, 12.x), so quantised weights
// are multiplied as 8-bit numbers there.
func (s *Set) chooseUnits() {
	f := s.dev.Info().Features
	s.matrixUnits = hasUnits(f)
	s.halfTiles = kernels.HalfTiles
	switch {
	case f.Nvidia >= 80:
		s.flashUnits = true
		s.byteUnits = f.Nvidia != 80 && f.Nvidia != 90 && f.Nvidia/10 != 10
	case s.matrixUnits:
		s.tryUnits = true
		s.halfTiles = kernels.DPASTiles(f.Intel)
	}
}

// proven multiplies small whole numbers on matrix units that no card of this
// project has run yet, once, before anything relies on them: how their operands
// lie in registers is only known from documents. A wrong result turns them off.
func (s *Set) proven() bool {
	s.mu.Lock()
	first := s.tryUnits
	s.tryUnits = false
	s.mu.Unlock()
	if first {
		if err := s.tryProducts(); err != nil {
			s.noUnits(err)
		}
	}
	return s.units()
}

// ProveUnits multiplies on the matrix units of the device and says whether the
// products were right; there is false when it has none that kernels know.
func (s *Set) ProveUnits() (there bool, err error) {
	s.mu.Lock()
	s.tryUnits = s.matrixUnits
	there = s.matrixUnits || s.unitsErr != nil
	s.mu.Unlock()
	s.proven()
	return there, s.UnitsProblem()
}

// noUnits turns matrix units off. A driver without a compiler has no kernels for
// them, for example.
func (s *Set) noUnits(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.matrixUnits, s.flashUnits, s.unitsErr = false, false, why
}

// Halves tells, after Ready, whether prompts are multiplied as halves with float sums, whatever
// the format of the weights.
func (s *Set) Halves() bool {
	if !s.proven() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.matrixUnits && !s.byteUnits
}

// units tells whether kernels of matrix units are used, now that some may have failed.
func (s *Set) units() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.matrixUnits
}

// UnitsProblem says, after Ready, why the matrix units of the device are not used; nil: they
// are, or it has none.
func (s *Set) UnitsProblem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unitsErr
}

// errWrongUnits is the verdict on units whose products are wrong.
var errWrongUnits = errors.New("they gave wrong products")

// tryProducts multiplies small whole numbers on matrix units, with each tile.
func (s *Set) tryProducts() error {
	const rows, cols, n = 128, 40, 64
	arena := s.dev.Arena(1 << 20)
	defer arena.Free()
	weights, err := arena.Alloc(align(2 * rows * n))
	if err != nil {
		return err
	}
	w, err := NewWeight(1, rows, n, 1, weights)
	if err != nil {
		return err
	}
	a, err := NewActs(arena, cols, n, true, false)
	if err == nil && a.H == nil {
		err = a.AddHalves(arena)
	}
	if err != nil {
		return err
	}
	y, err := arena.Alloc(4 * rows * cols)
	if err != nil {
		return err
	}
	rawW, rawX := make([]byte, 2*rows*n), make([]byte, 4*cols*n)
	wi, xi := make([]int, rows*n), make([]int, cols*n)
	for i := range wi {
		wi[i] = i*7919%5 - 2
		binary.LittleEndian.PutUint16(rawW[2*i:], []uint16{0xc000, 0xbc00, 0, 0x3c00, 0x4000}[wi[i]+2])
	}
	for i := range xi {
		xi[i] = i*104729%7 - 3
		binary.LittleEndian.PutUint32(rawX[4*i:], math.Float32bits(float32(xi[i])))
	}
	m, err := s.MatMul(w)
	if err != nil {
		return err
	}
	out := make([]byte, 4*rows*cols)
	for _, t := range m.half {
		only := *m
		only.half = []tiled{t}
		err = s.dev.Do(func(q *compute.Queue) error {
			if err := q.Write(weights, 0, rawW); err != nil {
				return err
			}
			if err := q.Write(a.X, 0, rawX); err != nil {
				return err
			}
			if err := only.Run(q, a, cols, nil, Out{Y: y, Ld: rows}); err != nil {
				return err
			}
			return q.Read(out, y, 0)
		})
		if err != nil {
			return err
		}
		for c := range cols {
			for r := range rows {
				want := 0
				for k := range n {
					want += wi[r*n+k] * xi[c*n+k]
				}
				if math.Float32frombits(binary.LittleEndian.Uint32(out[4*(c*rows+r):])) != float32(want) {
					return errWrongUnits
				}
			}
		}
	}
	if len(m.half) == 0 {
		return errors.New("no tile of theirs fits this device")
	}
	return nil
}
