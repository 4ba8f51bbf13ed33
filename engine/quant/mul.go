package quant

// Mul multiplies rows of a weight matrix with activation rows:
// dst[j*ldd+r] = row r of w times activation row idx[j], for r = 0..rows-1.
// w holds rows rows of a.n values, one after the other. A nil idx stands for
// all rows 0..t-1 of a. It runs on one goroutine; callers split w by rows.
// One (row, activation) result is the same bits whatever else is in the call.
func Mul(f *Format, dst []float32, ldd int, w []byte, rows int, a *Acts, idx []int32) {
	size := f.RowBytes(a.n)
	for r := range rows {
		row := w[r*size : (r+1)*size]
		if idx == nil {
			for j := range a.t {
				dst[j*ldd+r] = f.Dot(row, a, j)
			}
			continue
		}
		for j, t := range idx {
			dst[j*ldd+r] = f.Dot(row, a, int(t))
		}
	}
}
