// Units times one column by the shortest way of each format: a vunit holds fields
// of the planes as masks leave them, values times powers of two, and vec_dot adds
// the smallest first and multiplies what it has before it goes on to the next. All
// of it is whole numbers below 2^22, so the results are those of dot_unit.
//
// Formats without a way of their own use unpack and dot_unit. So does everything on
// Intel, where shifts cost no more than other operations and there is no prmt.

// Four unsigned bytes of a times four signed ones of b.
#ifdef NVIDIA
FN int dot4u(uint a, int b, int c) {
  int r;
  __asm__("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
#else
FN int dot4u(uint a, int b, int c) {
  uchar4 x = as_uchar4(a);
  char4 y = as_char4(b);
  return c + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}
#endif

#if defined(INTEL)
#elif FORMAT == 2 || FORMAT == 3 || FORMAT == 12 // upper nibbles stay where they are: 16 times
#define VEC
typedef unit vunit;
#define VEC_FIELDS(o, r)          \
  o->q[0] = r->a.x & 0x0f0f0f0fu; \
  o->q[1] = r->a.y & 0x0f0f0f0fu; \
  o->q[2] = r->a.z & 0x0f0f0f0fu; \
  o->q[3] = r->a.w & 0x0f0f0f0fu; \
  o->q[4] = r->a.x & 0xf0f0f0f0u; \
  o->q[5] = r->a.y & 0xf0f0f0f0u; \
  o->q[6] = r->a.z & 0xf0f0f0f0u; \
  o->q[7] = r->a.w & 0xf0f0f0f0u;
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
#ifdef BIAS
  int s = dot2(x->m.y, (256 - BIAS) * 0x0101, 0);
#else
  int s = 0;
#endif
  s = dot4(w->q[0], x->a.x, s);
  s = dot4(w->q[1], x->a.y, s);
  s = dot4(w->q[2], x->a.z, s);
  s = dot4(w->q[3], x->a.w, s);
  s = s * 16 + SUM0;
  s = dot4u(w->q[4], x->b.x, s);
  s = dot4u(w->q[5], x->b.y, s);
  s = dot4u(w->q[6], x->b.z, s);
  s = dot4u(w->q[7], x->b.w, s);
  float v = w->s0 * sum_float(s);
#ifndef BIAS
  v += w->m0 * (16.0f * sum_float(dot2(x->m.y, 0x0101, SUM0)));
#endif
  return mad(as_float(x->m.x) * 0x1p-4f, v, sum);
}

#elif FORMAT == 34 || FORMAT == 35 || FORMAT == 42 || FORMAT == 10 // pairs: 1, 4, 16 and 64 times
#define VEC
#define PAIR_FIELDS(o, r)         \
  o->q[0] = r->a.x & 0x03030303u; \
  o->q[1] = r->a.x & 0x0c0c0c0cu; \
  o->q[2] = r->a.y & 0x03030303u; \
  o->q[3] = r->a.y & 0x0c0c0c0cu; \
  o->q[4] = r->a.x & 0x30303030u; \
  o->q[5] = r->a.x & 0xc0c0c0c0u; \
  o->q[6] = r->a.y & 0x30303030u; \
  o->q[7] = r->a.y & 0xc0c0c0c0u;
#if FORMAT != 10
typedef unit vunit;
#define VEC_FIELDS(o, r) PAIR_FIELDS(o, r)
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
  int s = dot2(x->m.y, (256 - BIAS) * 0x0101, 0);
  s = dot4(w->q[0], x->a.x, s);
  s = dot4(w->q[2], x->a.z, s);
  s = dot4(w->q[1], x->a.y, s * 4);
  s = dot4(w->q[3], x->a.w, s);
  s = dot4(w->q[4], x->b.x, s * 4);
  s = dot4(w->q[6], x->b.z, s);
  s = dot4u(w->q[5], x->b.y, s * 4 + SUM0);
  s = dot4u(w->q[7], x->b.w, s);
  return mad(as_float(x->m.x) * 0x1p-6f, w->s0 * sum_float(s), sum);
}
#else
// Scales and offsets stay where they are as well, and whole numbers: sums times them
// are below 2^24 and 2^28 (a multiple of 2^12), so floats hold them.
typedef struct {
  uint q[8];
  int s0, s1, m0, m1;
  float d, m;
} vunit;
#define VEC_OWN
FN void vec_unit(vunit *o, const raw *r, int u, TAB *tab) {
  PAIR_FIELDS(o, r)
  o->s1 = r->b & 0xf;
  o->s0 = r->b & 0xf0;
  o->m0 = r->b & 0xf00;
  o->m1 = r->b & 0xf000;
  o->d = half_bits((ushort)r->c);
  o->m = half_bits((ushort)(r->c >> 16)) * 0x1p-6f;
}
#define vec_lane vec_unit
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
  int s = dot4(w->q[0], x->a.x, 0), t = dot4(w->q[4], x->b.x, 0);
  s = dot4(w->q[2], x->a.z, s);
  s = dot4(w->q[1], x->a.y, s * 4);
  s = dot4(w->q[3], x->a.w, s);
  t = dot4(w->q[6], x->b.z, t);
  t = dot4u(w->q[5], x->b.y, t * 4);
  t = dot4u(w->q[7], x->b.w, t);
  const int x0 = dot2(x->m.y, 0x0010, 0), x1 = dot2(x->m.y, 0x0100, 0);
  return mad(as_float(x->m.x) * 0x1p-6f, w->d * (float)(w->s0 * s + w->s1 * t) - w->m * (float)(w->m0 * x0 + w->m1 * x1), sum);
}
#endif

