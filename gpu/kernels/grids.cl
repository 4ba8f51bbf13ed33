// Formats whose numbers name a vector of four or eight values: IQ1, IQ2, IQ3.
// The vectors are in the table, see unit.cl and layout.go.
//
// The numbers of a unit lie one after the other in 64 bits, and its signs so that
// one shift serves a group of eight, wherever the file has them (repack.cl): bit k
// of nibble SIGN_PLACE(i) is that of value i of group k. Where a format has seven
// signs a group and the eighth makes their number even, a nibble holds the sum
// (exclusive or) of the signs up to its own: so the last is 0, and has room for
// what else the format puts there.

#ifdef TABLE
#ifdef NVIDIA
FN uint pick_bytes(uint a, uint b, uint by) { // a byte of a or b for each of the four low nibbles of by
  uint r;
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(by));
  return r;
}
FN uint funnel(uint lo, uint hi, int by) {
  uint r;
  __asm__("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(by));
  return r;
}
// Four bits to four bytes of 0 or 0xff: prmt spreads the uppermost bit of each byte over it.
FN uint top_bits(uint v) { return pick_bytes(v, v, 0xba98); }
#else
#define funnel(lo, hi, by) ((lo) >> (by) | (hi) << (32 - (by)))
FN uint top_bits(uint v) { return (v >> 7 & 0x01010101) * 255; }
#endif

// Two bytes, or one, that are read once (unit.cl): to a whole register on NVIDIA,
// where what is declared as less costs an instruction to widen.
#if defined(STREAM) && defined(NVIDIA)
FN uint short_at(CGLOBAL uchar *p, int i) {
  uint v;
  __asm__ volatile(LOAD_ONCE "u16 %0, [%1];" : "=r"(v) : "l"((CGLOBAL ushort *)p + i));
  return v;
}
FN uint char_at(CGLOBAL uchar *p, int i) {
  uint v;
  __asm__ volatile(LOAD_ONCE "u8 %0, [%1];" : "=r"(v) : "l"(p + i));
  return v;
}
#else
#define short_at(p, i) two_bytes_at(p, i)
#define char_at(p, i) byte_at(p, i)
#endif

// Bytes of an entry, as a shift.
#if !defined(NVIDIA) && (FORMAT == 16 || FORMAT == 17 || FORMAT == 22)
#define ENTRY_SHIFT 3
#else
#define ENTRY_SHIFT 2
#endif

// The entry whose number is n bits from bit `at` of lo and hi, as an offset in bytes.
FN uint entry_at(uint lo, uint hi, int at, int n) {
  const int by = at - ENTRY_SHIFT;
  uint v;
  if (at + n <= 32) v = by < 0 ? lo << -by : lo >> by;
  else if (at >= 32) v = by < 32 ? hi << (32 - by) : hi >> (by - 32);
  else v = funnel(lo, hi, by);
  return v & ((1 << n) - 1) << ENTRY_SHIFT;
}
FN uint entry(TAB *tab, uint at) { return *(TAB *)((TAB1 *)tab + at); }

// The signs from their sums.
FN uint even_signs(uint w) { return (w & 0x0fffffff) ^ w << 4; }

// Four magnitudes of 1..127 with a minus where s has a 1 in a byte.
FN uint signed4(uint v, uint s) {
#ifdef NVIDIA
  const uint m = s * 255;
#else
  const uint m = (s << 8) - s;
#endif
  return (v ^ m) + s;
}

#if FORMAT == 16 || FORMAT == 17 || FORMAT == 22
// Group k of IQ2. On NVIDIA a nibble of an entry is the number of a magnitude, and
// with the sign as bit 2 it picks from three positive and three negative bytes.
FN void put_signed(unit *o, int k, TAB *tab, uint at, uint signs) {
#ifdef NVIDIA
  const uint n = entry(tab, at) ^ ((k < 2 ? signs << (2 - k) : signs >> (k - 2)) & 0x44444444);
  const uint plus = 0x002b1908 | (uint)get_local_id(0) << 24; // no constant, which would be moved to a register at every use
  o->q[2 * k] = pick_bytes(plus, 0x00d5e7f8, n);
  o->q[2 * k + 1] = pick_bytes(plus, 0x00d5e7f8, n >> 16);
#else
  const uint2 v = *(__local const uint2 *)((TAB1 *)tab + at);
  o->q[2 * k] = signed4(v.x, signs >> k & 0x01010101);
  o->q[2 * k + 1] = signed4(v.y, signs >> (k + 4) & 0x01010101);
#endif
}
#endif

// Group k of IQ1: a nibble of an entry is 0, 4 or 8 for -1, 0, 1, that of value 4h+b
// is number 2b+h; `more` is added to each.
FN void put_thirds(unit *o, int k, uint n, uint more) {
  o->q[2 * k] = (n & 0x0f0f0f0f) | more;
  o->q[2 * k + 1] = (n >> 4 & 0x0f0f0f0f) | more;
}

// d * (s + 1/2) / 4, where s lies at bit `at` and nothing else is there: as bits of a
// float of 2^(21-at) they count quarters.
FN float quarter_scale(float d, uint s, int at) { return d * (as_float(s | (148 - at) << 23) - ((2097152 >> at) - 0.125f)); }

#if FORMAT == 16 // IQ2_XXS: plane a: four numbers of 8 bits; signs, scale
#define BLOCK_BYTES 66
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 2
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 0
RAW2(uint2 a, uint b)
FETCH {
  o->a = two_at(p.a, u);
  o->b = short_at(p.b, u >> 3);
}
UNPACK {
  const uint s = even_signs(r->a.y);
  for (int k = 0; k < 4; k++) put_signed(o, k, tab, entry_at(r->a.x, 0, 8 * k, 8), s);
  one_scale(o, quarter_scale(half_bits(r->b), r->a.y >> 28, 0), 0);
}
#endif

#if FORMAT == 17 // IQ2_XS: plane a: numbers of 9 bits above bit 28, signs below; b: a byte of scales
#define BLOCK_BYTES 74
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 8
#define PLANE_C 2
#define SCALES 2
#define OFFSETS 0
RAW3(uint2 a, uint b, uint c)
FETCH {
  o->a = two_at(p.a, u);
  o->b = char_at(p.b, u);
  o->c = short_at(p.c, u >> 3);
}
UNPACK {
  const uint s = even_signs(r->a.x);
  for (int k = 0; k < 4; k++) put_signed(o, k, tab, entry_at(r->a.x, r->a.y, 28 + 9 * k, 9), s);
  const float d = half_bits(r->c);
  o->s0 = quarter_scale(d, r->b & 15, 0);
  o->s1 = quarter_scale(d, r->b >> 4, 0);
  o->m0 = 0;
  o->m1 = 0;
}
#endif

#if FORMAT == 22 // IQ2_S: plane a: numbers of 10 bits, signs; b: the last 8 of the numbers' bits, scales
#define BLOCK_BYTES 82
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 16
#define PLANE_C 2
#define SCALES 2
#define OFFSETS 0
RAW3(uint2 a, uint b, uint c)
FETCH {
  o->a = two_at(p.a, u);
  o->b = short_at(p.b, u);
  o->c = short_at(p.c, u >> 3);
}
UNPACK {
  const uint b = r->b;
  for (int k = 0; k < 4; k++) put_signed(o, k, tab, entry_at(r->a.x, b, 10 * k, 10), r->a.y);
  const float d = half_bits(r->c);
  o->s0 = quarter_scale(d, b & 0xf00, 8);
  o->s1 = quarter_scale(d, b >> 12, 0);
  o->m0 = 0;
  o->m1 = 0;
}
#endif

#if FORMAT == 18 // IQ3_XXS: plane a: eight numbers; b: signs, scale
#define BLOCK_BYTES 98
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 32
#define PLANE_C 2
#define SCALES 1
#define OFFSETS 0
RAW3(uint2 a, uint b, uint c)
FETCH {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  o->c = short_at(p.c, u >> 3);
}
UNPACK {
  const uint s = even_signs(r->b);
  for (int k = 0; k < 8; k++)
    o->q[k] = signed4(entry(tab, entry_at(k < 4 ? r->a.x : r->a.y, 0, 8 * (k & 3), 8)), s >> (k / 2 + 4 * (k & 1)) & 0x01010101);
  one_scale(o, 2 * quarter_scale(half_bits(r->c), r->b >> 28, 0), 0);
}
#endif

#if FORMAT == 21 // IQ3_S: plane a: numbers of 9 bits; b: signs (bits); c: d, a byte of the numbers' last bits of each unit, 4 of scales
#define BLOCK_BYTES 110
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 32
#define PLANE_C 14
#define SCALES 1
#define OFFSETS 0
RAW5(uint2 a, uint b, uint c, uint h, uint s)
FETCH {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  const int k = (u >> 3) * 14, g = u & 7;
  o->c = short_at(p.c, (u >> 3) * 7);
  o->h = char_at(p.c, k + 2 + g);
  o->s = char_at(p.c, k + 10 + (g >> 1));
}
UNPACK {
  for (int k = 0; k < 8; k++) {
    const uint at = k < 4 ? entry_at(r->a.x, r->a.y, 9 * k, 9) : entry_at(r->a.y, r->h, 9 * k - 32, 9);
    o->q[k] = entry(tab, at) ^ (top_bits(r->b << (7 - k)) & 0xfefefefe); // values are odd: all bits but the lowest turn
  }
  one_scale(o, 8 * quarter_scale(half_bits(r->c), r->s >> 4 * (u & 1) & 15, 0), 0);
}
#endif

#if FORMAT == 19 // IQ1_S: planes a and b: numbers of 11 bits; then whether values are moved down, and scale
#define BLOCK_BYTES 50
#define BLOCK_UNITS 8
#define PLANE_A 32
#define PLANE_B 16
#define PLANE_C 2
#define SCALES 1
#define OFFSETS 1
RAW3(uint a, uint b, uint c)
FETCH {
  o->a = word_at(p.a, u);
  o->b = short_at(p.b, u);
  o->c = short_at(p.c, u >> 3);
}
FN uint iq1_entry(const raw *r, int k, TAB *tab) { return entry(tab, entry_at(r->a, r->b, 11 * k, 11)); }
FN float iq1_scale(const raw *r) { return quarter_scale(half_bits(r->c), r->b >> 13, 0); }
#define IQ1_DOWN(r) (r->b & 0x1000)
UNPACK {
  for (int k = 0; k < 4; k++) put_thirds(o, k, iq1_entry(r, k, tab), 0);
  const float s = iq1_scale(r);
  one_scale(o, 2 * s, s * (IQ1_DOWN(r) ? -9.0f : -7.0f));
}
#endif

#if FORMAT == 29 // IQ1_M: planes a and b: numbers of 11 bits, each with a bit above it: moved up
#define BLOCK_BYTES 56
#define BLOCK_UNITS 8
#define PLANE_A 32
#define PLANE_B 16
#define PLANE_C 8
#define SCALES 2
#define OFFSETS 2
RAW3(uint a, uint b, uint2 c) // c: three bits for each 16 values in the low 24 of both words, d in the high 8
FETCH {
  o->a = word_at(p.a, u);
  o->b = short_at(p.b, u);
  o->c = two_at(p.c, u >> 3);
}
FN void iq1_scales(float *s0, float *s1, const raw *r, int u) {
  const float d = half_bits(r->c.x >> 24 | (r->c.y >> 24) << 8);
  const int g = u & 7;
  const uint w = (g < 4 ? r->c.x : r->c.y) >> 6 * (g & 3);
  *s0 = quarter_scale(d, w & 7, 0);
  *s1 = quarter_scale(d, w & 0x38, 3);
}
#ifdef NVIDIA // after the vectors the table has them moved up
FN uint iq1_entry(const raw *r, int k, TAB *tab) { return entry(tab, entry_at(r->a, r->b, 12 * k, 12)); }
#define IQ1_MORE(r, k) 0
#else
FN uint iq1_entry(const raw *r, int k, TAB *tab) { return entry(tab, entry_at(r->a, r->b, 12 * k, 11)); }
#define IQ1_MORE(r, k) ((0 - ((k < 2 ? r->a >> (12 * k + 11) : k == 2 ? r->b >> 3 : r->b >> 15) & 1)) & 0x01010101)
#endif
UNPACK {
  for (int k = 0; k < 4; k++) put_thirds(o, k, iq1_entry(r, k, tab), IQ1_MORE(r, k));
  iq1_scales(&o->s0, &o->s1, r, u);
  o->m0 = -9 * o->s0;
  o->m1 = -9 * o->s1;
  o->s0 *= 2;
  o->s1 *= 2;
}
#endif
#endif
