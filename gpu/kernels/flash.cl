// Attention of many tokens on matrix units over halves, with float sums, and
// caches of halves. Queries are normed and rotated already and keys and values
// kept (turn).
//
// Dimension 0 is a block of FR rows, a row being (token, head of the key head's
// group), 1 the key head. A wave takes 16 rows and has its queries in registers;
// keys and values pass in tiles of FK, values coming while scores are computed
// and the next keys while values are added up. The result goes to parts as
// attend's with one split.
//
// Lane l of a wave holds of a 16 x 8 tile rows l/4 and l/4+8, columns 2*(l%4)
// and 2*(l%4)+1; so what a product of queries and keys leaves in a lane is what
// the product with values wants of it.
//
// FINE takes queries as the sum of two halves: where scores are not scaled down,
// what rounding takes from queries would be seen in them.

#define FR 64
#ifdef FINE
#define PARTS 2 // of a query
#else
#define PARTS 1
#endif
#define KL ((KD / 8 + 7) / 8 * 8) // pieces of 16 bytes of a key in local memory
#define VL ((VD / 8 + 7) / 8 * 8)
#if KL + VL <= 48
#define FK 64
#else
#define FK 32
#endif
// eight rows of the same piece lie in different banks
#define PIECE(row, line, piece) ((row) * (line) + ((piece) ^ ((row)&7)))
#define LOG2E 1.44269504f
FN float power_of_2(float v) {
#ifdef NVIDIA
  float r;
  __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
#else
  return exp2(v);
#endif
}

// Largest and sum over the four lanes that share a row.
#ifdef NVIDIA
FN float quad_max(float v) {
  v = fmax(v, lane_swap(v, 1));
  return fmax(v, lane_swap(v, 2));
}
FN float quad_sum(float v) {
  v += lane_swap(v, 1);
  return v + lane_swap(v, 2);
}
#else
#define quad_max(v) quad_max_(lane_mem, v)
#define quad_sum(v) quad_sum_(lane_mem, v)
FN float quad_max_(__local float *m, float v) {
  const int i = get_local_id(0), b = i & ~3;
  barrier(CLK_LOCAL_MEM_FENCE);
  m[i] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  return fmax(fmax(m[b], m[b + 1]), fmax(m[b + 2], m[b + 3]));
}
FN float quad_sum_(__local float *m, float v) {
  const int i = get_local_id(0), b = i & ~3;
  barrier(CLK_LOCAL_MEM_FENCE);
  m[i] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  return m[b] + m[b + 1] + m[b + 2] + m[b + 3];
}
#endif