#elif FORMAT == 11 // Q3_K: three bits at 0 (1 times) and 3 (8 times), two at 6 whose third is in another word
#define VEC
typedef struct {
  uint q[10];
  int s0, s1;
  float d;
} vunit;
#define VEC_OWN
#define Q3_FIELDS(o, r)           \
  o->q[0] = r->a.x & 0x07070707u; \
  o->q[1] = r->a.y & 0x07070707u; \
  o->q[2] = r->b & 0x07070707u;   \
  o->q[3] = r->a.x & 0xc0c0c0c0u; \
  o->q[4] = r->a.x & 0x38383838u; \
  o->q[5] = r->a.y & 0x38383838u; \
  o->q[6] = r->b & 0x38383838u;   \
  o->q[7] = r->a.y & 0xc0c0c0c0u; \
  o->q[8] = r->b & 0x40404040u;   \
  o->q[9] = r->b & 0x80808080u;
FN void vec_unit(vunit *o, const raw *r, int u, TAB *tab) {
  Q3_FIELDS(o, r)
  const int2 n = scales3(r->lo, r->hi >> 4 * (u & 3));
  o->s0 = n.x;
  o->s1 = n.y;
  o->d = half_bits(r->c);
}
#ifdef NVIDIA
FN void vec_lane(vunit *o, const LRAW *r, int lane, TAB *tab) {
  Q3_FIELDS(o, r)
  const int2 n = scales_lane(r, lane);
  o->s0 = n.x;
  o->s1 = n.y;
  o->d = half_bits((ushort)neighbour(r->s, 0));
}
#else
#define vec_lane vec_unit
#endif
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
  int s = dot2(x->m.y, 256 - BIAS, 0), t = dot2(x->m.y, (256 - 8 * BIAS) << 8, 0);
  s = dot4(w->q[0], x->a.x, s);
  s = dot4(w->q[1], x->a.y, s);
  s = dot4(w->q[2], x->a.z, s);
  s = dot4(w->q[8], x->a.w, s * 16);
  s = dot4u(w->q[3], x->a.w, s * 4);
  t = dot4(w->q[4], x->b.x, t);
  t = dot4(w->q[5], x->b.y, t);
  t = dot4(w->q[6], x->b.z, t);
  t = dot4u(w->q[9], x->b.w, t * 4);
  t = dot4u(w->q[7], x->b.w, t * 2);
  return mad(as_float(x->m.x) * 0x1p-6f, w->d * (float)(w->s0 * s + w->s1 * t), sum);
}

#elif FORMAT == 41 // Q1_0: 1 to 128 times; every bit counts twice less once
#define VEC
typedef unit vunit;
#define VEC_FIELDS(o, r) \
  for (int f = 0; f < 8; f++) o->q[f] = r->a & 0x01010101u << f;
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
  int s = dot4(w->q[0], x->a.x, 0);
  s = dot4(w->q[1], x->a.y, s * 2 + dot2(x->m.y, 0xffff, 0));
  s = dot4(w->q[2], x->a.z, s * 2);
  s = dot4(w->q[3], x->a.w, s * 2);
  s = dot4(w->q[4], x->b.x, s * 2);
  s = dot4(w->q[5], x->b.y, s * 2);
  s = dot4(w->q[6], x->b.z, s * 2);
  s = dot4u(w->q[7], x->b.w, s * 2 + SUM0);
  return mad(as_float(x->m.x) * 0x1p-7f, w->s0 * sum_float(s), sum);
}

