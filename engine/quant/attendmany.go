package quant

// Several queries over the same cached rows. A row is brought from halves to
// floats once for three queries, which is what bounds attention over long
// contexts; what one query gets is the same bits as from ScoresF16 and MixF16.

// ScoresManyF16 writes the products of nq queries of n values, one after the
// other in q, with rows rows of halves: dst[i*ldd+r] = query i times
// k[r*stride:][:n].
func ScoresManyF16(dst []float32, ldd int, q []float32, nq, n int, k []uint16, rows, stride int) {
	i := 0
	if scores := active.Load().scores3; scores != nil && n > 0 && n%8 == 0 {
		fours := rows &^ 3
		for ; i+3 <= nq && fours > 0; i += 3 {
			scores(dst[i*ldd:], ldd, q[i*n:(i+3)*n], n, k, fours, stride)
			if fours < rows {
				for j := range 3 {
					ScoresF16(dst[(i+j)*ldd+fours:(i+j)*ldd+rows], q[(i+j)*n:(i+j+1)*n], k[fours*stride:], stride)
				}
			}
		}
	}
	for ; i < nq; i++ {
		ScoresF16(dst[i*ldd:i*ldd+rows], q[i*n:(i+1)*n], k, stride)
	}
}

// MixManyF16 adds to dst[i*ldd:][:n], for each of nq queries, the sum of
// p[i*ldp+r] times row r of v, for rows rows.
func MixManyF16(dst []float32, ldd, n int, p []float32, ldp, nq int, v []uint16, rows, stride int) {
	i := 0
	if mix := active.Load().mix3; mix != nil && rows > 0 {
		wide := n &^ 31
		for ; i+3 <= nq && wide > 0; i += 3 {
			mix(dst[i*ldd:], ldd, wide, p[i*ldp:], ldp, v, rows, stride)
			if wide < n {
				for j := i; j < i+3; j++ {
					MixF16(dst[j*ldd+wide:j*ldd+n], p[j*ldp:j*ldp+rows], v[wide:], stride)
				}
			}
		}
	}
	for ; i < nq; i++ {
		MixF16(dst[i*ldd:i*ldd+n], p[i*ldp:i*ldp+rows], v, stride)
	}
}
