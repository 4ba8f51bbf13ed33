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
//            formats with a table of levels nibble i is value i (levels.cl)
//   pairs     8 bytes: word w, byte b, pair 2h + k is value 16h + 8w + 4k + b
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

// Vector tables (TABLE words, layout.go) are copied to local memory: a gather
// there takes half the time of one from the cache. On NVIDIA an entry of IQ2 is a
// nibble a value, from which prmt makes bytes, so that a gather is of one word.
// TABLE_BEGIN(waves) is the second line of a kernel that unpacks; gtab is its table
// argument.
#define TABLE_BEGIN(waves) TABLE_BEGIN_(waves)
#ifdef NVIDIA
#if FORMAT == 16 || FORMAT == 18
#define TABLE 256
#elif FORMAT == 17 || FORMAT == 21
#define TABLE 512
#elif FORMAT == 22
#define TABLE 1024
#elif FORMAT == 19
#define TABLE 2048
#elif FORMAT == 29
#define TABLE 4096
#endif
#else
#if FORMAT == 18
#define TABLE 256
#elif FORMAT == 16 || FORMAT == 21
#define TABLE 512
#elif FORMAT == 17
#define TABLE 1024
#elif FORMAT == 22 || FORMAT == 19 || FORMAT == 29
#define TABLE 2048
#endif
#endif
#ifdef TABLE
#define TAB __local const uint
#define TAB1 __local const uchar
#define TABLE_BEGIN_(waves)                                                                                              \
  __local uint tab[TABLE] __attribute__((aligned(16)));                                                                  \
  for (int i = get_local_id(0); i < TABLE / 4; i += (waves) * LANES) vstore4(((CGLOBAL uint4 *)gtab)[i], i, tab);          \
  barrier(CLK_LOCAL_MEM_FENCE);
#elif (defined(NVIDIA) || defined(PICK_EMULATED)) && (FORMAT == 20 || FORMAT == 23 || FORMAT == 39 || FORMAT == 40)
#define TAB const uint
#define TABLE_BEGIN_(waves) \
  uint tab[4];              \
  level_sizes(tab, gtab);
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
  o->q[2] = v.y & 0x03030303;
  o->q[3] = v.y >> 2 & 0x03030303;
  o->q[4] = v.x >> 4 & 0x03030303;
  o->q[5] = v.x >> 6 & 0x03030303;
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
    o->q[k / 2 * 4 + k % 2] |= (v.x >> 2 * k & 0x03030303) << 4;
    o->q[k / 2 * 4 + k % 2 + 2] |= (v.y >> 2 * k & 0x03030303) << 4;
  }
}

FN void one_scale(unit *o, float s, float m) {
  o->s0 = s;
  o->s1 = s;
  o->m0 = m;
  o->m1 = m;
}

// A whole number of less than 2^23 as a float, and one less than it by n.
#ifdef NVIDIA
FN float small_float(uint v) { return as_float(v | 0x4b000000) - 8388608.0f; }
FN float small_less(uint v, int n) { return as_float(v | 0x4b000000) - (8388608.0f + n); }
#else
#define small_float(v) ((float)(v))
#define small_less(v, n) ((float)((int)(v) - (n)))
#endif
