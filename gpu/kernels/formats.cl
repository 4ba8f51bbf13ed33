// The formats of weights on the device, one at a time: FORMAT is ggml's number.
//
// A tensor is cut into units of 32 values. What belongs to a unit lies in up to
// three planes, each plane for all units of the tensor one after the other, so
// that neighbouring lanes read neighbouring bytes and every load is aligned.
// Bits are only moved: a tensor takes the room that it takes in the file. (One
// exception: the base-3 digits of TQ1_0 become pairs, 66 bytes for 54, as taking
// them apart at every use cost four times the time.) repack.cl moves them; LAYOUT in layout.go must say the same as PLANE_* here.
//
//   nibbles  16 bytes: byte i holds value i (low half) and value 16+i (high); of
//            formats with a table of levels nibble i is value i
//   pairs     8 bytes: word w, byte b, pair k is value 16w + 4k + b
//   bits      4 bytes: byte b, bit f is value 4f + b
//
// PLANE_A, _B, _C are bytes per 256 values. SCALES is the number of scales of a
// unit (2: one for each 16 values), OFFSETS the number of offsets.
//
//   value = s * q + m
//
// BIAS is there when m is -BIAS * s for all units: then q - BIAS can be taken
// instead.

typedef struct {
  int q[8]; // 32 values, four to a word
  float s0, s1, m0, m1;
} unit;

typedef struct {
  CGLOBAL uchar *a, *b, *c;
} planes;

// A format is a fetch, which only loads, and an unpack, which only computes: so
// kernels can have the next units on their way while they work on the last.
// RAW declares what is in between.
#define RAW2(x, y) typedef struct { x; y; } raw;
#define RAW3(x, y, z) typedef struct { x; y; z; } raw;
#define RAW4(x, y, z, w) typedef struct { x; y; z; w; } raw;
#define RAW5(x, y, z, w, v) typedef struct { x; y; z; w; v; } raw;
#define FETCH FN void fetch(raw *o, planes p, int u)
#define UNPACK FN void unpack(unit *o, const raw *r, int u, TAB *tab)

// Vector tables (TABLE words) are copied to local memory: a gather there takes
// half the time of one from the cache. TABLE_BEGIN(waves) is the second line of a
// kernel that unpacks; gtab is its table argument.
#define TABLE_BEGIN(waves) TABLE_BEGIN_(waves)
#if FORMAT == 16 || FORMAT == 21
#define TABLE 512
#elif FORMAT == 17
#define TABLE 1024
#elif FORMAT == 18
#define TABLE 256
#elif FORMAT == 22
#define TABLE 2048
#elif FORMAT == 19 || FORMAT == 29
#define TABLE 4096
#endif
// On NVIDIA the three levels of IQ1 are picked by prmt: the table holds a nibble
// a value, half the bytes.
#if defined(NVIDIA) && (FORMAT == 19 || FORMAT == 29)
#define TAB __local const uint
#define TAB1 __local const uchar
FN uint four_nibbles(uint v) { // 8, 16, 24 in each byte to 0, 1, 2 in each nibble
  v = (v >> 3 & 0x03030303) - 0x01010101;
  v = (v | v >> 4) & 0x00ff00ff;
  return (v | v >> 8) & 0xffff;
}
#define TABLE_BEGIN_(waves)                                                                        \
  __local uint tab[TABLE / 2];                                                                     \
  for (int i = get_local_id(0); i < TABLE / 2; i += (waves) * LANES) {                             \
    const uint2 v = ((CGLOBAL uint2 *)gtab)[i];                                                    \
    tab[i] = four_nibbles(v.x) | four_nibbles(v.y) << 16;                                          \
  }                                                                                                \
  barrier(CLK_LOCAL_MEM_FENCE);
#elif defined(TABLE)
#define TAB __local const uint
#define TAB1 __local const uchar
#define TABLE_BEGIN_(waves)                                                                                              \
  __local uint tab[TABLE] __attribute__((aligned(16)));                                                                  \
  for (int i = get_local_id(0); i < TABLE / 4; i += (waves) * LANES) vstore4(((CGLOBAL uint4 *)gtab)[i], i, tab);          \
  barrier(CLK_LOCAL_MEM_FENCE);
