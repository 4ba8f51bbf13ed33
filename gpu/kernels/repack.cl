// Moves blocks as they lie in a file into the planes of unit.cl. One
// work-item a unit; it writes what belongs to its unit, and the first unit of
// a block what belongs to the block.

FN uint raw2(CGLOBAL uchar *s, int i) { return s[i] | (uint)s[i + 1] << 8; }
FN uint raw4(CGLOBAL uchar *s, int i) { return raw2(s, i) | raw2(s, i + 2) << 16; }

#define PUT1(p, i, v) ((p)[i] = (uchar)(v))
#define PUT2(p, i, v) (((GLOBAL ushort *)(p))[i] = (ushort)(v))
#define PUT4(p, i, v) (((GLOBAL uint *)(p))[i] = (v))

// 16 bytes at s as they are.
FN void put16(GLOBAL uchar *p, ulong u, CGLOBAL uchar *s) {
  ((GLOBAL uint4 *)p)[u] = (uint4)(raw4(s, 0), raw4(s, 4), raw4(s, 8), raw4(s, 12));
}

// The low halves of eight bytes at s, or the high ones (from bit `at`), one after the other.
FN uint nibbles8(CGLOBAL uchar *s, int at) {
  uint w[2];
  for (int j = 0; j < 2; j++) {
    w[j] = raw4(s, 4 * j) >> at & 0x0f0f0f0f;
    w[j] = (w[j] | w[j] >> 4) & 0x00ff00ff;
    w[j] = (w[j] | w[j] >> 8) & 0xffff;
  }
  return w[0] | w[1] << 16;
}

// 16 bytes that hold value i in the low half of byte i and value 16+i in the high
// one, to nibbles in order, where they are picked (levels.cl).
FN void put_levels(GLOBAL uchar *p, ulong u, CGLOBAL uchar *s) {
#ifndef PICK
  put16(p, u, s);
#else
  ((GLOBAL uint4 *)p)[u] = (uint4)(nibbles8(s, 0), nibbles8(s + 8, 0), nibbles8(s, 4), nibbles8(s + 8, 4));
#endif
}

// Gathers 32 nibbles: value i is the low or high half (from bit `at`) of byte i
// of s.
FN void put_nibbles32(GLOBAL uchar *p, ulong u, CGLOBAL uchar *s, int at) {
  uint w[4];
  for (int j = 0; j < 4; j++) {
    uint lo = raw4(s, 4 * j) >> at & 0x0f0f0f0f, hi = raw4(s, 16 + 4 * j) >> at & 0x0f0f0f0f;
    w[j] = lo | hi << 4;
  }
  ((GLOBAL uint4 *)p)[u] = (uint4)(w[0], w[1], w[2], w[3]);
}

// Gathers 32 pairs: value i is at bit `at` of byte i of s.
FN uint2 gather_pairs(CGLOBAL uchar *s, int at) {
  uint w[2] = {0, 0};
  for (int k = 0; k < 8; k++) w[k / 2 % 2] |= (raw4(s, 4 * k) >> at & 0x03030303) << (k / 4 * 4 + k % 2 * 2);
  return (uint2)(w[0], w[1]);
}

// Gathers 32 bits: value i is bit `at` of byte i of s.
FN uint gather_bits(CGLOBAL uchar *s, int at) {
  uint w = 0;
  for (int f = 0; f < 8; f++) w |= (raw4(s, 4 * f) >> at & 0x01010101) << f;
  return w;
}

// Bit i of h belongs to value i: to the order of unit.cl.
FN uint order_bits(uint h) {
  uint w = 0;
  for (int f = 0; f < 8; f++) w |= ((h >> 4 * f & 15) * 0x00204081 & 0x01010101) << f;
  return w;
}

// Where grids.cl has the sign of value i of a group of eight: on NVIDIA the entries
// of IQ2 are nibbles in order, elsewhere signs meet bytes.
#if defined(NVIDIA) && FORMAT != 18
#define SIGN_PLACE(i) (i)
#else
#define SIGN_PLACE(i) (2 * ((i) & 3) + ((i) >> 2))
#endif

// Signs of four groups, n bits each in s, to the order of grids.cl: 8 as they are,
// 7 as sums.
FN uint order_signs(uint s, int n) {
  uint w = 0;
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < n; i++) w |= (s >> (n * k + i) & 1) << (4 * SIGN_PLACE(i) + k);
  if (n == 7) {
    w ^= w << 4;
    w ^= w << 8;
    w ^= w << 16;
    w &= 0x0fffffff;
  }
  return w;
}

