package quant

// spread is filled in with the fast plain loops.
func spread(lanes []uint64, q []int8) {
	for i := range lanes {
		var v uint64
		for k := range 4 {
			v += uint64(int64(q[i/2*8+i%2+2*k])) << (48 - 16*k)
		}
		lanes[i] = v
	}
}
