// Formats whose four bits name one of sixteen levels: IQ4_NL, IQ4_XS, MXFP4, NVFP4.
//
//   IQ4     -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113
//   E2M1    0 1 2 3 4 6 8 12, then the same below zero: twice the value
//
// NVIDIA picks bytes by number (PICK; tests emulate it). Others make the eight
// levels of a word from its bits, all at once, and have the nibbles as files do, value i
// in the low half of a byte and value 16+i (NVFP4: 8+i) in the high one.
#if defined(NVIDIA) || defined(PICK_EMULATED)
#define PICK
#endif
#if FORMAT == 20 || FORMAT == 23
#define IQ4_LEVELS
#endif

#ifdef PICK
#ifdef NVIDIA
FN uint pick4(uint t0, uint t1, uint n) {
  uint r;
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(t0), "r"(t1), "r"(n));
  return r;
}
#else
FN uint pick4(uint t0, uint t1, uint n) {
  uint r = 0;
  for (int i = 0; i < 4; i++, n >>= 4) {
    const uint b = (n & 4 ? t1 : t0) >> 8 * (n & 3) & 255;
    r |= (n & 8 ? (b >> 7) * 255 : b) << 8 * i;
  }
  return r;
}
#endif

// Sixteen levels of a byte each, looked up for the eight nibbles of w, in order. Bit 3
// of a number means something else to prmt, so it chooses between two results.
#ifdef IQ4_LEVELS
#define LEVEL0 0xbfad9881
#define LEVEL1 0xf6eaddcf
#define LEVEL2 0x26190d01
#define LEVEL3 0x71594535
#else
#define LEVEL0 0x03020100
#define LEVEL1 0x0c080604
#define LEVEL2 0xfdfeff00
#define LEVEL3 0xf4f8fafc
#endif
FN void levels(uint w, int *lo, int *hi) {
  uint w7 = w & 0x77777777, w8 = (w >> 1 & 0x44444444) | 0x32103210;
  *lo = pick4(pick4(LEVEL0, LEVEL1, w7), pick4(LEVEL2, LEVEL3, w7), w8);
  w7 >>= 16;
  w8 >>= 16;
  *hi = pick4(pick4(LEVEL0, LEVEL1, w7), pick4(LEVEL2, LEVEL3, w7), w8);
}

FN void all_levels(unit *o, uint4 v) {
  levels(v.x, &o->q[0], &o->q[1]);
  levels(v.y, &o->q[2], &o->q[3]);
  levels(v.z, &o->q[4], &o->q[5]);
  levels(v.w, &o->q[6], &o->q[7]);
}

// Sizes of the levels above and below zero, four to a word (vec.cl).
#ifdef IQ4_LEVELS
#define SIZE0 0x26190d01
#define SIZE1 0x71594535
#define SIZE2 0x4153687f
#define SIZE3 0x0a162331
#else
#define SIZE0 0x03020100
#define SIZE1 0x0c080604
#define SIZE2 SIZE0
#define SIZE3 SIZE1
#endif
// ptxas brings constants to prmt by a move each time; numbers that it cannot know it
// leaves where they are: so something is added that is 0 as gtab is aligned.
FN void level_sizes(uint *t, CGLOBAL uint *gtab) {
  const uint none = get_local_id(0) * ((uint)(ulong)gtab >> 4 & 1);
  t[0] = SIZE0 + none;
  t[1] = SIZE1 + none;
  t[2] = SIZE2 == SIZE0 ? t[0] : SIZE2 + none;
  t[3] = SIZE3 == SIZE1 ? t[1] : SIZE3 + none;
}

#else

