package ops

import (
	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// UseMatrixUnits makes a set take the kernels for matrix units on a device that
// has none; they are emulated there (tile.cl).
func (s *Set) UseMatrixUnits() { s.matrixUnits, s.flashUnits, s.byteUnits = true, true, false }

// UseByteUnits is UseMatrixUnits with those over 8-bit numbers (mma.cl).
func (s *Set) UseByteUnits() { s.matrixUnits, s.byteUnits = true, true }

// Define builds all that a set loads from now on with a macro.
func (s *Set) Define(macro string) {
	s.extra, s.programs = append(s.extra, macro), map[string]*compute.Program{}
}

// UseTiles makes products of halves take these tiles.
func (s *Set) UseTiles(tiles ...kernels.TileHalf) {
	s.halfTiles, s.programs = tiles, map[string]*compute.Program{}
}

// UseDPAS makes a set take the kernels for Intel's matrix units, emulated in
// subgroups of 8.
func (s *Set) UseDPAS() {
	s.UseMatrixUnits()
	s.extra = append(s.extra, "DPAS=1")
	s.halfTiles = kernels.DPASTiles(8)
}

// UnitsRight is what a set asks of matrix units before it relies on them.
func (s *Set) UnitsRight() bool { return s.tryProducts() == nil }
