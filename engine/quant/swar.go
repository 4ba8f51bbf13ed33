package quant

import "encoding/binary"

// The plain Go loops multiply four pairs of numbers with one 64-bit
// multiplication. Take w = w0 + w1*B + w2*B^2 + w3*B^3 with B = 2^16 and small
// w, and x = x3 + x2*B + x1*B^2 + x0*B^3: the digit at B^3 of the product w*x
// is w0*x0 + w1*x1 + w2*x2 + w3*x3, and what stands above it falls off the
// word. The x may be negative: then lower digits may borrow from the one that
// we want, so half of B^3 is added before the shift, which gives the exact sum
// as long as the digits at B^3 and B^2 stay within an int16. Several products
// may be added before that shift: 16 values of up to 15 times 127 fit.
//
// The even bytes of a word, masked, are such a w, and so are the odd bytes
// after a shift by 8. Acts.lanes holds the x in that order: for each eight
// activations q0..q7 one word of q0, q2, q4, q6 and one of q1, q3, q5, q7.
// Beside multiplying byte by byte this is about four times as fast on amd64.

// lowNibbles keeps the low four bits of the even bytes.
const lowNibbles = 0x000f000f000f000f

// spread writes lanes for the activations q: len(q)/4 words, len(q) a multiple
// of 8. Acts.Quantize calls it for every row that plain loops may read.
func spread(lanes []uint64, q []int8) {
	for i := 0; i+8 <= len(q) && i/4+2 <= len(lanes); i += 8 {
		q, l := (*[8]int8)(q[i:]), (*[2]uint64)(lanes[i/4:])
		l[0] = uint64(int64(q[0])<<48 + int64(q[2])<<32 + int64(q[4])<<16 + int64(q[6]))
		l[1] = uint64(int64(q[1])<<48 + int64(q[3])<<32 + int64(q[5])<<16 + int64(q[7]))
	}
}

// digit takes the wanted sum out of added products.
func digit(v uint64) int32 { return int32(int64(v+1<<47) >> 48) }

// quad multiplies the low nibbles of the 16 bytes in a and b with 16 lanes.
// The result goes to digit.
func quad(a, b, l0, l1, l2, l3 uint64) uint64 {
	return (a&lowNibbles)*l0 + (a>>8&lowNibbles)*l1 + (b&lowNibbles)*l2 + (b>>8&lowNibbles)*l3
}

// bytes16 multiplies 16 bytes without sign with 16 lanes, high and low nibbles
// apart since whole bytes would not fit the digits.
func bytes16(a, b uint64, l *[4]uint64) int32 {
	low := quad(a, b, l[0], l[1], l[2], l[3])
	high := quad(a>>4, b>>4, l[0], l[1], l[2], l[3])
	return digit(low) + digit(high)<<4
}

// row gives what the loops read of activation row t: lanes, scales, sums.
func (a *Acts) row(t int) (lanes []uint64, d []float32, s []int16) {
	k := a.stride
	return a.lanes[t*k/4 : (t+1)*k/4], a.d[t*k/32 : (t+1)*k/32], a.s[t*k/16 : (t+1)*k/16]
}

func dotQ4_0(row []byte, a *Acts, t int) float32 {
	lanes, d, s := a.row(t)
	var acc float32
	for b, da := range d {
		w, l, s := (*[18]byte)(row[18*b:]), (*[8]uint64)(lanes[8*b:]), (*[2]int16)(s[2*b:])
		x, y := binary.LittleEndian.Uint64(w[2:]), binary.LittleEndian.Uint64(w[10:])
		sum := digit(quad(x, y, l[0], l[1], l[2], l[3])) + digit(quad(x>>4, y>>4, l[4], l[5], l[6], l[7]))
		sum -= 8 * (int32(s[0]) + int32(s[1]))
		acc += halves[uint16(w[0])|uint16(w[1])<<8] * da * float32(sum)
	}
	return acc
}

func dotQ4_1(row []byte, a *Acts, t int) float32 {
	lanes, d, s := a.row(t)
	var acc float32
	for b, da := range d {
		w, l, s := (*[20]byte)(row[20*b:]), (*[8]uint64)(lanes[8*b:]), (*[2]int16)(s[2*b:])
		x, y := binary.LittleEndian.Uint64(w[4:]), binary.LittleEndian.Uint64(w[12:])
		sum := digit(quad(x, y, l[0], l[1], l[2], l[3])) + digit(quad(x>>4, y>>4, l[4], l[5], l[6], l[7]))
		scale, min := halves[uint16(w[0])|uint16(w[1])<<8], halves[uint16(w[2])|uint16(w[3])<<8]
		acc += (scale*float32(sum) + min*float32(int32(s[0])+int32(s[1]))) * da
	}
	return acc
}

func dotQ8_0(row []byte, a *Acts, t int) float32 {
	lanes, d, s := a.row(t)
	var acc float32
	for b, da := range d {
		w, l, s := (*[34]byte)(row[34*b:]), (*[8]uint64)(lanes[8*b:]), (*[2]int16)(s[2*b:])
		w0, w1 := binary.LittleEndian.Uint64(w[2:])^flip, binary.LittleEndian.Uint64(w[10:])^flip
		w2, w3 := binary.LittleEndian.Uint64(w[18:])^flip, binary.LittleEndian.Uint64(w[26:])^flip
		sum := digit(quad(w0, w1, l[0], l[1], l[2], l[3])) + digit(quad(w2, w3, l[4], l[5], l[6], l[7]))
		high := digit(quad(w0>>4, w1>>4, l[0], l[1], l[2], l[3])) + digit(quad(w2>>4, w3>>4, l[4], l[5], l[6], l[7]))
		sum += high<<4 - 128*(int32(s[0])+int32(s[1]))
		acc += halves[uint16(w[0])|uint16(w[1])<<8] * da * float32(sum)
	}
	return acc
}