#ifdef IQ4_LEVELS
// Level n is 16n - 127 and a number of 0 to 15, less 12 from n = 8 on: that number, for
// each nibble of w.
FN uint beside(uint a) {
  const uint b = a >> 1, c = a >> 2, d = a >> 3, t = c & (a | ~b);
  const uint f0 = c ^ ((a | c) & (b ^ (~d | (c & ~b)))), f1 = ~d & (a ^ t), f2 = (a | (b ^ c)) ^ (d & (~b | (a ^ c))), f3 = b ^ d ^ t;
  return (f0 & 0x11111111) | (f1 & 0x11111111) << 1 | (f2 & 0x11111111) << 2 | (f3 & 0x11111111) << 3;
}
FN void levels(uint w, int *lo, int *hi) {
  const uint g = beside(w);
  *lo = ((w << 4 & 0xf0f0f0f0) + (g & 0x0f0f0f0f) + 0x01010101 - (w >> 3 & 0x01010101) * 12) ^ 0x80808080;
  *hi = ((w & 0xf0f0f0f0) + (g >> 4 & 0x0f0f0f0f) + 0x01010101 - (w >> 7 & 0x01010101) * 12) ^ 0x80808080;
}
#else
// Sizes 4 to 7 of three bits have their lower two added once more, and 7 has two more.
FN void levels(uint w, int *lo, int *hi) {
  const uint t = w >> 2 & 0x11111111, y = w & (t | t << 1);
  const uint m = (w & 0x77777777) + y + ((y & y >> 1) << 1), below = m & (w >> 3 & 0x11111111) * 15;
  *lo = ((m & 0x0f0f0f0f) + 0x80808080 - ((below & 0x0f0f0f0f) << 1)) ^ 0x80808080;
  *hi = ((m >> 4 & 0x0f0f0f0f) + 0x80808080 - (below >> 3 & 0x1e1e1e1e)) ^ 0x80808080;
}
#endif

FN void all_levels(unit *o, uint4 v) {
#if FORMAT == 40
  levels(v.x, &o->q[0], &o->q[2]);
  levels(v.y, &o->q[1], &o->q[3]);
  levels(v.z, &o->q[4], &o->q[6]);
  levels(v.w, &o->q[5], &o->q[7]);
#else
  levels(v.x, &o->q[0], &o->q[4]);
  levels(v.y, &o->q[1], &o->q[5]);
  levels(v.z, &o->q[2], &o->q[6]);
  levels(v.w, &o->q[3], &o->q[7]);
#endif
}
#endif

#if FORMAT == 20 // IQ4_NL
#define BLOCK_BYTES 18
#define BLOCK_UNITS 1
#define PLANE_A 128
#define PLANE_B 16
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 0
RAW2(uint4 a, ushort b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
}
UNPACK {
  all_levels(o, r->a);
  one_scale(o, half_bits(r->b), 0);
}
#endif

#if FORMAT == 23 // IQ4_XS: plane b as the first 8 bytes of a block
#define BLOCK_BYTES 136
#define BLOCK_UNITS 8
#define PLANE_A 128
#define PLANE_B 8
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 0
RAW2(uint4 a, uint2 b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = two_at(p.b, u >> 3);
}
UNPACK {
  all_levels(o, r->a);
  int g = u & 7;
  uint n = (r->b.y >> 4 * g & 15) | (r->b.x >> (12 + 2 * g) & 0x30);
  one_scale(o, half_bits((ushort)r->b.x) * small_less(n, 32), 0);
}
#endif

#if FORMAT == 39 // MXFP4
#define BLOCK_BYTES 17
#define BLOCK_UNITS 1
#define PLANE_A 128
#define PLANE_B 8
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 0
RAW2(uint4 a, uint b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = byte_at(p.b, u);
}
UNPACK {
  all_levels(o, r->a);
  // 2^(e - 128), 0 where that is no normal float
  one_scale(o, as_float(max((int)(r->b * 0x800000u - 0x800000u), 0)), 0);
}
#endif

#if FORMAT == 40 // NVFP4
#define BLOCK_BYTES 36
#define BLOCK_UNITS 2
#define PLANE_A 128
#define PLANE_B 16
#define PLANE_C 0
#define SCALES 2
#define OFFSETS 0
// Half the value of an E4M3 byte that begins at bit `at` of b; repack has cleared
// its sign, and left no NaN.
FN float half_e4m3(uint b, int at) {
#ifdef INTEL // may take such small floats for zero
  b = b >> at & 127;
  return b < 8 ? (float)b * 0x1p-10f : as_float((b << 20) + (119u << 23));
#else
  return as_float((b & 127u << at) << (20 - at)) * 0x1p119f;
#endif
}
RAW2(uint4 a, ushort b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
}
UNPACK {
  all_levels(o, r->a);
  o->s0 = half_e4m3(r->b, 0);
  o->s1 = half_e4m3(r->b, 8);
  o->m0 = 0;
  o->m1 = 0;
}
#endif
