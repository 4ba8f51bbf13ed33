// Attention of many tokens on NVIDIA's matrix units (mma.sync m16n8k16 over
// halves, float sums), caches of halves. Queries are normed and rotated already
// and keys and values kept (turn).
//
// Dimension 0 is a block of FR rows, a row being (token, head of the key head's
// group), 1 the key head. A wave takes 16 rows; keys pass in tiles of FK. The
// result goes to parts as attend's with one split.
//
// Lane l of a wave holds of a 16 x 8 tile rows l/4 and l/4+8, columns 2*(l%4)
// and 2*(l%4)+1; so what a product of queries and keys leaves in a lane is what
// the product with values wants of it.

#define FR 64
#define FK 32
#define KLINE (KD / 2 + 4) // words of a key: padding keeps lanes in different banks
#define VLINE (VD + 8)     // words of a pair of values' rows

// Two floats to two halves of a word.
FN uint two_halves(float lo, float hi) {
#ifdef NVIDIA
  uint r;
  __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
#else
  ushort a, b;
  vstore_half(lo, 0, (half *)&a);
  vstore_half(hi, 0, (half *)&b);
  return a | (uint)b << 16;
#endif
}

#ifdef NVIDIA
#define FLASH_LOCAL
#define MMA_HALF(c, a, b0, b1)                                                                                                    \
  __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                \
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                                        \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#else
#define FLASH_LOCAL __local uint flash_a[128 * 4], flash_b[128 * 2];
FN float dot_halves(uint a, uint b) {
  return half_bits((ushort)a) * half_bits((ushort)b) + half_bits((ushort)(a >> 16)) * half_bits((ushort)(b >> 16));
}
FN void mma_half(__local uint *ma, __local uint *mb, float *c, const uint *a, uint b0, uint b1) {
  const int i = get_local_id(0), lane = i % 32, wave = i / 32 * 32;
  for (int k = 0; k < 4; k++) ma[i * 4 + k] = a[k];
  mb[i * 2] = b0;
  mb[i * 2 + 1] = b1;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = 0; r < 4; r++) {
    const int row = lane / 4, col = lane % 4 * 2 + r % 2;
    for (int w = 0; w < 4; w++) {
      const int la = (wave + row * 4 + w) * 4 + (r < 2 ? 0 : 1), lb = (wave + col * 4 + w) * 2;
      c[r] += dot_halves(ma[la], mb[lb]) + dot_halves(ma[la + 2], mb[lb + 1]);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#define MMA_HALF(c, a, b0, b1) mma_half(flash_a, flash_b, c, a, b0, b1)
#endif

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
  FLASH_LOCAL
  __local uint lq[FR * KLINE] __attribute__((aligned(16)));
  __local uint lk[FK * KLINE] __attribute__((aligned(16)));
  __local uint lv[FK / 2 * VLINE] __attribute__((aligned(16)));
  const int at = get_local_id(0), lane = at % 32, wave = at / 32;
  const int lr = lane / 4, lc = lane % 4;
  const int g = get_group_id(1), group = heads / kvheads, rows = tokens * group, row0 = get_group_id(0) * FR;
  const int pos = st[0];

  for (int i = at; i < FR * (KD / 2); i += 128) {
    const int r = i / (KD / 2), d = i % (KD / 2) * 2, row = min(row0 + r, rows - 1);
    CGLOBAL float *s = q + (ulong)(row / group) * ldq + (g * group + row % group) * qstep + d;
    lq[r * KLINE + d / 2] = two_halves(s[0], s[1]);
  }

  const int last_row = min(row0 + FR, rows) - 1;
  const int to = pos + last_row / group + 1; // keys seen by the last row
  int from = 0;
  if (window > 0) from = max(0, pos + row0 / group - window + 1) / FK * FK;

  // this lane's two rows: positions of their tokens
  const int ra = row0 + wave * 16 + lr, rb = ra + 8;
  const int pa = pos + ra / group, pb = pos + rb / group;
  float m0 = -INFINITY, m1 = -INFINITY, l0 = 0, l1 = 0;
  float acc[VD / 8][4];
#pragma unroll
  for (int j = 0; j < VD / 8; j++)
#pragma unroll
    for (int k = 0; k < 4; k++) acc[j][k] = 0;

  for (int base = from; base < to; base += FK) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = at; i < FK * (KD / 8); i += 128) {
      const int k = i / (KD / 8), d = i % (KD / 8);
      const ulong row = (ulong)g * ctx + min(base + k, to - 1);
      vstore4(((CGLOBAL uint4 *)(kcache + row * KD * 2))[d], 0, lk + k * KLINE + d * 4);
    }
    for (int i = at; i < FK / 2 * (VD / 8); i += 128) {
      const int k = i / (VD / 8), d = i % (VD / 8);
      const ulong row = (ulong)g * ctx;
      // past the end the weights are 0, but what is there may be anything
      const int ka = base + 2 * k, kb = ka + 1;
      const uint4 none = (uint4)(0, 0, 0, 0);
      const uint4 a = ka < to ? ((CGLOBAL uint4 *)(vcache + (row + ka) * VD * 2))[d] : none;
      const uint4 b = kb < to ? ((CGLOBAL uint4 *)(vcache + (row + kb) * VD * 2))[d] : none;
      __local uint *l = lv + k * VLINE + d * 8;
      vstore4((uint4)((a.x & 0xffff) | b.x << 16, a.x >> 16 | (b.x & 0xffff0000), (a.y & 0xffff) | b.y << 16, a.y >> 16 | (b.y & 0xffff0000)), 0, l);
      vstore4((uint4)((a.z & 0xffff) | b.z << 16, a.z >> 16 | (b.z & 0xffff0000), (a.w & 0xffff) | b.w << 16, a.w >> 16 | (b.w & 0xffff0000)), 1, l);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    float s[FK / 8][4];
#pragma unroll
    for (int j = 0; j < FK / 8; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) s[j][k] = 0;
#pragma unroll
    for (int k = 0; k < KD / 16; k++) {
      __local const uint *r = lq + (wave * 16 + lr) * KLINE + k * 8 + lc;
      const uint a[4] = {r[0], r[8 * KLINE], r[4], r[8 * KLINE + 4]};
#pragma unroll
      for (int j = 0; j < FK / 8; j++) {
        __local const uint *b = lk + (j * 8 + lr) * KLINE + k * 8 + lc;
        MMA_HALF(s[j], a, b[0], b[4]);
      }
    }
    float t0 = m0, t1 = m1;
#pragma unroll
    for (int j = 0; j < FK / 8; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const int key = base + j * 8 + 2 * lc + k % 2, p = k < 2 ? pa : pb;
        float v = s[j][k] * scale;
        if (cap != 0) v = cap * tanh(v / cap);
        if (key > p || (window > 0 && key + window <= p)) v = -INFINITY;
        s[j][k] = v;
        if (k < 2)
          t0 = fmax(t0, v);
        else
          t1 = fmax(t1, v);
      }
    t0 = quad_max(t0);
    t1 = quad_max(t1);
    const float f0 = t0 == -INFINITY ? 1.0f : exp(m0 - t0), f1 = t1 == -INFINITY ? 1.0f : exp(m1 - t1);
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
      s[j][0] = t0 == -INFINITY ? 0.0f : exp(s[j][0] - t0);
      s[j][1] = t0 == -INFINITY ? 0.0f : exp(s[j][1] - t0);
      s[j][2] = t1 == -INFINITY ? 0.0f : exp(s[j][2] - t1);
      s[j][3] = t1 == -INFINITY ? 0.0f : exp(s[j][3] - t1);
      l0 += s[j][0] + s[j][1];
      l1 += s[j][2] + s[j][3];
    }
#pragma unroll
    for (int k = 0; k < FK / 16; k++) {
      const uint a[4] = {two_halves(s[2 * k][0], s[2 * k][1]), two_halves(s[2 * k][2], s[2 * k][3]),
                         two_halves(s[2 * k + 1][0], s[2 * k + 1][1]), two_halves(s[2 * k + 1][2], s[2 * k + 1][3])};
#pragma unroll
      for (int j = 0; j < VD / 8; j++) {
        __local const uint *b = lv + (k * 8 + lc) * VLINE + j * 8 + lr;
        MMA_HALF(acc[j], a, b[0], b[4 * VLINE]);
      }
    }
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
      o[VD + 1] = h ? m1 : m0;
    }
  }
}
