package ops

// UseMatrixUnits makes a set take the kernels for matrix units on a device that
// has none; they are emulated there (mma.cl).
func (s *Set) UseMatrixUnits() { s.matrixUnits = true }
