package quant

import "encoding/binary"

// Woven formats: rows of ours in memory, which hold the same numbers as a format
// of files in an order that needs no addition across lanes, in the same number of
// bytes. A block has 256 values; nothing reads or writes them in files, and
// results are the same to the last bit.
//
// A product takes four neighbouring values at a time to a lane of 32 bits. Value
// v = 32*b + 16*h + 4*k + i (block b of 32, half h, four k) is in byte i of lane
// 8*h + order32(b) of register k, of four registers with 16 lanes: place
// 64*k + 4*(8*h+order32(b)) + i. Adding the four registers gives the 16 sums of
// 16 values; adding the upper eight lanes to the lower the eight sums of 32. The
// activations lie in the same order (record.woven).
//
// Nibbles: 128 bytes; byte m of the first 64 has place m in its low half and place
// 64+m in its high half, byte 64+m places 128+m and 192+m. Pairs of bits: 64
// bytes; byte m has places m, 64+m, 128+m, 192+m from the lowest bits up. Single
// bits: 32 bytes; bit j of byte m is place 32*j+m.
//
// Scales and offsets stand in the order of lanes. Sixes: eight numbers of six bits
// from the lowest bit up and a half above them, 8 bytes.
//
//	woven4_0  16 bytes of halves; nibbles                                   Q4_0, IQ4_NL
//	woven4_1  16 bytes of halves, 16 of offsets (added); nibbles            Q4_1
//	woven5_0  16 bytes of halves; nibbles; fifth bits                       Q5_0
//	woven5_1  16 bytes of halves, 16 of offsets; nibbles; fifth bits        Q5_1
//	woven8_0  16 bytes of halves; 256 bytes with sign                       Q8_0
//	woven2_K  16 bytes, scale low, offset high; pairs; half d, half dmin    Q2_K
//	woven3_K  pairs; third bits; sixes of lanes 0..7 and of 8..15, each without
//	          its half: 6 bytes; half d                                     Q3_K
//	woven4_K  sixes and d, sixes of offsets and dmin; nibbles               Q4_K
//	woven5_K  the same; nibbles; fifth bits                                 Q5_K
//	woven6_K  nibbles; pairs (bits 4 and 5); 16 bytes of scales; half d     Q6_K
//	woven4_XS sixes (bias 32) and d; nibbles                                IQ4_XS
//	wovenMX   8 exponents; nibbles                                          MXFP4
//	woven3S, woven3XXS: relay.go

const (
	woven4_0 = Q2_0 + 1 + iota
	woven4_1
	woven5_0
	woven5_1
	woven8_0
	woven2_K
	woven3_K
	woven4_K
	woven5_K
	woven6_K
	woven4_NL
	woven4_XS
	wovenMX
	woven3S   // IQ3_S: level 2*number-15
	woven3XXS // IQ3_XXS: the levels of the grid, negative ones from 8 on
	typeCount
)

// weaving is one woven format: where its blocks come from.
type weaving struct {
	Format
	from  Type
	relay func(dst, src []byte) // 256 values
}