#elif defined(PICK) && (FORMAT == 20 || FORMAT == 23 || FORMAT == 39 || FORMAT == 40)
// Levels of either sign apart, as sizes: prmt gives 0 for a number with bit 3 where
// no byte of the table has bit 7. So one that has the bit of the other sign adds
// nothing, and two sums do what a choice between two bytes did.
#define VEC
typedef struct {
  uint p[8], n[8];
  float s0, s1, m0, m1;
} vunit;
#ifdef IQ4_LEVELS // bit 3 is that of the upper ones
#define ABOVE(v) pick4(tab[0], tab[1], (v) ^ 0x88888888u)
#define BELOW(v) pick4(tab[2], tab[3], v)
#else
#define ABOVE(v) pick4(tab[0], tab[1], v)
#define BELOW(v) pick4(tab[2], tab[3], (v) ^ 0x88888888u)
#endif
#define VEC_WORD(o, k, v)        \
  o->p[k] = ABOVE(v);            \
  o->n[k] = BELOW(v);            \
  o->p[k + 1] = ABOVE((v) >> 16); \
  o->n[k + 1] = BELOW((v) >> 16);
#define VEC_FIELDS(o, r)  \
  VEC_WORD(o, 0, r->a.x) \
  VEC_WORD(o, 2, r->a.y) \
  VEC_WORD(o, 4, r->a.z) \
  VEC_WORD(o, 6, r->a.w)
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
  int n = dot4(w->n[0], x->a.x, 0), s;
  n = dot4(w->n[1], x->a.y, n);
  n = dot4(w->n[2], x->a.z, n);
  n = dot4(w->n[3], x->a.w, n);
#if SCALES == 1
  n = dot4(w->n[4], x->b.x, n);
  n = dot4(w->n[5], x->b.y, n);
  n = dot4(w->n[6], x->b.z, n);
  n = dot4(w->n[7], x->b.w, n);
#endif
  s = dot4(w->p[0], x->a.x, SUM0 - n);
  s = dot4(w->p[1], x->a.y, s);
  s = dot4(w->p[2], x->a.z, s);
  s = dot4(w->p[3], x->a.w, s);
#if SCALES == 2
  const float first = sum_float(s);
  n = dot4(w->n[4], x->b.x, 0);
  n = dot4(w->n[5], x->b.y, n);
  n = dot4(w->n[6], x->b.z, n);
  n = dot4(w->n[7], x->b.w, n);
  s = SUM0 - n;
#endif
  s = dot4(w->p[4], x->b.x, s);
  s = dot4(w->p[5], x->b.y, s);
  s = dot4(w->p[6], x->b.z, s);
  s = dot4(w->p[7], x->b.w, s);
#if SCALES == 2
  return mad(as_float(x->m.x), w->s0 * first + w->s1 * sum_float(s), sum);
#else
  return mad(as_float(x->m.x), w->s0 * sum_float(s), sum);
#endif
}
#endif

#if !defined(INTEL) && FORMAT == 18 // IQ3_XXS: all sizes, less twice those with a minus
#define VEC
#define VEC_OWN
typedef struct {
  uint q[8], n[8];
  float s0;
} vunit;
FN void vec_unit(vunit *o, const raw *r, int u, TAB *tab) {
  const uint s = even_signs(r->b);
  for (int k = 0; k < 8; k++) {
    o->q[k] = entry(tab, entry_at(k < 4 ? r->a.x : r->a.y, 0, 8 * (k & 3), 8));
    o->n[k] = o->q[k] & top_bits(s << (7 - k / 2 - 4 * (k & 1)));
  }
  o->s0 = quarter_scale(half_bits(r->c), r->b >> 28, 0);
}
#define vec_lane vec_unit
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
  int n = dot4(w->n[0], x->a.x, 0), s;
  n = dot4(w->n[1], x->a.y, n);
  n = dot4(w->n[2], x->a.z, n);
  n = dot4(w->n[3], x->a.w, n);
  n = dot4(w->n[4], x->b.x, n);
  n = dot4(w->n[5], x->b.y, n);
  n = dot4(w->n[6], x->b.z, n);
  n = dot4(w->n[7], x->b.w, n);
  s = dot4(w->q[0], x->a.x, SUM0 - 2 * n);
  s = dot4(w->q[1], x->a.y, s);
  s = dot4(w->q[2], x->a.z, s);
  s = dot4(w->q[3], x->a.w, s);
  s = dot4(w->q[4], x->b.x, s);
  s = dot4(w->q[5], x->b.y, s);
  s = dot4(w->q[6], x->b.z, s);
  s = dot4(w->q[7], x->b.w, s);
  return mad(as_float(x->m.x), 2 * w->s0 * sum_float(s), sum);
}

