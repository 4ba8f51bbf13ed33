// Formats whose numbers name a vector of four or eight values: IQ1, IQ2, IQ3.
// The vectors are in the table, see unit.cl and layout.go.

// Four bits to four bytes of 0 or 0xff. On NVIDIA prmt spreads the uppermost bit
// of each byte over it.
#ifdef NVIDIA
FN uint top_bits(uint v) {
  uint r;
  __asm__("prmt.b32 %0, %1, %1, 0xba98;" : "=r"(r) : "r"(v));
  return r;
}
FN uint spread_signs(uint bits) { return top_bits((bits & 15) * 0x10204080); }
#else
FN uint top_bits(uint v) { return (v >> 7 & 0x01010101) * 255; }
FN uint spread_signs(uint bits) { return ((bits & 15) * 0x00204081 & 0x01010101) * 255; }
#endif

// Eight magnitudes of 1..127 with a minus where a bit of s is set.
FN void put_signed(unit *o, int at, uint2 v, uint s) {
  uint m = spread_signs(s), n = spread_signs(s >> 4);
  o->q[at] = (v.x ^ m) + (m & 0x01010101);
  o->q[at + 1] = (v.y ^ n) + (n & 0x01010101);
}

// Seven sign bits and the one that makes their number even.
FN uint signs7(uint s) {
  s &= 127;
  return s | (popcount(s) & 1) << 7;
}

FN float quarter_scale(float d, uint s) { return d * (0.5f + (float)s) * 0.25f; }

FN uint2 grid8(TAB *tab, uint n) { return vload2(n, tab); }

// A vector of an IQ1 grid by its number (bytes 8, 16, 24 for -1, 0, 1), times
// eight and moved by one up or down. n is eight bits at place k of lo, and three
// of hi from bit `at` on.
#ifdef NVIDIA
FN void put_moved(unit *o, TAB *tab, int k, uint lo, uint hi, int at, uint down) {
#if FORMAT == 19 || FORMAT == 29
  const uint off = (k ? lo >> (8 * k - 2) : lo << 2) & 0x3fc, top = (at > 10 ? hi >> (at - 10) : hi << (10 - at)) & 0x1c00;
  const uint n = *(TAB *)((TAB1 *)tab + (off | top)), levels = down ? 0x07fff7 : 0x0901f9;
  __asm__("prmt.b32 %0, %1, 0, %2;" : "=r"(o->q[2 * k]) : "r"(levels), "r"(n));
  __asm__("prmt.b32 %0, %1, 0, %2;" : "=r"(o->q[2 * k + 1]) : "r"(levels), "r"(n >> 16));
#endif
}
#else
FN void put_moved(unit *o, TAB *tab, int k, uint lo, uint hi, int at, uint down) {
  const uint2 v = grid8(tab, (lo >> 8 * k & 255) | (hi >> at & 7) << 8);
  // v - 15 or v - 17, byte by byte without borrows
  const uint d = (113 - 2 * down) * 0x01010101;
  o->q[2 * k] = (v.x + d) ^ 0x80808080;
  o->q[2 * k + 1] = (v.y + d) ^ 0x80808080;
}
#endif

#if FORMAT == 16 // IQ2_XXS
#define BLOCK_BYTES 66
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 2
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 0
RAW2(uint2 a, ushort b)
FETCH {
  o->a = two_at(p.a, u);
  o->b = two_bytes_at(p.b, u >> 3);
}
UNPACK {
  for (int k = 0; k < 4; k++) put_signed(o, 2 * k, grid8(tab, r->a.x >> 8 * k & 255), signs7(r->a.y >> 7 * k));
  one_scale(o, quarter_scale(half_bits(r->b), r->a.y >> 28), 0);
}
#endif

#if FORMAT == 17 // IQ2_XS: plane b a byte of scales for each unit
#define BLOCK_BYTES 74
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 8
#define PLANE_C 2
#define SCALES 2
#define OFFSETS 0
RAW3(uint2 a, uint b, ushort c)
FETCH {
  o->a = two_at(p.a, u);
  o->b = byte_at(p.b, u);
  o->c = two_bytes_at(p.c, u >> 3);
}
UNPACK {
  for (int k = 0; k < 4; k++) {
    uint w = (k < 2 ? r->a.x : r->a.y) >> 16 * (k & 1);
    put_signed(o, 2 * k, grid8(tab, w & 511), signs7(w >> 9));
  }
  float d = half_bits(r->c);
  o->s0 = quarter_scale(d, r->b & 15);
  o->s1 = quarter_scale(d, r->b >> 4);
  o->m0 = 0;
  o->m1 = 0;
}
#endif

