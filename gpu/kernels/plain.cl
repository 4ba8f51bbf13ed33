// Formats without super-blocks: Q4_0 to Q8_0, Q1_0, Q2_0, and the ternary ones.
// See unit.cl for what they are made of.

#if FORMAT == 2 // Q4_0
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
#endif

#if FORMAT == 3 // Q4_1
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
#endif

#if FORMAT == 6 // Q5_0
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
#endif

#if FORMAT == 7 // Q5_1
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
#endif

#if FORMAT == 8 // Q8_0: plane a holds values 0..15 of every unit, b values 16..31
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
#endif

#if FORMAT == 41 // Q1_0
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
#endif

#if FORMAT == 42 // Q2_0
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
#endif

#if FORMAT == 34 || FORMAT == 35 // TQ1_0, TQ2_0: digits of 0 to 2 as pairs
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