#else
#define TAB CGLOBAL uint
#define TABLE_BEGIN_(waves) CGLOBAL uint *tab = gtab;
#endif

// A byte. Intel's compiler of 2022 crashes on plain loads of bytes in kernels
// that fetch ahead (seen with IGC 1.0.12504).
#ifdef INTEL
FN uint byte_at(CGLOBAL uchar *p, int i) { return *(volatile CGLOBAL uchar *)(p + i); }
#else
FN uint byte_at(CGLOBAL uchar *p, int i) { return p[i]; }
#endif
FN ushort two_bytes_at(CGLOBAL uchar *p, int i) { return ((CGLOBAL ushort *)p)[i]; }
#if defined(STREAM) && defined(NVIDIA) // read once: leaves no trace in the first cache
#define LOAD_ONCE "ld.global.nc.L1::no_allocate."
FN uint word_at(CGLOBAL uchar *p, int i) {
  uint v;
  __asm__ volatile(LOAD_ONCE "u32 %0, [%1];" : "=r"(v) : "l"((CGLOBAL uint *)p + i));
  return v;
}
FN uint2 two_at(CGLOBAL uchar *p, int i) {
  uint2 v;
  __asm__ volatile(LOAD_ONCE "v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"((CGLOBAL uint2 *)p + i));
  return v;
}
FN uint4 four_at(CGLOBAL uchar *p, int i) {
  uint4 v;
  __asm__ volatile(LOAD_ONCE "v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"((CGLOBAL uint4 *)p + i));
  return v;
}
#else
FN uint word_at(CGLOBAL uchar *p, int i) { return ((CGLOBAL uint *)p)[i]; }
FN uint2 two_at(CGLOBAL uchar *p, int i) { return ((CGLOBAL uint2 *)p)[i]; }
FN uint4 four_at(CGLOBAL uchar *p, int i) { return ((CGLOBAL uint4 *)p)[i]; }
#endif

// Activations. A launch that began early must not have read them before its
// WAIT, nor through a path that may hold what lay there before: so on NVIDIA
// these are plain loads that keep their place.
#ifdef NVIDIA
FN uint4 act4(CGLOBAL void *p) {
  uint4 v;
  __asm__ volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
FN uint2 act2(CGLOBAL void *p) {
  uint2 v;
  __asm__ volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) : "memory");
  return v;
}
#else
#define act4(p) (*(CGLOBAL uint4 *)(p))
#define act2(p) (*(CGLOBAL uint2 *)(p))
#endif

FN void nibbles(unit *o, uint4 v) {
  o->q[0] = v.x & 0x0f0f0f0f;
  o->q[1] = v.y & 0x0f0f0f0f;
  o->q[2] = v.z & 0x0f0f0f0f;
  o->q[3] = v.w & 0x0f0f0f0f;
  o->q[4] = v.x >> 4 & 0x0f0f0f0f;
  o->q[5] = v.y >> 4 & 0x0f0f0f0f;
  o->q[6] = v.z >> 4 & 0x0f0f0f0f;
  o->q[7] = v.w >> 4 & 0x0f0f0f0f;
}

FN void pairs(unit *o, uint2 v) {
  o->q[0] = v.x & 0x03030303;
  o->q[1] = v.x >> 2 & 0x03030303;
  o->q[2] = v.x >> 4 & 0x03030303;
  o->q[3] = v.x >> 6 & 0x03030303;
  o->q[4] = v.y & 0x03030303;
  o->q[5] = v.y >> 2 & 0x03030303;
  o->q[6] = v.y >> 4 & 0x03030303;
  o->q[7] = v.y >> 6 & 0x03030303;
}

// Adds the bits of w at place `at` of each value.
FN void add_bits(unit *o, uint w, int at) {
  for (int f = 0; f < 8; f++) o->q[f] |= (w >> f & 0x01010101) << at;
}

