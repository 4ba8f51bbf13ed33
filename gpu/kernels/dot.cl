// The product of a unit with activations, and how lanes share what belongs to
// several units.

// Products whose lanes take units that follow each other, lane l one of number l
// modulo 8, can share what belongs to eight of them: a lane fetches a word of the
// 16 bytes, and gets the others from its neighbours. That leaves registers for
// more fetches on their way. LRAW, fetch_lane and unpack_lane are for those; the
// whole wave must reach unpack_lane.
#if defined(NVIDIA) && (FORMAT == 11 || FORMAT == 12 || FORMAT == 13)
FN uint neighbour(uint v, int n) { // v of lane n of each eight
  uint r;
  __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 0x181f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(n));
  return r;
}
#if FORMAT == 11
typedef struct { uint2 a; uint b; ushort s; } lraw;
FN void fetch_lane(lraw *o, planes p, int u, int lane) {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  o->s = two_bytes_at(p.c, (u >> 3) * 7 + min(lane & 7, 6));
}
FN int2 scales_lane(const lraw *r, int lane) {
  return scales3(neighbour(r->s, 1 + (lane >> 1 & 3)) >> 8 * (lane & 1) & 255, neighbour(r->s, 5 + (lane >> 2 & 1)) >> 4 * (lane & 3));
}
#else
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
#endif
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

// Adds the product of a unit to sum: with BIAS the sums begin with -BIAS times the sum of
// the activations, and no offset is left.
FN float dot_unit(const unit *w, const xunit *x, float sum) {
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
  return mad(as_float(x->m.x), v, sum);
}
#endif
