package quant

import (
	"encoding/binary"
	"math"
)

// Types that hold numbers as they are. F32, F16 and BF16 rows are multiplied
// with the float activations; integers and F64 can only be decoded.

func decodeF32(dst []float32, src []byte) {
	src = src[:4*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func encodeF32(dst []byte, src []float32) {
	dst = dst[:4*len(src)]
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func decodeF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = halves[binary.LittleEndian.Uint16(src[2*i:])]
	}
}

func encodeF16(dst []byte, src []float32) {
	dst = dst[:2*len(src)]
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(v))
	}
}

func decodeBF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func encodeBF16(dst []byte, src []float32) {
	dst = dst[:2*len(src)]
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(v))
	}
}

// F64 and the wide integers are rounded to float32.

func decodeF64(dst []float32, src []byte) {
	src = src[:8*len(dst)]
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeI8(dst []float32, src []byte) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = float32(int8(src[i]))
	}
}

func decodeI16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = float32(int16(binary.LittleEndian.Uint16(src[2*i:])))
	}
}

func decodeI32(dst []float32, src []byte) {
	src = src[:4*len(dst)]
	for i := range dst {
		dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

func decodeI64(dst []float32, src []byte) {
	src = src[:8*len(dst)]
	for i := range dst {
		dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

// The float products keep four sums that run side by side, value i in sum i%4:
// one sum would wait for each addition, and four lose less to rounding.

func dotF32(row []byte, a *Acts, t int) float32 {
	x := a.x[t*a.n : (t+1)*a.n]
	row = row[:4*len(x)]
	var s0, s1, s2, s3 float32
	for len(x) >= 4 && len(row) >= 16 {
		s0 += x[0] * math.Float32frombits(binary.LittleEndian.Uint32(row))
		s1 += x[1] * math.Float32frombits(binary.LittleEndian.Uint32(row[4:]))
		s2 += x[2] * math.Float32frombits(binary.LittleEndian.Uint32(row[8:]))
		s3 += x[3] * math.Float32frombits(binary.LittleEndian.Uint32(row[12:]))
		x, row = x[4:], row[16:]
	}
	for i, v := range x {
		s0 += v * math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
	}
	return (s0 + s2) + (s1 + s3)
}

func dotF16(row []byte, a *Acts, t int) float32 {
	x := a.x[t*a.n : (t+1)*a.n]
	row = row[:2*len(x)]
	var s0, s1, s2, s3 float32
	for len(x) >= 4 && len(row) >= 8 {
		w := binary.LittleEndian.Uint64(row)
		s0 += x[0] * halves[uint16(w)]
		s1 += x[1] * halves[uint16(w>>16)]
		s2 += x[2] * halves[uint16(w>>32)]
		s3 += x[3] * halves[uint16(w>>48)]
		x, row = x[4:], row[8:]
	}
	for i, v := range x {
		s0 += v * halves[binary.LittleEndian.Uint16(row[2*i:])]
	}
	return (s0 + s2) + (s1 + s3)
}

func dotBF16(row []byte, a *Acts, t int) float32 {
	x := a.x[t*a.n : (t+1)*a.n]
	row = row[:2*len(x)]
	var s0, s1, s2, s3 float32
	for len(x) >= 4 && len(row) >= 8 {
		w := binary.LittleEndian.Uint64(row)
		s0 += x[0] * math.Float32frombits(uint32(w)<<16)
		s1 += x[1] * math.Float32frombits(uint32(w)&0xffff0000)
		s2 += x[2] * math.Float32frombits(uint32(w>>16)&0xffff0000)
		s3 += x[3] * math.Float32frombits(uint32(w>>32)&0xffff0000)
		x, row = x[4:], row[8:]
	}
	for i, v := range x {
		s0 += v * BF16ToF32(binary.LittleEndian.Uint16(row[2*i:]))
	}
	return (s0 + s2) + (s1 + s3)
}