// Adds the pairs of v at bit 4 of each value.
FN void add_pairs(unit *o, uint2 v) {
  for (int k = 0; k < 4; k++) {
    o->q[k] |= (v.x >> 2 * k & 0x03030303) << 4;
    o->q[4 + k] |= (v.y >> 2 * k & 0x03030303) << 4;
  }
}

FN void one_scale(unit *o, float s, float m) {
  o->s0 = s;
  o->s1 = s;
  o->m0 = m;
  o->m1 = m;
}

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

// Sixteen levels of a byte each, looked up for the eight nibbles of w, in order.
FN void levels(uint w, uint t0, uint t1, uint t2, uint t3, int *lo, int *hi) {
#ifdef NVIDIA
  // prmt picks bytes by number; bit 3 of a number means something else there,
  // so it chooses between the two results afterwards
  uint a, b;
  uint w7 = w & 0x77777777, w8 = (w >> 1 & 0x44444444) | 0x32103210;
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(a) : "r"(t0), "r"(t1), "r"(w7));
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(b) : "r"(t2), "r"(t3), "r"(w7));
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(*lo) : "r"(a), "r"(b), "r"(w8));
  w7 >>= 16;
  w8 >>= 16;
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(a) : "r"(t0), "r"(t1), "r"(w7));
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(b) : "r"(t2), "r"(t3), "r"(w7));
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(*hi) : "r"(a), "r"(b), "r"(w8));
#else
  uint v[2] = {0, 0};
  for (int i = 0; i < 8; i++) {
    uint n = w >> 4 * i & 15;
    uint t = n < 8 ? (n < 4 ? t0 : t1) : (n < 12 ? t2 : t3);
    v[i >> 2] |= (t >> 8 * (n & 3) & 255) << 8 * (i & 3);
  }
  *lo = v[0];
  *hi = v[1];
#endif
}

FN void all_levels(unit *o, uint4 v, uint t0, uint t1, uint t2, uint t3) {
  levels(v.x, t0, t1, t2, t3, &o->q[0], &o->q[1]);
  levels(v.y, t0, t1, t2, t3, &o->q[2], &o->q[3]);
  levels(v.z, t0, t1, t2, t3, &o->q[4], &o->q[5]);
  levels(v.w, t0, t1, t2, t3, &o->q[6], &o->q[7]);
}

// -127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113
#define LEVELS4 0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535
// twice E2M1: 0 1 2 3 | 4 6 8 12 | 0 -1 -2 -3 | -4 -6 -8 -12
#define LEVELS_E2M1 0x03020100, 0x0c080604, 0xfdfeff00, 0xf4f8fafc

// A whole number of less than 2^23 as a float.
#ifdef NVIDIA
FN float small_float(uint v) { return as_float(v | 0x4b000000) - 8388608.0f; }
#else
#define small_float(v) ((float)(v))
#endif