#elif !defined(INTEL) && (FORMAT == 19 || FORMAT == 29)
// IQ1: upper nibbles stay where they are, and what offsets take off the sums depends
// on the activations alone.
#define VEC
#define VEC_OWN
typedef struct {
  uint q[8];
  float s0, s1;
  int down;
} vunit;
FN void vec_unit(vunit *o, const raw *r, int u, TAB *tab) {
  for (int k = 0; k < 4; k++) {
    uint n = iq1_entry(r, k, tab);
#if FORMAT == 29 && !defined(NVIDIA)
    n |= IQ1_MORE(r, k) * 0x11;
#endif
    o->q[2 * k] = n & 0x0f0f0f0fu;
    o->q[2 * k + 1] = n & 0xf0f0f0f0u;
  }
#if FORMAT == 19
  o->down = IQ1_DOWN(r);
  o->s0 = iq1_scale(r);
#else
  iq1_scales(&o->s0, &o->s1, r, u);
#endif
}
#define vec_lane vec_unit
// Sums less what is known of them before.
#ifdef NVIDIA
#define SUM_BASE 12582912.0f
#define sum_from(s, base) (as_float(s) - (base))
#else
#define SUM_BASE 0
#define sum_from(s, base) ((float)(s) - (base))
#endif
FN float vec_dot(const vunit *w, const xunit *x, float sum) {
  int s = dot4(w->q[0], x->a.x, 0);
  s = dot4(w->q[2], x->a.z, s);
#if FORMAT == 19
  s = dot4(w->q[4], x->b.x, s);
  s = dot4(w->q[6], x->b.z, s);
  s = s * 16 + SUM0;
  s = dot4u(w->q[1], x->a.y, s);
  s = dot4u(w->q[3], x->a.w, s);
  s = dot4u(w->q[5], x->b.y, s);
  s = dot4u(w->q[7], x->b.w, s);
  const float all = sum_float(dot2(x->m.y, 0x0101, SUM0)), up = SUM_BASE + 56 * all, down = SUM_BASE + 72 * all;
  return mad(as_float(x->m.x) * 0x1p-3f, w->s0 * sum_from(s, w->down ? down : up), sum);
#else
  s = s * 16 + SUM0;
  s = dot4u(w->q[1], x->a.y, s);
  s = dot4u(w->q[3], x->a.w, s);
  int t = dot4(w->q[4], x->b.x, 0);
  t = dot4(w->q[6], x->b.z, t);
  t = t * 16 + SUM0;
  t = dot4u(w->q[5], x->b.y, t);
  t = dot4u(w->q[7], x->b.w, t);
  const float m0 = SUM_BASE + 72 * sum_float(dot2(x->m.y, 0x0001, SUM0)), m1 = SUM_BASE + 72 * sum_float(dot2(x->m.y, 0x0100, SUM0));
  return mad(as_float(x->m.x) * 0x1p-3f, w->s0 * sum_from(s, m0) + w->s1 * sum_from(t, m1), sum);
#endif
}
#endif

#if defined(NVIDIA) && FORMAT == 21 // IQ3_S: a lane fetches one of the seven words of 16 bits in plane c (dot.cl)
#undef LRAW
#undef fetch_lane
#undef unpack_lane
#define LRAW lraw
typedef struct {
  uint2 a;
  uint b, s;
} lraw;
FN uint neighbour(uint v, int n) { // v of lane n of each eight
  uint r;
  __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 0x181f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(n));
  return r;
}
FN void fetch_lane(lraw *o, planes p, int u, int lane) {
  o->a = two_at(p.a, u);
  o->b = word_at(p.b, u);
  o->s = short_at(p.c, (u >> 3) * 7 + min(lane & 7, 6));
}
FN void unpack_lane(unit *o, const lraw *r, int lane, TAB *tab) {
  raw t;
  t.a = r->a;
  t.b = r->b;
  t.c = neighbour(r->s, 0);
  t.h = neighbour(r->s, 1 + (lane >> 1 & 3)) >> 8 * (lane & 1); // only its lower bits count
  t.s = neighbour(r->s, 5 + (lane >> 2 & 1)) >> 4 * (lane & 3);
  unpack(o, &t, 0, tab);
}
#endif

#ifndef VEC
#define vunit unit
#define vec_unit unpack
#define vec_lane unpack_lane
#define vec_dot dot_unit
#elif !defined(VEC_OWN) // of what unpack makes only the scales are used, and compilers leave the rest out
FN void vec_of(vunit *o, const unit *t) {
  o->s0 = t->s0;
  o->s1 = t->s1;
  o->m0 = t->m0;
  o->m1 = t->m1;
}
FN void vec_unit(vunit *o, const raw *r, int u, TAB *tab) {
  unit t;
  unpack(&t, r, u, tab);
  vec_of(o, &t);
  VEC_FIELDS(o, r)
}
FN void vec_lane(vunit *o, const LRAW *r, int lane, TAB *tab) {
  unit t;
  unpack_lane(&t, r, lane, tab);
  vec_of(o, &t);
  VEC_FIELDS(o, r)
}
#endif
