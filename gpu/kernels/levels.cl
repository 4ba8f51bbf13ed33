// Formats whose four bits name one of sixteen levels: IQ4_NL, IQ4_XS, MXFP4, NVFP4.

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
  all_levels(o, r->a, LEVELS4);
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
  all_levels(o, r->a, LEVELS4);
  int g = u & 7;
  int n = (r->b.y >> 4 * g & 15) | (r->b.x >> (16 + 2 * g) & 3) << 4;
  one_scale(o, half_bits((ushort)r->b.x) * (float)(n - 32), 0);
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
  all_levels(o, r->a, LEVELS_E2M1);
  uint e = r->b;
  one_scale(o, as_float(e > 1 ? (e - 1) << 23 : 0x200000u << e), 0);
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
#endif