// The 16 bytes of a super-block of Q4_K and Q5_K: d, m, then for each of eight
// units a byte with the scale in its low six bits and the upper two of the offset,
// and a nibble with the lower four of the offset.
FN void scales_k(unit *o, uint dm, uint low, uint hi, int g) {
  low >>= 8 * (g & 3);
  hi >>= 4 * g;
  one_scale(o, half_bits((ushort)dm) * small_float(low & 63), -half_bits((ushort)(dm >> 16)) * small_float((low >> 2 & 0x30) | (hi & 15)));
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

#if FORMAT == 0 || FORMAT == 1 || FORMAT == 30 // F32, F16, BF16: see floats.cl
#elif FORMAT == 2 // Q4_0
#define BLOCK_BYTES 18
#define BLOCK_UNITS 1
#define PLANE_A 128
#define PLANE_B 16
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 1
#define BIAS 8
RAW2(uint4 a, ushort b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
}
UNPACK {
  nibbles(o, r->a);
  float d = half_bits(r->b);
  one_scale(o, d, -8.0f * d);
}

#elif FORMAT == 3 // Q4_1
#define BLOCK_BYTES 20
#define BLOCK_UNITS 1
#define PLANE_A 128
#define PLANE_B 32
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 1
RAW2(uint4 a, uint b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = word_at(p.b, u);
}
UNPACK {
  nibbles(o, r->a);
  one_scale(o, half_bits((ushort)r->b), half_bits((ushort)(r->b >> 16)));
}

#elif FORMAT == 6 // Q5_0
#define BLOCK_BYTES 22
#define BLOCK_UNITS 1
#define PLANE_A 128
#define PLANE_B 32
#define PLANE_C 16
#define SCALES 1
#define OFFSETS 1
#define BIAS 16
RAW3(uint4 a, uint b, ushort c)
FETCH {
  o->a = four_at(p.a, u);
  o->b = word_at(p.b, u);
  o->c = two_bytes_at(p.c, u);
}
UNPACK {
  nibbles(o, r->a);
  add_bits(o, r->b, 4);
  float d = half_bits(r->c);
  one_scale(o, d, -16.0f * d);
}

#elif FORMAT == 7 // Q5_1
#define BLOCK_BYTES 24
#define BLOCK_UNITS 1
#define PLANE_A 128
#define PLANE_B 32
#define PLANE_C 32
#define SCALES 1
#define OFFSETS 1
RAW3(uint4 a, uint b, uint c)
FETCH {
  o->a = four_at(p.a, u);
  o->b = word_at(p.b, u);
  o->c = word_at(p.c, u);
}
UNPACK {
  nibbles(o, r->a);
  add_bits(o, r->b, 4);
  one_scale(o, half_bits((ushort)r->c), half_bits((ushort)(r->c >> 16)));
}

#elif FORMAT == 8 // Q8_0: plane a holds values 0..15 of every unit, b values 16..31
#define BLOCK_BYTES 34
#define BLOCK_UNITS 1
#define PLANE_A 128
#define PLANE_B 128
#define PLANE_C 16
#define SCALES 1
#define OFFSETS 0
RAW3(uint4 a, uint4 b, ushort c)
FETCH {
  o->a = four_at(p.a, u);
  o->b = four_at(p.b, u);
  o->c = two_bytes_at(p.c, u);
}
UNPACK {
  o->q[0] = r->a.x;
  o->q[1] = r->a.y;
  o->q[2] = r->a.z;
  o->q[3] = r->a.w;
  o->q[4] = r->b.x;
  o->q[5] = r->b.y;
  o->q[6] = r->b.z;
  o->q[7] = r->b.w;
  one_scale(o, half_bits(r->c), 0);
}

#elif FORMAT == 10 // Q2_K
#define BLOCK_BYTES 84
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 16
#define PLANE_C 4
#define SCALES 2
#define OFFSETS 2
RAW3(uint2 a, ushort b, uint c)
FETCH {
  o->a = two_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
  o->c = word_at(p.c, u >> 3);
}
UNPACK {
  pairs(o, r->a);
  uint s = r->b;
  float d = half_bits((ushort)r->c), m = -half_bits((ushort)(r->c >> 16));
  o->s0 = d * small_float(s & 15);
  o->m0 = m * small_float(s >> 4 & 15);
  o->s1 = d * small_float(s >> 8 & 15);
  o->m1 = m * small_float(s >> 12);
}

#elif FORMAT == 11 // Q3_K: plane c holds d, a byte of low scale bits for each unit, a nibble of upper bits
#define BLOCK_BYTES 110
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 32
#define PLANE_C 14
#define SCALES 2
#define OFFSETS 2
#define BIAS 4
RAW5(uint2 a, uint b, ushort c, ushort lo, ushort hi)
FETCH {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  int k = (u >> 3) * 7;
  o->c = two_bytes_at(p.c, k);
  o->lo = two_bytes_at(p.c, k + 1 + ((u & 7) >> 1));
  o->hi = two_bytes_at(p.c, k + 5 + ((u & 7) >> 2));
}
UNPACK {
  pairs(o, r->a);
  add_bits(o, r->b, 2);
  int g = u & 7;
  float d = half_bits(r->c);
  uint lo = r->lo >> 8 * (g & 1), hi = r->hi >> 4 * (g & 3);
  o->s0 = d * (small_float((lo & 15) | (hi << 4 & 0x30)) - 32);
  o->s1 = d * (small_float((lo >> 4 & 15) | (hi << 2 & 0x30)) - 32);
  o->m0 = -4.0f * o->s0;
  o->m1 = -4.0f * o->s1;
}

#elif FORMAT == 12 // Q4_K
#define BLOCK_BYTES 144
#define BLOCK_UNITS 8
#define PLANE_A 128
#define PLANE_B 16
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 1
RAW2(uint4 a, uint4 b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = four_at(p.b, u >> 3);
}
UNPACK {
  nibbles(o, r->a);
  scales_k(o, r->b.x, u & 4 ? r->b.z : r->b.y, r->b.w, u & 7);
}

#elif FORMAT == 13 // Q5_K
#define BLOCK_BYTES 176
#define BLOCK_UNITS 8
#define PLANE_A 128
#define PLANE_B 32
#define PLANE_C 16
#define SCALES 1
#define OFFSETS 1
RAW3(uint4 a, uint b, uint4 c)
FETCH {
  o->a = four_at(p.a, u);
  o->b = word_at(p.b, u);
  o->c = four_at(p.c, u >> 3);
}
UNPACK {
  nibbles(o, r->a);
  add_bits(o, r->b, 4);
  scales_k(o, r->c.x, u & 4 ? r->c.z : r->c.y, r->c.w, u & 7);
}

#elif FORMAT == 14 // Q6_K: plane c holds d and the 16 scales, 18 bytes
#define BLOCK_BYTES 210
#define BLOCK_UNITS 8
#define PLANE_A 128
#define PLANE_B 64
#define PLANE_C 18
#define SCALES 2
#define OFFSETS 2
#define BIAS 32
RAW4(uint4 a, uint2 b, ushort c, ushort s)
FETCH {
  o->a = four_at(p.a, u);
  o->b = two_at(p.b, u);
  int k = (u >> 3) * 9;
  o->c = two_bytes_at(p.c, k);
  o->s = two_bytes_at(p.c, k + 1 + (u & 7));
}
UNPACK {
  nibbles(o, r->a);
  add_pairs(o, r->b);
  float d = half_bits(r->c);
  o->s0 = d * (float)(char)r->s;
  o->s1 = d * (float)(char)(r->s >> 8);
  o->m0 = -32.0f * o->s0;
  o->m1 = -32.0f * o->s1;
}

#elif FORMAT == 16 // IQ2_XXS
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

#elif FORMAT == 17 // IQ2_XS: plane b a byte of scales for each unit
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

#elif FORMAT == 22 // IQ2_S: plane a: 4 bytes of numbers, signs (bits); b: upper bits, scales
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

#elif FORMAT == 18 // IQ3_XXS
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

#elif FORMAT == 21 // IQ3_S: plane b signs (bits); c: d, 8 bytes of ninth bits, 4 of scales
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

#elif FORMAT == 19 // IQ1_S
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

#elif FORMAT == 29 // IQ1_M
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

#elif FORMAT == 20 // IQ4_NL
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
  all_levels(o, r->a, LEVELS4);
  one_scale(o, half_bits(r->b), 0);
}