// wovenAt is the table of woven formats, by the type they come from.
var wovenAt = func() (m [Q2_0 + 1]*weaving) {
	list := []weaving{
		weaveOf(woven4_0, "Q4_0 woven", 144, unpackWoven4_0, Q4_0, relay4_0),
		weaveOf(woven4_1, "Q4_1 woven", 160, unpackWoven4_1, Q4_1, relay4_1),
		weaveOf(woven5_0, "Q5_0 woven", 176, unpackWoven5_0, Q5_0, relay5_0),
		weaveOf(woven5_1, "Q5_1 woven", 192, unpackWoven5_1, Q5_1, relay5_1),
		weaveOf(woven8_0, "Q8_0 woven", 272, unpackWoven8_0, Q8_0, relay8_0),
		weaveOf(woven2_K, "Q2_K woven", 84, unpackWoven2_K, Q2_K, relay2_K),
		weaveOf(woven3_K, "Q3_K woven", 110, unpackWoven3_K, Q3_K, relay3_K),
		weaveOf(woven4_K, "Q4_K woven", 144, unpackWoven4_K, Q4_K, relay4_K),
		weaveOf(woven5_K, "Q5_K woven", 176, unpackWoven5_K, Q5_K, relay5_K),
		weaveOf(woven6_K, "Q6_K woven", 210, unpackWoven6_K, Q6_K, relay6_K),
		weaveOf(woven4_NL, "IQ4_NL woven", 144, unpackWoven4_NL, IQ4_NL, relay4_0),
		weaveOf(woven4_XS, "IQ4_XS woven", 136, unpackWoven4_XS, IQ4_XS, relay4_XS),
		weaveOf(wovenMX, "MXFP4 woven", 136, unpackWovenMX, MXFP4, relayMX),
		weaveOf(woven3S, "IQ3_S woven", 136, unpackWoven3S, IQ3_S, relay3S),
		weaveOf(woven3XXS, "IQ3_XXS woven", 136, unpackWoven3XXS, IQ3_XXS, relay3XXS),
	}
	for i := range list {
		m[list[i].from] = &list[i]
	}
	return m
}()

func weaveOf(t Type, name string, size int, unpack func(*tile, []byte), from Type, relay func(dst, src []byte)) weaving {
	return weaving{blocks(t, name, 256, size, unpack), from, relay}
}

// Faster is the format of ours in which rows of n values of f are faster to
// multiply at the active level, or nil. Its rows may be longer: compare RowBytes.
func (f *Format) Faster(n int) *Format {
	if int(f.Type) >= len(wovenAt) || n <= 0 || n%256 != 0 {
		return nil
	}
	w := wovenAt[f.Type]
	if k := active.Load(); w == nil || k.rows[w.Type] == nil {
		return nil
	}
	return &w.Format
}

// Relay writes rows of f to dst in the format g, which is f.Faster. w holds whole
// 256 values.
func Relay(dst []byte, g, f *Format, w []byte) {
	relay, size := wovenAt[f.Type].relay, 256/f.Block*f.Bytes
	for ; len(w) >= size; dst, w = dst[g.Bytes:], w[size:] {
		relay(dst[:g.Bytes], w[:size])
	}
}

// wovenPlace is the place of each value, wovenFour the number of the four that is
// in each four of places.
var wovenPlace, wovenFour = func() (p [256]uint8, four [64]uint8) {
	for v := range p {
		b, h, k := v/32, v/16%2, v/4%4
		p[v] = uint8(64*k + 4*(8*h+order32(b)) + v%4)
		four[p[v]/4] = uint8(v / 4)
	}
	return p, four
}()

// lane16 is the lane of the half block s.
func lane16(s int) int { return s%2*8 + order32(s/2) }

// laid is the values of a tile by place.
type laid [256]byte

func (t *tile) lay() (w laid) {
	weaveBytes((*[256]byte)(&w), t.bytes())
	return w
}

// weavePlain is what weaveBytes does, in plain Go.
func weavePlain(dst, q *[256]byte) {
	for m, four := range wovenFour {
		copy(dst[4*m:4*m+4], q[4*int(four):])
	}
}

func (w *laid) word(i int) uint64 { return binary.LittleEndian.Uint64(w[8*i&255:]) }

// nibbles writes the low halves of all values, exclusive or flip in each byte.
func (w *laid) nibbles(dst []byte, flip uint64) {
	_ = dst[127]
	for i := range 16 {
		at := i/8*16 + i%8
		lo, hi := w.word(at)^flip, w.word(at+8)^flip
		binary.LittleEndian.PutUint64(dst[8*i:], lo&low4|hi&low4<<4)
	}
}