__kernel WAVED __attribute__((reqd_work_group_size(128, 1, 1))) void flash(CGLOBAL float *q, int ldq, int qstep, CGLOBAL int *st,
                                                                          int tokens, int heads, int kvheads, int ctx, int window,
                                                                          float scale, float cap, CGLOBAL uchar *kcache,
                                                                          CGLOBAL uchar *vcache, GLOBAL float *parts) {
  BEGIN
  LANE_LOCAL
  // keys, then values; at first the queries
  __local uint4 mem[FK * (KL + VL)] __attribute__((aligned(128)));
  __local uint4 *lk = mem, *lv = mem + FK * KL;
#ifndef NVIDIA
  __local uint4 lq[PARTS * FR * KL];
  __local uint lp[FR * FK / 2];
#endif
  const int at = get_local_id(0), lane = at % 32, wave = at / 32;
  const int lr = lane / 4, lc = lane % 4;
  const int g = get_group_id(1), group = heads / kvheads, rows = tokens * group, row0 = (groups_x() - 1 - (int)get_group_id(0)) * FR; // the longest first
  const int pos = st[0];

#ifdef NVIDIA
  uint fq[PARTS][KD / 16][4];
#endif
#pragma unroll
  for (int part = 0; part < PARTS; part++) {
#ifdef NVIDIA
    __local uint4 *tq = mem;
#else
    __local uint4 *tq = lq + part * FR * KL;
#endif
    for (int i = at; i < FR * (KD / 8); i += 128) {
      const int r = i / (KD / 8), d = i % (KD / 8), row = min(row0 + r, rows - 1);
      CGLOBAL float *s = q + (ulong)(row / group) * ldq + (g * group + row % group) * qstep + d * 8;
      float v[8];
#pragma unroll
      for (int k = 0; k < 8; k++) {
        v[k] = s[k];
        if (part == 1) v[k] -= half_bits((ushort)two_halves(v[k], 0));
      }
      tq[PIECE(r, KL, d)] = (uint4)(two_halves(v[0], v[1]), two_halves(v[2], v[3]), two_halves(v[4], v[5]), two_halves(v[6], v[7]));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef NVIDIA
#pragma unroll
    for (int k = 0; k < KD / 16; k++) matrix4(fq[part][k], SHARED(mem) + 16 * PIECE(wave * 16 + lane % 16, KL, 2 * k + lane / 16));
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
  }

  const int last_row = min(row0 + FR, rows) - 1;
  const int to = pos + last_row / group + 1; // keys seen by the last row
  const int all = pos + row0 / group + 1;    // and by the first
  int from = 0;
  if (window > 0) from = max(0, pos + row0 / group - window + 1) / FK * FK;
  CGLOBAL uint4 *keys = (CGLOBAL uint4 *)kcache + (ulong)g * ctx * (KD / 8), *values = (CGLOBAL uint4 *)vcache + (ulong)g * ctx * (VD / 8);
// Copies of FK rows of D / 8 pieces from row `base` on; past the end zeroes, as
// what is there may be anything.
#define BRING_ROWS(base, D, line, into, rows)                                                                                     \
  _Pragma("unroll") for (int t = 0; t < (FK * (D / 8) + 127) / 128; t++) {                                                        \
    const int i = at + t * 128, row = i / (D / 8), piece = i % (D / 8);                                                             \
    if (FK * (D / 8) % 128 == 0 || i < FK * (D / 8))                                                                              \
      BRING_IF((base) + row < to, into + PIECE(row, line, piece), rows + (ulong)(base) * (D / 8) + (row * (D / 8) + piece));       \
  }
#define BRING_KEYS(base) BRING_ROWS(base, KD, KL, lk, keys)
#define BRING_VALUES(base) BRING_ROWS(base, VD, VL, lv, values)

  // this lane's two rows: positions of their tokens
  const int ra = row0 + wave * 16 + lr, rb = ra + 8;
  const int pa = pos + ra / group, pb = pos + rb / group;
#ifdef CAP
  const float by = scale * 2.0f * LOG2E / cap;
#else
  const float by = scale * LOG2E;
#endif
  float m0 = -INFINITY, m1 = -INFINITY, l0 = 0, l1 = 0; // of scores in bits
  float acc[VD / 8][4];
#pragma unroll
  for (int j = 0; j < VD / 8; j++)
#pragma unroll
    for (int k = 0; k < 4; k++) acc[j][k] = 0;

  BRING_KEYS(from)
  BROUGHT;
  for (int base = from; base < to; base += FK) {
    BRING_VALUES(base)
    BROUGHT;
    ARRIVED(1);
    barrier(CLK_LOCAL_MEM_FENCE);

    float s[FK / 8][4];
#pragma unroll
    for (int j = 0; j < FK / 8; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) s[j][k] = 0;
#ifdef NVIDIA
#pragma unroll
    for (int k = 0; k < KD / 16; k++)
#pragma unroll
      for (int j = 0; j < FK / 16; j++) {
        uint b[4];
        matrix4(b, SHARED(lk) + 16 * PIECE(j * 16 + lane % 8 + lane / 16 * 8, KL, 2 * k + lane / 8 % 2));
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
          multiply(s[2 * j], fq[part][k], b[0], b[1]);
          multiply(s[2 * j + 1], fq[part][k], b[2], b[3]);
        }
      }
#else
    for (int j = 0; j < FK / 8; j++)
      for (int k = 0; k < 4; k++) {
        const int row = wave * 16 + lr + k / 2 * 8, key = j * 8 + 2 * lc + k % 2;
        for (int d = 0; d < PARTS * KD; d++) {
          const int e = d % KD;
          s[j][k] += vload_half((d / KD * FR * KL + PIECE(row, KL, e / 8)) * 8 + e % 8, (__local half *)lq) *
                     vload_half(PIECE(key, KL, e / 8) * 8 + e % 8, (__local half *)lk);
        }
      }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    if (base + FK < to) {
      BRING_KEYS(base + FK)
    }
    BROUGHT;

#pragma unroll
    for (int j = 0; j < FK / 8; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) {
#ifdef CAP // cap * tanh(v / cap), in bits
        s[j][k] = cap * LOG2E * (1.0f - 2.0f / (power_of_2(s[j][k] * by) + 1.0f));
#else
        s[j][k] *= by;
#endif
      }
    if (base + FK > all || (window > 0 && base + window < to)) {
#pragma unroll
      for (int j = 0; j < FK / 8; j++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
          const int key = base + j * 8 + 2 * lc + k % 2, p = k < 2 ? pa : pb;
          s[j][k] = key > p || (window > 0 && key + window <= p) ? -INFINITY : s[j][k];
        }
    }
    float t0 = m0, t1 = m1;
#pragma unroll
    for (int j = 0; j < FK / 8; j++) {
      t0 = fmax(t0, fmax(s[j][0], s[j][1]));
      t1 = fmax(t1, fmax(s[j][2], s[j][3]));
    }
    t0 = quad_max(t0);
    t1 = quad_max(t1);
    // rows that have seen no key yet
    const float z0 = t0 == -INFINITY ? 0.0f : t0, z1 = t1 == -INFINITY ? 0.0f : t1;
    const float f0 = power_of_2(m0 - z0), f1 = power_of_2(m1 - z1);
    m0 = t0;
    m1 = t1;
    l0 *= f0;
    l1 *= f1;
#pragma unroll
    for (int j = 0; j < VD / 8; j++) {
      acc[j][0] *= f0;
      acc[j][1] *= f0;
      acc[j][2] *= f1;
      acc[j][3] *= f1;
    }
#pragma unroll
    for (int j = 0; j < FK / 8; j++) {
      s[j][0] = power_of_2(s[j][0] - z0);
      s[j][1] = power_of_2(s[j][1] - z0);
      s[j][2] = power_of_2(s[j][2] - z1);
      s[j][3] = power_of_2(s[j][3] - z1);
      l0 += s[j][0] + s[j][1];
      l1 += s[j][2] + s[j][3];
    }
    ARRIVED(1);
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef NVIDIA
#pragma unroll
    for (int k = 0; k < FK / 16; k++) {
      const uint a[4] = {two_halves(s[2 * k][0], s[2 * k][1]), two_halves(s[2 * k][2], s[2 * k][3]),
                         two_halves(s[2 * k + 1][0], s[2 * k + 1][1]), two_halves(s[2 * k + 1][2], s[2 * k + 1][3])};
#pragma unroll
      for (int j = 0; j < VD / 16; j++) {
        uint b[4];
        matrix4t(b, SHARED(lv) + 16 * PIECE(k * 16 + lane % 16, VL, 2 * j + lane / 16));
        multiply(acc[2 * j], a, b[0], b[1]);
        multiply(acc[2 * j + 1], a, b[2], b[3]);
      }
    }
#else
    for (int j = 0; j < FK / 8; j++) {
      lp[((wave * 16 + lr) * FK + j * 8) / 2 + lc] = two_halves(s[j][0], s[j][1]);
      lp[((wave * 16 + lr + 8) * FK + j * 8) / 2 + lc] = two_halves(s[j][2], s[j][3]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < VD / 8; j++)
      for (int k = 0; k < 4; k++) {
        const int row = wave * 16 + lr + k / 2 * 8, d = j * 8 + 2 * lc + k % 2;
        for (int key = 0; key < FK; key++)
          acc[j][k] += vload_half(row * FK + key, (__local half *)lp) * vload_half(PIECE(key, VL, d / 8) * 8 + d % 8, (__local half *)lv);
      }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  l0 = quad_sum(l0);
  l1 = quad_sum(l1);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = h ? rb : ra;
    if (row >= rows) continue;
    GLOBAL float *o = parts + ((ulong)(row / group) * heads + g * group + row % group) * (VD + 2);
#pragma unroll
    for (int j = 0; j < VD / 8; j++) {
      o[j * 8 + 2 * lc] = acc[j][2 * h];
      o[j * 8 + 2 * lc + 1] = acc[j][2 * h + 1];
    }
    if (lc == 0) {
      o[VD] = h ? l1 : l0;
      o[VD + 1] = (h ? m1 : m0) * (1.0f / LOG2E);
    }
  }
}