#elif FORMAT == 23 // IQ4_XS: plane b as the first 8 bytes of a block
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
  all_levels(o, r->a, LEVELS4);
  int g = u & 7;
  int n = (r->b.y >> 4 * g & 15) | (r->b.x >> (16 + 2 * g) & 3) << 4;
  one_scale(o, half_bits((ushort)r->b.x) * (float)(n - 32), 0);
}

#elif FORMAT == 39 // MXFP4
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
  all_levels(o, r->a, LEVELS_E2M1);
  uint e = r->b;
  one_scale(o, as_float(e > 1 ? (e - 1) << 23 : 0x200000u << e), 0);
}

#elif FORMAT == 40 // NVFP4
#define BLOCK_BYTES 36
#define BLOCK_UNITS 2
#define PLANE_A 128
#define PLANE_B 16
#define PLANE_C 0
#define SCALES 2
#define OFFSETS 0
// Half the value of an E4M3 byte, sign ignored; 0x7f stands for zero.
FN float half_e4m3(uint b) {
  b &= 127;
  float v = b < 8 ? (float)b * 0x1p-10f : as_float((b << 20) + (119u << 23));
  return b == 127 ? 0 : v;
}
RAW2(uint4 a, ushort b)
FETCH {
  o->a = four_at(p.a, u);
  o->b = two_bytes_at(p.b, u);
}
UNPACK {
  all_levels(o, r->a, LEVELS_E2M1);
  o->s0 = half_e4m3(r->b);
  o->s1 = half_e4m3(r->b >> 8);
  o->m0 = 0;
  o->m1 = 0;
}