// pairs writes two bits of all values, from bit shift on.
func (w *laid) pairs(dst []byte, shift int, flip uint64) {
	_ = dst[63]
	for i := range 8 {
		var v uint64
		for k := range 4 {
			v |= (w.word(8*k+i) ^ flip) >> shift & low2 << (2 * k)
		}
		binary.LittleEndian.PutUint64(dst[8*i:], v)
	}
}

// bits writes one bit of all values.
func (w *laid) bits(dst []byte, shift int, flip uint64) {
	_ = dst[31]
	for i := range 4 {
		var v uint64
		for j := range 8 {
			v |= (w.word(4*j+i) ^ flip) >> shift & ones << j
		}
		binary.LittleEndian.PutUint64(dst[8*i:], v)
	}
}

// The readers are for the definition of products and for decoding: short, not
// fast. Each gives the number at a place.
func nibbleAt(src []byte, place int) byte {
	return src[place/128*64+place%64] >> (place / 64 % 2 * 4) & 15
}
func pairAt(src []byte, place int) byte { return src[place%64] >> (place / 64 * 2) & 3 }
func bitAt(src []byte, place int) byte  { return src[place%32] >> (place / 32) & 1 }

// byPlace fills the integers of a tile.
func (t *tile) byPlace(at func(place int) int8) {
	for v := range t.q {
		t.q[v] = at(int(wovenPlace[v]))
	}
}

// halves8 sets scales of 32 values from eight halves, and offsets, which are
// added, from eight more.
func (t *tile) halves8(src, offsets []byte) {
	for b := range 8 {
		var min float32
		if offsets != nil {
			min = -half(offsets[2*order32(b):])
		}
		t.scale32(b, half(src[2*order32(b):]), min)
	}
}

// sixes packs eight numbers of six bits, by lane, below 16 bits.
func sixes(n [8]byte, top uint16) (v uint64) {
	for i, x := range n {
		v |= uint64(x&63) << (6 * i)
	}
	return v | uint64(top)<<48
}

// scalesSixes sets scales of 32 values, each less bias, and offsets where there are.
func (t *tile) scalesSixes(src []byte, bias int, offsets bool) {
	scales, d := binary.LittleEndian.Uint64(src), half(src[6:])
	for b := range 8 {
		var min float32
		if offsets {
			min = half(src[14:]) * float32(binary.LittleEndian.Uint64(src[8:])>>(6*order32(b))&63)
		}
		t.scale32(b, d*float32(int(scales>>(6*order32(b))&63)-bias), min)
	}
}

// relayHalves copies eight halves that lie size bytes apart.
func relayHalves(dst, src []byte, size int) {
	for b := range 8 {
		copy(dst[2*order32(b):2*order32(b)+2], src[size*b:])
	}
}

// rawNibbles reads nibbles of 16 bytes for each 32 values, size bytes apart.
func rawNibbles(t *tile, src []byte, size int) {
	for b := range 8 {
		for j := range 2 {
			w := word64(src[size*b:], j)
			t.put(4*b+j, w&low4)
			t.put(4*b+j+2, w>>4&low4)
		}
	}
}

func relay4_0(dst, src []byte) {
	var t tile
	relayHalves(dst, src, 18)
	rawNibbles(&t, src[2:], 18)
	w := t.lay()
	w.nibbles(dst[16:], 0)
}

func unpackWoven4_0(t *tile, src []byte) {
	t.halves8(src, nil)
	t.byPlace(func(p int) int8 { return int8(nibbleAt(src[16:], p)) - 8 })
}

func unpackWoven4_NL(t *tile, src []byte) {
	t.halves8(src, nil)
	t.byPlace(func(p int) int8 { return levels4[nibbleAt(src[16:], p)] })
}

func relay4_1(dst, src []byte) {
	var t tile
	relayHalves(dst, src, 20)
	relayHalves(dst[16:], src[2:], 20)
	rawNibbles(&t, src[4:], 20)
	w := t.lay()
	w.nibbles(dst[32:], 0)
}

