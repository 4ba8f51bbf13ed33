// Formats of super-blocks of 256 values with scales of their own: Q2_K to Q6_K.

// The 16 bytes of a super-block of Q4_K and Q5_K: d, m, then for each of eight
// units a byte with the scale in its low six bits and the upper two of the offset,
// and a nibble with the lower four of the offset.
FN void scales_k(unit *o, uint dm, uint low, uint hi, int g) {
  low >>= 8 * (g & 3);
  hi >>= 4 * g;
  one_scale(o, half_bits((ushort)dm) * small_float(low & 63), -half_bits((ushort)(dm >> 16)) * small_float((low >> 2 & 0x30) | (hi & 15)));
}

// Q2_K: plane b holds the second scale, the first, the first offset and the second,
// so that the first scale has the weight of its pairs (vec.cl)
#if FORMAT == 10
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
  o->s1 = d * small_float(s & 15);
  o->s0 = d * small_float(s >> 4 & 15);
  o->m0 = m * small_float(s >> 8 & 15);
  o->m1 = m * small_float(s >> 12);
}
#endif

// Q3_K: each byte of the words a.x, a.y and b holds the first three, then the next
// three, of six values 4 words apart, and in its upper bits, with those of the other
// words, two more: so seven masks and three shifts take a unit apart. Plane c holds
// d, a byte of low scale bits for each unit, a nibble of upper bits.
#if FORMAT == 11
#define BLOCK_BYTES 110
#define BLOCK_UNITS 8
#define PLANE_A 64
#define PLANE_B 32
#define PLANE_C 14
#define SCALES 2
#define OFFSETS 2
#define BIAS 4
RAW5(uint2 a, uint b, ushort c, uchar lo, ushort hi)
// The two scales of a unit of its byte and its nibble.
FN int2 scales3(uint lo, uint hi) { return (int2)((int)((lo & 15) | (hi << 4 & 0x30)) - 32, (int)(lo >> 4 | (hi << 2 & 0x30)) - 32); }
FETCH {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  int k = (u >> 3) * 7;
  o->c = two_bytes_at(p.c, k);
  o->lo = byte_at(p.c, 2 * k + 2 + (u & 7));
  o->hi = two_bytes_at(p.c, k + 5 + ((u & 7) >> 2));
}
UNPACK {
  o->q[0] = r->a.x & 0x07070707;
  o->q[1] = r->a.y & 0x07070707;
  o->q[2] = r->b & 0x07070707;
  o->q[3] = (r->a.x >> 6 & 0x03030303) | (r->b >> 4 & 0x04040404);
  o->q[4] = r->a.x >> 3 & 0x07070707;
  o->q[5] = r->a.y >> 3 & 0x07070707;
  o->q[6] = r->b >> 3 & 0x07070707;
  o->q[7] = (r->a.y >> 6 & 0x03030303) | (r->b >> 5 & 0x04040404);
  const int2 n = scales3(r->lo, r->hi >> 4 * (u & 3));
  const float d = half_bits(r->c);
  o->s0 = d * (float)n.x;
  o->s1 = d * (float)n.y;
  o->m0 = -4.0f * o->s0;
  o->m1 = -4.0f * o->s1;
}
#endif

#if FORMAT == 12 // Q4_K
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
#endif

#if FORMAT == 13 // Q5_K
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
#endif

#if FORMAT == 14 // Q6_K: plane c holds d and the 16 scales, 18 bytes
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
#endif