// The scales of Q4_K and Q5_K, 16 bytes of a super-block at s.
FN void put_scales_k(GLOBAL uchar *p, ulong super, CGLOBAL uchar *s) {
  uint lo[2] = {0, 0}, hi = 0;
  for (int g = 0; g < 8; g++) {
    uint sc, mn;
    if (g < 4) {
      sc = s[4 + g] & 63;
      mn = s[8 + g] & 63;
    } else {
      sc = (s[8 + g] & 15) | s[g] >> 6 << 4;
      mn = s[8 + g] >> 4 | s[4 + g] >> 6 << 4;
    }
    lo[g >> 2] |= (sc | mn >> 4 << 6) << 8 * (g & 3);
    hi |= (mn & 15) << 4 * g;
  }
  ((GLOBAL uint4 *)p)[super] = (uint4)(raw4(s, 0), lo[0], lo[1], hi);
}

// src holds the blocks of units first .. first+n-1 of a tensor of `total` units
// whose planes begin `at` bytes after dst.
__kernel void repack(CGLOBAL uchar *src, GLOBAL uchar *dst, ulong at, ulong total, ulong first, int n) {
  BEGIN
  const int i = get_global_id(0);
  if (i >= n) return;
  CGLOBAL uchar *s = src + (ulong)(i / BLOCK_UNITS) * BLOCK_BYTES;
  const int g = i % BLOCK_UNITS;
  const ulong u = first + i, super = u / BLOCK_UNITS;
  GLOBAL uchar *a = dst + at;
  GLOBAL uchar *b = a + (total * PLANE_A / 8 + 15) / 16 * 16;
  GLOBAL uchar *c = b + (total * PLANE_B / 8 + 15) / 16 * 16;

#if FORMAT == 2 // Q4_0
  put16(a, u, s + 2);
  PUT2(b, u, raw2(s, 0));

#elif FORMAT == 20 // IQ4_NL
  put_levels(a, u, s + 2);
  PUT2(b, u, raw2(s, 0));

#elif FORMAT == 3 // Q4_1
  put16(a, u, s + 4);
  PUT4(b, u, raw4(s, 0));

#elif FORMAT == 6 // Q5_0
  put16(a, u, s + 6);
  PUT4(b, u, order_bits(raw4(s, 2)));
  PUT2(c, u, raw2(s, 0));

#elif FORMAT == 7 // Q5_1
  put16(a, u, s + 8);
  PUT4(b, u, order_bits(raw4(s, 4)));
  PUT4(c, u, raw4(s, 0));

#elif FORMAT == 8 // Q8_0
  put16(a, u, s + 2);
  put16(b, u, s + 18);
  PUT2(c, u, raw2(s, 0));

#elif FORMAT == 10 // Q2_K
  ((GLOBAL uint2 *)a)[u] = gather_pairs(s + 16 + 32 * (g / 4), 2 * (g % 4));
  const uint n0 = s[2 * g], n1 = s[2 * g + 1]; // a scale and an offset each
  PUT2(b, u, (n1 & 15) | (n0 & 15) << 4 | n0 >> 4 << 8 | n1 >> 4 << 12);
  if (g == 0) PUT4(c, super, raw4(s, 80));

#elif FORMAT == 11 // Q3_K
  uint q[8];
  for (int i = 0; i < 8; i++) q[i] = (raw4(s, 32 + 32 * (g / 4) + 4 * i) >> 2 * (g % 4) & 0x03030303) | (raw4(s, 4 * i) >> g & 0x01010101) << 2;
  PUT4(a, 2 * u, q[0] | q[4] << 3 | (q[3] & 0x03030303) << 6);
  PUT4(a, 2 * u + 1, q[1] | q[5] << 3 | (q[7] & 0x03030303) << 6);
  PUT4(b, u, q[2] | q[6] << 3 | (q[3] & 0x04040404) << 4 | (q[7] & 0x04040404) << 5);
  if (g == 0) {
    PUT2(c, super * 7, raw2(s, 108));
    uint hi = 0;
    for (int k = 0; k < 8; k++) {
      uint n0, n1; // scales of groups 2k and 2k+1 of 16
      int j = 2 * k;
      n0 = (s[96 + j % 8] >> j / 8 * 4 & 15) | (s[104 + j % 4] >> j / 4 * 2 & 3) << 4;
      j++;
      n1 = (s[96 + j % 8] >> j / 8 * 4 & 15) | (s[104 + j % 4] >> j / 4 * 2 & 3) << 4;
      PUT1(c, super * 14 + 2 + k, (n0 & 15) | (n1 & 15) << 4);
      hi |= (n0 >> 4 | n1 >> 4 << 2) << 4 * k;
    }
    PUT2(c, super * 7 + 5, hi);
    PUT2(c, super * 7 + 6, hi >> 16);
  }

#elif FORMAT == 12 // Q4_K
  put_nibbles32(a, u, s + 16 + 32 * (g / 2), 4 * (g % 2));
  if (g == 0) put_scales_k(b, super, s);

#elif FORMAT == 13 // Q5_K
  put_nibbles32(a, u, s + 48 + 32 * (g / 2), 4 * (g % 2));
  PUT4(b, u, gather_bits(s + 16, g));
  if (g == 0) put_scales_k(c, super, s);

#elif FORMAT == 14 // Q6_K
  put_nibbles32(a, u, s + 64 * (g / 4) + 32 * (g % 2), 4 * (g / 2 % 2));
  ((GLOBAL uint2 *)b)[u] = gather_pairs(s + 128 + 32 * (g / 4), 2 * (g % 4));
  PUT2(c, super * 9 + 1 + g, raw2(s, 192 + 2 * g));
  if (g == 0) PUT2(c, super * 9, raw2(s, 208));

#elif FORMAT == 16 // IQ2_XXS
  const uint v = raw4(s, 6 + 8 * g);
  PUT4(a, 2 * u, raw4(s, 2 + 8 * g));
  PUT4(a, 2 * u + 1, order_signs(v, 7) | (v & 0xf0000000));
  if (g == 0) PUT2(b, super, raw2(s, 0));

#elif FORMAT == 17 // IQ2_XS
  ulong all = 0;
  uint signs = 0;
  for (int k = 0; k < 4; k++) {
    const uint w = raw2(s, 2 + 8 * g + 2 * k);
    all |= (ulong)(w & 511) << (28 + 9 * k);
    signs |= w >> 9 << 7 * k;
  }
  PUT4(a, 2 * u, (uint)all | order_signs(signs, 7));
  PUT4(a, 2 * u + 1, all >> 32);
  PUT1(b, u, s[66 + g]);
  if (g == 0) PUT2(c, super, raw2(s, 0));

#elif FORMAT == 22 // IQ2_S
  ulong all = 0;
  for (int k = 0; k < 4; k++) all |= (ulong)(s[2 + 4 * g + k] | (s[66 + g] >> 2 * k & 3) << 8) << 10 * k;
  PUT4(a, 2 * u, all);
  PUT4(a, 2 * u + 1, order_signs(raw4(s, 34 + 4 * g), 8));
  PUT2(b, u, (uint)(all >> 32) | (uint)s[74 + g] << 8);
  if (g == 0) PUT2(c, super, raw2(s, 0));

#elif FORMAT == 18 // IQ3_XXS
  const uint v = raw4(s, 66 + 4 * g);
  PUT4(a, 2 * u, raw4(s, 2 + 8 * g));
  PUT4(a, 2 * u + 1, raw4(s, 6 + 8 * g));
  PUT4(b, u, order_signs(v, 7) | (v & 0xf0000000));
  if (g == 0) PUT2(c, super, raw2(s, 0));

#elif FORMAT == 21 // IQ3_S
  ulong all = 0;
  for (int k = 0; k < 8; k++) all |= (ulong)(s[2 + 8 * g + k] | (s[66 + g] >> k & 1) << 8) << 9 * k;
  PUT4(a, 2 * u, all);
  PUT4(a, 2 * u + 1, all >> 32);
  PUT4(b, u, order_bits(raw4(s, 74 + 4 * g)));
  PUT1(c, super * 14 + 2 + g, s[9 + 8 * g] >> 1 | (s[66 + g] >> 7) << 7);
  if (g % 2 == 0) PUT1(c, super * 14 + 10 + g / 2, s[106 + g / 2]);
  if (g == 0) PUT2(c, super * 7, raw2(s, 0));

#elif FORMAT == 19 // IQ1_S
  const uint w = raw2(s, 34 + 2 * g);
  ulong all = 0;
  for (int k = 0; k < 4; k++) all |= (ulong)(s[2 + 4 * g + k] | (w >> 3 * k & 7) << 8) << 11 * k;
  PUT4(a, u, all);
  PUT2(b, u, (uint)(all >> 32) | w >> 15 << 12 | (w >> 12 & 7) << 13);
  if (g == 0) PUT2(c, super, raw2(s, 0));

#elif FORMAT == 29 // IQ1_M
  const uint w = raw2(s, 32 + 2 * g);
  ulong all = 0;
  for (int k = 0; k < 4; k++) all |= (ulong)(s[4 * g + k] | ((w >> 4 * k & 15) ^ 8) << 8) << 12 * k;
  PUT4(a, u, all);
  PUT2(b, u, all >> 32);
  if (g == 0) { // four words of 16 bits: four scales of 3 bits each, and a quarter of d
    const uint lo = raw4(s, 48), hi = raw4(s, 52), d = (lo >> 12 & 15) | (lo >> 28) << 4 | (hi >> 12 & 15) << 8 | (hi >> 28) << 12;
    PUT4(c, 2 * super, (lo & 0xfff) | (lo >> 16 & 0xfff) << 12 | d << 24);
    PUT4(c, 2 * super + 1, (hi & 0xfff) | (hi >> 16 & 0xfff) << 12 | d >> 8 << 24);
  }

#elif FORMAT == 23 // IQ4_XS
  put_levels(a, u, s + 8 + 16 * g);
  if (g == 0) {
    PUT4(b, 2 * super, raw4(s, 0));
    PUT4(b, 2 * super + 1, raw4(s, 4));
  }

#elif FORMAT == 39 // MXFP4
  put_levels(a, u, s + 1);
  PUT1(b, u, s[0]);

#elif FORMAT == 40 // NVFP4: 8 bytes hold values 0..7 low, 8..15 high
  CGLOBAL uchar *v = s + 4 + 16 * g;
#ifdef PICK
  ((GLOBAL uint4 *)a)[u] = (uint4)(nibbles8(v, 0), nibbles8(v, 4), nibbles8(v + 8, 0), nibbles8(v + 8, 4));
#else
  put16(a, u, v);
#endif
  uint d[2];
  for (int k = 0; k < 2; k++) {
    d[k] = s[2 * g + k] & 127;
    if (d[k] == 127) d[k] = 0; // a NaN, which counts as zero
  }
  PUT2(b, u, d[0] | d[1] << 8);

#elif FORMAT == 41 // Q1_0
  PUT4(a, u, order_bits(raw4(s, 2 + 4 * g)));
  if (g == 0) PUT2(b, super, raw2(s, 0));

#elif FORMAT == 42 // Q2_0: value i is pair i%4 of byte i/4
  uint w[2] = {0, 0};
  for (int k = 0; k < 8; k++) {
    uint v = s[2 + 8 * g + k]; // values 4k + b, b in pair b
    w[k / 2 % 2] |= ((v & 3) | (v >> 2 & 3) << 8 | (v >> 4 & 3) << 16 | v >> 6 << 24) << (k / 4 * 4 + k % 2 * 2);
  }
  PUT4(a, 2 * u, w[0]);
  PUT4(a, 2 * u + 1, w[1]);
  if (g == 0) PUT2(b, super, raw2(s, 0));

#elif FORMAT == 34 // TQ1_0: digit k of byte b is the integer part of 3 * (b * 3^k mod 256) / 256
  uint w[2] = {0, 0};
  for (int i = 0; i < 32; i++) {
    const int v = 32 * g + i;
    int at = i, k = g; // byte, digit
    if (v >= 240) {
      at = 48 + (v - 240) % 4;
      k = (v - 240) / 4;
    } else if (v >= 160) {
      at = 32 + (v - 160) % 16;
      k = (v - 160) / 16;
    }
    uint b = s[at];
    for (int j = 0; j < k; j++) b = b * 3 & 255;
    const int k4 = i / 4; // as in gather_pairs
    w[k4 / 2 % 2] |= (b * 3 >> 8) << (8 * (i % 4) + k4 / 4 * 4 + k4 % 2 * 2);
  }
  PUT4(a, 2 * u, w[0]);
  PUT4(a, 2 * u + 1, w[1]);
  if (g == 0) PUT2(b, super, raw2(s, 52));

#elif FORMAT == 35 // TQ2_0
  ((GLOBAL uint2 *)a)[u] = gather_pairs(s + 32 * (g / 4), 2 * (g % 4));
  if (g == 0) PUT2(b, super, raw2(s, 64));
#endif
}