#elif FORMAT == 41 // Q1_0
#define BLOCK_BYTES 18
#define BLOCK_UNITS 4
#define PLANE_A 32
#define PLANE_B 4
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 1
RAW2(uint a, ushort b)
FETCH {
  o->a = word_at(p.a, u);
  o->b = two_bytes_at(p.b, u >> 2);
}
UNPACK {
  for (int f = 0; f < 8; f++) o->q[f] = r->a >> f & 0x01010101;
  float d = half_bits(r->b);
  one_scale(o, 2.0f * d, -d);
}

#elif FORMAT == 42 // Q2_0
#define BLOCK_BYTES 18
#define BLOCK_UNITS 2
#define PLANE_A 64
#define PLANE_B 8
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 1
#define BIAS 1
RAW2(uint2 a, ushort b)
FETCH {
  o->a = two_at(p.a, u);
  o->b = two_bytes_at(p.b, u >> 1);
}
UNPACK {
  pairs(o, r->a);
  float d = half_bits(r->b);
  one_scale(o, d, -d);
}

#elif FORMAT == 34 || FORMAT == 35 // TQ1_0, TQ2_0: digits of 0 to 2 as pairs
#if FORMAT == 34
#define BLOCK_BYTES 54
#else
#define BLOCK_BYTES 66
#endif
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 2
#define PLANE_C 0
#define SCALES 1
#define OFFSETS 1
#define BIAS 1
RAW2(uint2 a, ushort b)
FETCH {
  o->a = two_at(p.a, u);
  o->b = two_bytes_at(p.b, u >> 3);
}
UNPACK {
  pairs(o, r->a);
  float d = half_bits(r->b);
  one_scale(o, d, -d);
}
#endif

// Products whose lanes take units that follow each other, lane l one of number l
// modulo 8, can share what belongs to eight of them: a lane fetches a word of the
// 16 bytes, and gets the others from its neighbours. That leaves registers for
// more fetches on their way. LRAW, fetch_lane and unpack_lane are for those; the
// whole wave must reach unpack_lane.
#if defined(NVIDIA) && (FORMAT == 12 || FORMAT == 13)
FN uint neighbour(uint v, int n) { // v of lane n of each eight
  uint r;
  __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 0x181f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(n));
  return r;
}
#if FORMAT == 12
typedef struct { uint4 a; uint s; } lraw;
#else
typedef struct { uint4 a; uint b, s; } lraw;
#endif
FN void fetch_lane(lraw *o, planes p, int u, int lane) {
  o->a = four_at(p.a, u);
#if FORMAT == 12
  o->s = word_at(p.b, (u >> 3) * 4 + (lane & 3));
#else
  o->b = word_at(p.b, u);
  o->s = word_at(p.c, (u >> 3) * 4 + (lane & 3));
#endif
}
FN void unpack_lane(unit *o, const lraw *r, int lane, TAB *tab) {
  nibbles(o, r->a);
#if FORMAT == 13
  add_bits(o, r->b, 4);
#endif
  scales_k(o, neighbour(r->s, 0), neighbour(r->s, 1 + (lane >> 2 & 1)), neighbour(r->s, 3), lane & 7);
}
#define LRAW lraw
#else
#define LRAW raw
#define fetch_lane(o, p, u, lane) fetch(o, p, u)
#define unpack_lane(o, r, lane, tab) unpack(o, r, lane, tab)
#endif