#if FORMAT == 22 // IQ2_S: plane a: 4 bytes of numbers, signs (bits); b: upper bits, scales
#define BLOCK_BYTES 82
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 16
#define PLANE_C 2
#define SCALES 2
#define OFFSETS 0
RAW3(uint2 a, ushort b, ushort c)
FETCH {
  o->a = two_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
  o->c = two_bytes_at(p.c, u >> 3);
}
UNPACK {
  uint w = r->b;
  for (int k = 0; k < 4; k++) {
    const uint2 v = grid8(tab, (r->a.x >> 8 * k & 255) | (w << (8 - 2 * k) & 0x300));
    const uint m = top_bits(r->a.y << (7 - 2 * k)), n = top_bits(r->a.y << (6 - 2 * k));
    o->q[2 * k] = (v.x ^ m) + (m & 0x01010101);
    o->q[2 * k + 1] = (v.y ^ n) + (n & 0x01010101);
  }
  float d = half_bits(r->c);
  o->s0 = quarter_scale(d, w >> 8 & 15);
  o->s1 = quarter_scale(d, w >> 12);
  o->m0 = 0;
  o->m1 = 0;
}
#endif

#if FORMAT == 18 // IQ3_XXS
#define BLOCK_BYTES 98
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 32
#define PLANE_C 2
#define SCALES 1
#define OFFSETS 0
RAW3(uint2 a, uint b, ushort c)
FETCH {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  o->c = two_bytes_at(p.c, u >> 3);
}
UNPACK {
  for (int k = 0; k < 4; k++) {
    uint n = (k < 2 ? r->a.x : r->a.y) >> 16 * (k & 1);
    put_signed(o, 2 * k, (uint2)(tab[n & 255], tab[n >> 8 & 255]), signs7(r->b >> 7 * k));
  }
  one_scale(o, half_bits(r->c) * (0.5f + (float)(r->b >> 28)) * 0.5f, 0);
}
#endif

#if FORMAT == 21 // IQ3_S: plane b signs (bits); c: d, 8 bytes of ninth bits, 4 of scales
#define BLOCK_BYTES 110
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 32
#define PLANE_C 14
#define SCALES 1
#define OFFSETS 0
RAW5(uint2 a, uint b, ushort c, ushort h, ushort s)
FETCH {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  int k = (u >> 3) * 7;
  o->c = two_bytes_at(p.c, k);
  o->h = two_bytes_at(p.c, k + 1 + ((u & 7) >> 1));
  o->s = two_bytes_at(p.c, k + 5 + ((u & 7) >> 2));
}
UNPACK {
  const int g = u & 7;
  const uint h = r->h >> 8 * (g & 1);
  for (int k = 0; k < 8; k++) {
    // numbers of nine bits, as offsets into the table
    const uint n = (k < 4 ? r->a.x : r->a.y), at = 8 * (k & 3);
    const uint off = (at ? n >> (at - 2) : n << 2) & 0x3fc;
    const uint v = *(TAB *)((TAB1 *)tab + (off | (h << (10 - k) & 0x400)));
    o->q[k] = v ^ (top_bits(r->b << (7 - k)) & 0xfefefefe); // values are odd: all bits but the lowest turn
  }
  one_scale(o, half_bits(r->c) * (float)(1 + 2 * (r->s >> 4 * (g & 3) & 15)), 0);
}
#endif

#if FORMAT == 19 // IQ1_S
#define BLOCK_BYTES 50
#define BLOCK_UNITS 8
#define PLANE_A 32
#define PLANE_B 16
#define PLANE_C 2
#define SCALES 1
#define OFFSETS 0
RAW3(uint a, ushort b, ushort c)
FETCH {
  o->a = word_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
  o->c = two_bytes_at(p.c, u >> 3);
}
UNPACK {
  uint w = r->b;
  for (int k = 0; k < 4; k++) put_moved(o, tab, k, r->a, w, 3 * k, w >> 15);
  one_scale(o, half_bits(r->c) * (float)(2 * (w >> 12 & 7) + 1) * 0.125f, 0);
}
#endif

#if FORMAT == 29 // IQ1_M
#define BLOCK_BYTES 56
#define BLOCK_UNITS 8
#define PLANE_A 32
#define PLANE_B 16
#define PLANE_C 8
#define SCALES 2
#define OFFSETS 0
RAW3(uint a, ushort b, uint2 c)
FETCH {
  o->a = word_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
  o->c = two_at(p.c, u >> 3);
}
UNPACK {
  for (int k = 0; k < 4; k++) put_moved(o, tab, k, r->a, r->b, 4 * k, r->b >> (4 * k + 3) & 1);
  float d = half_bits((ushort)((r->c.x >> 12 & 15) | (r->c.x >> 28) << 4 | (r->c.y >> 12 & 15) << 8 | (r->c.y >> 28) << 12));
  int g = u & 7;
  /* groups of 16: 2g and 2g+1, four to a word of 16 bits */ uint w = (g < 4 ? r->c.x : r->c.y) >> 16 * (g >> 1 & 1) >> 6 * (g & 1);
  o->s0 = d * (float)(2 * (w & 7) + 1) * 0.125f;
  o->s1 = d * (float)(2 * (w >> 3 & 7) + 1) * 0.125f;
  o->m0 = 0;
  o->m1 = 0;
}
#endif