func unpackWoven4_1(t *tile, src []byte) {
	t.halves8(src, src[16:])
	t.byPlace(func(p int) int8 { return int8(nibbleAt(src[32:], p)) })
}

// relayFifth reads five bits of 32 values each, the bits of which are before the
// nibbles.
func relayFifth(dst, src []byte, size int) {
	var t tile
	rawNibbles(&t, src[4:], size)
	for b := range 8 {
		for j := range 4 {
			t.put(4*b+j, t.word(4*b+j)|bits8(src[size*b+j])<<4)
		}
	}
	w := t.lay()
	w.nibbles(dst, 0)
	w.bits(dst[128:], 4, 0)
}

func relay5_0(dst, src []byte) {
	relayHalves(dst, src, 22)
	relayFifth(dst[16:], src[2:], 22)
}

func unpackWoven5_0(t *tile, src []byte) {
	t.halves8(src, nil)
	t.byPlace(func(p int) int8 { return int8(nibbleAt(src[16:], p)|bitAt(src[144:], p)<<4) - 16 })
}

func relay5_1(dst, src []byte) {
	relayHalves(dst, src, 24)
	relayHalves(dst[16:], src[2:], 24)
	relayFifth(dst[32:], src[4:], 24)
}

func unpackWoven5_1(t *tile, src []byte) {
	t.halves8(src, src[16:])
	t.byPlace(func(p int) int8 { return int8(nibbleAt(src[32:], p) | bitAt(src[160:], p)<<4) })
}

func relay8_0(dst, src []byte) {
	var t tile
	relayHalves(dst, src, 34)
	for b := range 8 {
		copy(t.bytes()[32*b:32*b+32], src[34*b+2:])
	}
	w := t.lay()
	copy(dst[16:272], w[:])
}

func unpackWoven8_0(t *tile, src []byte) {
	t.halves8(src, nil)
	t.byPlace(func(p int) int8 { return int8(src[16+p]) })
}

func relay2_K(dst, src []byte) {
	var t tile
	unpackQ2_K(&t, src)
	for s, v := range src[:16] {
		dst[lane16(s)] = v
	}
	w := t.lay()
	w.pairs(dst[16:], 0, 0)
	copy(dst[80:84], src[80:84])
}

func unpackWoven2_K(t *tile, src []byte) {
	d, m := half(src[80:]), half(src[82:])
	for s := range 16 {
		v := src[lane16(s)]
		t.scale[s], t.min[s] = d*float32(v&15), m*float32(v>>4)
	}
	t.byPlace(func(p int) int8 { return int8(pairAt(src[16:], p)) })
}

func relay3_K(dst, src []byte) {
	var t tile
	unpackQ3_K(&t, src)
	w := t.lay()
	w.pairs(dst, 0, 4*ones) // numbers of three bits, 4 too large: bits 0 and 1 stay
	w.bits(dst[64:], 2, 4*ones)
	var n [16]byte
	for s := range 16 {
		n[lane16(s)] = src[96+s%8]>>(s/8*4)&15 | src[104+s%4]>>(s/4*2)&3<<4
	}
	lo, hi := sixes([8]byte(n[:8]), 0), sixes([8]byte(n[8:]), 0)
	binary.LittleEndian.PutUint64(dst[96:], lo|hi<<48)
	binary.LittleEndian.PutUint32(dst[104:], uint32(hi>>16))
	copy(dst[108:110], src[108:110])
}

func unpackWoven3_K(t *tile, src []byte) {
	d := half(src[108:])
	lo := binary.LittleEndian.Uint64(src[96:]) & (1<<48 - 1)
	hi := binary.LittleEndian.Uint64(src[102:]) & (1<<48 - 1)
	for s := range 16 {
		v := lo >> (6 * order32(s/2)) & 63
		if s%2 == 1 {
			v = hi >> (6 * order32(s/2)) & 63
		}
		t.scale[s], t.min[s] = d*float32(int(v)-32), 0
	}
	t.byPlace(func(p int) int8 { return int8(pairAt(src, p)|bitAt(src[64:], p)<<2) - 4 })
}