func dotQ4_K(row []byte, a *Acts, t int) float32 {
	lanes, d, s := a.row(t)
	var acc float32
	for b := range len(d) / 8 {
		w, l := (*[144]byte)(row[144*b:]), (*[64]uint64)(lanes[64*b:])
		d, s := (*[8]float32)(d[8*b:]), (*[16]int16)(s[16*b:])
		scales, mins := words4K((*[12]byte)(w[4:]))
		var sums, offs float32
		for g := range 4 {
			q, l := (*[32]byte)(w[16+32*g:]), (*[16]uint64)(l[16*g:])
			w0, w1 := binary.LittleEndian.Uint64(q[0:]), binary.LittleEndian.Uint64(q[8:])
			w2, w3 := binary.LittleEndian.Uint64(q[16:]), binary.LittleEndian.Uint64(q[24:])
			low := digit(quad(w0, w1, l[0], l[1], l[2], l[3])) + digit(quad(w2, w3, l[4], l[5], l[6], l[7]))
			high := digit(quad(w0>>4, w1>>4, l[8], l[9], l[10], l[11])) + digit(quad(w2>>4, w3>>4, l[12], l[13], l[14], l[15]))
			sums += d[2*g]*float32(low*int32(scales&255)) + d[2*g+1]*float32(high*int32(scales>>8&255))
			offs += d[2*g]*float32((int32(s[4*g])+int32(s[4*g+1]))*int32(mins&255)) +
				d[2*g+1]*float32((int32(s[4*g+2])+int32(s[4*g+3]))*int32(mins>>8&255))
			scales, mins = scales>>16, mins>>16
		}
		acc += halves[uint16(w[0])|uint16(w[1])<<8]*sums - halves[uint16(w[2])|uint16(w[3])<<8]*offs
	}
	return acc
}

func dotQ5_K(row []byte, a *Acts, t int) float32 {
	lanes, d, s := a.row(t)
	var acc float32
	for b := range len(d) / 8 {
		w, l := (*[176]byte)(row[176*b:]), (*[64]uint64)(lanes[64*b:])
		d, s := (*[8]float32)(d[8*b:]), (*[16]int16)(s[16*b:])
		scales, mins := words4K((*[12]byte)(w[4:]))
		var sums, offs float32
		for g := range 8 {
			q, l := (*[32]byte)(w[48+32*(g/2):]), (*[8]uint64)(l[8*g:])
			var sum int32
			for k := range 2 {
				// Bit 4 joins after the nibbles: bytes of 31 leave room for no
				// more than eight values in a digit.
				x := binary.LittleEndian.Uint64(q[16*k:]) >> (4 * (g % 2)) & low4
				y := binary.LittleEndian.Uint64(q[16*k+8:]) >> (4 * (g % 2)) & low4
				x |= binary.LittleEndian.Uint64(w[16+16*k:]) >> g & ones << 4
				y |= binary.LittleEndian.Uint64(w[24+16*k:]) >> g & ones << 4
				sum += digit((x&evenBytes)*l[4*k]+(x>>8&evenBytes)*l[4*k+1]) +
					digit((y&evenBytes)*l[4*k+2]+(y>>8&evenBytes)*l[4*k+3])
			}
			sums += d[g] * float32(sum*int32(scales>>(8*g)&255))
			offs += d[g] * float32((int32(s[2*g])+int32(s[2*g+1]))*int32(mins>>(8*g)&255))
		}
		acc += halves[uint16(w[0])|uint16(w[1])<<8]*sums - halves[uint16(w[2])|uint16(w[3])<<8]*offs
	}
	return acc
}

// evenBytes keeps the even bytes of a word.
const evenBytes = 0x00ff00ff00ff00ff

func dotQ6_K(row []byte, a *Acts, t int) float32 {
	const pairs = 0x0003000300030003
	lanes, d, s := a.row(t)
	var acc float32
	for b := range len(d) / 8 {
		w, l := (*[210]byte)(row[210*b:]), (*[64]uint64)(lanes[64*b:])
		d, s := (*[8]float32)(d[8*b:]), (*[16]int16)(s[16*b:])
		var sums float32
		for g := range 8 { // 32 values: half g/4, and in it quarter g%4
			ql, qh := (*[32]byte)(w[64*(g/4)+32*(g%2):]), (*[32]byte)(w[128+32*(g/4):])
			var pair int32
			for k := range 2 { // 16 values with one scale
				l := (*[4]uint64)(l[8*g+4*k:])
				nib := 4 * (g % 4 / 2)
				x, y := binary.LittleEndian.Uint64(ql[16*k:])>>nib, binary.LittleEndian.Uint64(ql[16*k+8:])>>nib
				u, v := binary.LittleEndian.Uint64(qh[16*k:])>>(2*(g%4)), binary.LittleEndian.Uint64(qh[16*k+8:])>>(2*(g%4))
				low := digit(quad(x, y, l[0], l[1], l[2], l[3]))
				high := digit((u&pairs)*l[0] + (u>>8&pairs)*l[1] + (v&pairs)*l[2] + (v>>8&pairs)*l[3])
				pair += (low + high<<4 - 32*int32(s[2*g+k])) * int32(int8(w[192+2*g+k]))
			}
			sums += d[g] * float32(pair)
		}
		acc += halves[uint16(w[208])|uint16(w[209])<<8] * sums
	}
	return acc
}