// Four small numbers, each less bias.
FN uint less(uint q, uint bias) { return ((q | 0x80808080) - bias * 0x01010101) ^ 0x80808080; }

#ifdef BLOCK_BYTES
// The planes of a tensor of n units that begins at w, moved to unit u of it.
// u must be a multiple of 8 for formats whose blocks hold 256 values.
FN planes planes_at(CGLOBAL uchar *w, ulong n, ulong u) {
  planes p;
  CGLOBAL uchar *b = w + (n * PLANE_A / 8 + 15) / 16 * 16;
  CGLOBAL uchar *c = b + (n * PLANE_B / 8 + 15) / 16 * 16;
  p.a = w + u * PLANE_A / 8;
  p.b = b + u * PLANE_B / 8;
  p.c = c + u * PLANE_C / 8;
  return p;
}

// What a lane reads of an activation column for a unit (quantize.cl).
typedef struct {
  uint4 a, b;
  uint2 m;
} xunit;
typedef CGLOBAL uint4 xvalues;
#define UNIT 32

FN xunit x_at(CGLOBAL uint4 *xq, CGLOBAL uint2 *xm, int upr, int col, int u) {
  xunit x;
  const int at = col * upr;
  x.a = act4(xq + 2 * at + u);
  x.b = act4(xq + 2 * at + upr + u);
  x.m = act2(xm + at + u);
  return x;
}

// Two shorts of a times the two low signed bytes of b, plus c.
#ifdef NVIDIA
FN int dot2(int a, int b, int c) {
  int r;
  __asm__("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
#else
FN int dot2(int a, int b, int c) { return c + (short)a * (char)b + (short)(a >> 16) * (char)(b >> 8); }
#endif

// Sums of a unit, less than 2^22 either way, begin at SUM0 and become floats by
// sum_float: where 2^23 + 2^22 is the start, one float subtraction converts.
#ifdef NVIDIA
#define SUM0 0x4b400000
FN float sum_float(int s) { return as_float(s) - 12582912.0f; }
#else
#define SUM0 0
#define sum_float(s) ((float)(s))
#endif

// The product of a unit: with BIAS the sums begin with -BIAS times the sum of
// the activations, and no offset is left.
FN float dot_unit(const unit *w, const xunit *x) {
#if SCALES == 1
#ifdef BIAS
  int s = dot2(x->m.y, (256 - BIAS) * 0x0101, SUM0);
#else
  int s = SUM0;
#endif
  s = dot4(w->q[0], x->a.x, s);
  s = dot4(w->q[1], x->a.y, s);
  s = dot4(w->q[2], x->a.z, s);
  s = dot4(w->q[3], x->a.w, s);
  s = dot4(w->q[4], x->b.x, s);
  s = dot4(w->q[5], x->b.y, s);
  s = dot4(w->q[6], x->b.z, s);
  s = dot4(w->q[7], x->b.w, s);
  float v = w->s0 * sum_float(s);
#else
#ifdef BIAS
  int s = dot2(x->m.y, 256 - BIAS, SUM0), t = dot2(x->m.y, (256 - BIAS) << 8, SUM0);
#else
  int s = SUM0, t = SUM0;
#endif
  s = dot4(w->q[0], x->a.x, s);
  s = dot4(w->q[1], x->a.y, s);
  s = dot4(w->q[2], x->a.z, s);
  s = dot4(w->q[3], x->a.w, s);
  t = dot4(w->q[4], x->b.x, t);
  t = dot4(w->q[5], x->b.y, t);
  t = dot4(w->q[6], x->b.z, t);
  t = dot4(w->q[7], x->b.w, t);
  float v = w->s0 * sum_float(s) + w->s1 * sum_float(t);
#endif
#ifndef BIAS
#if OFFSETS == 1
  v += w->m0 * sum_float(dot2(x->m.y, 0x0101, SUM0));
#elif OFFSETS == 2
  v += w->m0 * sum_float(dot2(x->m.y, 0x0001, SUM0)) + w->m1 * sum_float(dot2(x->m.y, 0x0100, SUM0));
#endif
#endif
  return as_float(x->m.x) * v;
}
#endif