// relaySixesK lays out the scales of Q4_K and Q5_K.
func relaySixesK(dst, src []byte) {
	scales, mins := words4K((*[12]byte)(src[4:]))
	var s, m [8]byte
	for b := range 8 {
		s[order32(b)], m[order32(b)] = byte(scales>>(8*b)), byte(mins>>(8*b))
	}
	binary.LittleEndian.PutUint64(dst, sixes(s, binary.LittleEndian.Uint16(src)))
	binary.LittleEndian.PutUint64(dst[8:], sixes(m, binary.LittleEndian.Uint16(src[2:])))
}

func relay4_K(dst, src []byte) {
	var t tile
	relaySixesK(dst, src)
	for i := range 16 {
		w, at := word64(src[16:144], i), i/4*8+i%4
		t.put(at, w&low4)
		t.put(at+4, w>>4&low4)
	}
	w := t.lay()
	w.nibbles(dst[16:], 0)
}

func unpackWoven4_K(t *tile, src []byte) {
	t.scalesSixes(src, 0, true)
	t.byPlace(func(p int) int8 { return int8(nibbleAt(src[16:], p)) })
}

func relay5_K(dst, src []byte) {
	var t tile
	relaySixesK(dst, src)
	unpackQ5_K(&t, src)
	w := t.lay()
	w.nibbles(dst[16:], 0)
	w.bits(dst[144:], 4, 0)
}

func unpackWoven5_K(t *tile, src []byte) {
	t.scalesSixes(src, 0, true)
	t.byPlace(func(p int) int8 { return int8(nibbleAt(src[16:], p) | bitAt(src[144:], p)<<4) })
}

func relay6_K(dst, src []byte) {
	var t tile
	unpackQ6_K(&t, src)
	w := t.lay()
	w.nibbles(dst, 32*ones) // numbers of six bits, 32 too large
	w.pairs(dst[128:], 4, 32*ones)
	for s, v := range src[192:208] {
		dst[192+lane16(s)] = v
	}
	copy(dst[208:210], src[208:210])
}

func unpackWoven6_K(t *tile, src []byte) {
	d := half(src[208:])
	for s := range 16 {
		t.scale[s], t.min[s] = d*float32(int8(src[192+lane16(s)])), 0
	}
	t.byPlace(func(p int) int8 { return int8(nibbleAt(src, p)|pairAt(src[128:], p)<<4) - 32 })
}

func relay4_XS(dst, src []byte) {
	var t tile
	var s [8]byte
	for b := range 8 {
		s[order32(b)] = src[4+b/2]>>(4*(b%2))&15 | byte(binary.LittleEndian.Uint16(src[2:])>>(2*b))&3<<4
	}
	binary.LittleEndian.PutUint64(dst, sixes(s, binary.LittleEndian.Uint16(src)))
	rawNibbles(&t, src[8:], 16)
	w := t.lay()
	w.nibbles(dst[8:], 0)
}

func unpackWoven4_XS(t *tile, src []byte) {
	t.scalesSixes(src, 32, false)
	t.byPlace(func(p int) int8 { return levels4[nibbleAt(src[8:], p)] })
}

func relayMX(dst, src []byte) {
	var t tile
	for b := range 8 {
		dst[order32(b)] = src[17*b]
	}
	rawNibbles(&t, src[1:], 17)
	w := t.lay()
	w.nibbles(dst[8:], 0)
}

func unpackWovenMX(t *tile, src []byte) {
	for b := range 8 {
		t.scale32(b, scalesE8M0[src[order32(b)]], 0)
	}
	t.byPlace(func(p int) int8 { return levelsE2M1[nibbleAt(src[8:], p)] })
}
