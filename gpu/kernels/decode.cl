// attend (attend.cl) on NVIDIA's matrix units: the few query
// rows of a key head's group are the rows of a product with 16 keys at a time. KD
// and VD are multiples of 64; GH, at most 16, the rows of a work-group. Dimensions
// and parts as attend's.
//
// Nothing but queries passes through local memory. What order the values of a key
// come in does not matter to a product, so each lane takes 16 bytes of a key in a
// row, and queries lie in the order that follows (place_of); the same with the
// columns of values. A wave takes 16 keys, the next ones on their way as soon as
// the last are used. Queries are sums of two halves.
//
// With HEAD_FUSED (one token) all that is cached is of earlier steps, so the first
// keys and values are fetched before the launch waits; queries, the token's key and
// its value are made meanwhile.

#define AW 4    // waves
#define KEYS 16 // of a wave at once
#if VD > 128
#define SHARERS 2 // waves that take the same keys, each a part of a value's columns
#else
#define SHARERS 1
#endif
#define TAKERS (AW / SHARERS) // waves with keys of their own
#define BIG (KD > VD ? KD : VD)
#define QL (KD / 8) // pieces of 16 bytes of a query
#define QPIECE(row, piece) ((row) * QL + ((piece) ^ ((row)&7)))
#define LOG2E 1.44269504f
#define EACH ((GH + AW - 1) / AW)         // queries of a wave
#define QUERIES (AW * EACH * KD + 16 * KD) // floats: queries, and 16 of them as two halves
#define RESULTS (TAKERS * GH * (VD + 8))
#if QUERIES > RESULTS
#define ROOM QUERIES
#else
#define ROOM RESULTS
#endif

// A value as a cache of halves gives it back.
FN float half_and_back(float v) {
  ushort h;
  vstore_half(v, 0, (half *)&h);
  return half_bits(h);
}

// Eight values of a row of a cache on their way, and as halves.
#ifdef KV_Q8
#define KEPT(v) (v)
typedef struct {
  uint2 q;
  ushort d;
} eight;
FN eight load_eight(CGLOBAL uchar *cache, ulong rows_all, int size, ulong row, int place) {
  eight o;
  o.q = ((CGLOBAL uint2 *)cache)[row * (size / 8) + place];
  o.d = ((CGLOBAL ushort *)(cache + rows_all * size))[row * (size / 32) + place / 4];
  return o;
}
FN uint4 halves_of(eight v) {
  const uint d = v.d | (uint)v.d << 16, zero = 0x64806480; // 1024 + 128
  uint h[4];
  spread_bytes(v.q.x ^ 0x80808080, &h[0], &h[1]);
  spread_bytes(v.q.y ^ 0x80808080, &h[2], &h[3]);
#pragma unroll
  for (int i = 0; i < 4; i++) h[i] = mul_halves(sub_halves(h[i], zero), d);
  return (uint4)(h[0], h[1], h[2], h[3]);
}
#else
#define KEPT(v) half_and_back(v)
typedef uint4 eight;
#define load_eight(cache, rows_all, size, row, place) ((CGLOBAL uint4 *)(cache))[(row) * ((size) / 8) + (place)]
#define halves_of(v) (v)
#endif

// Where value d of a query lies: lane l/4's 16 bytes of a key are four pairs, two
// for each of two products of 16 values.
FN int place_of(int d) { return d / 32 * 32 + d / 4 % 2 * 16 + d / 2 % 2 * 8 + d / 8 % 4 * 2 + d % 2; }

#ifdef NVIDIA
#define UNITS_LOCAL
#define QUERIES_AT(a, part, piece) matrix4(a, SHARED(lh) + 16 * ((part) * 16 * QL + QPIECE(lane % 16, (piece) + lane / 16)))
#define UNITS_MULTIPLY(c, a, b0, b1) multiply(c, a, b0, b1)
FN float power_of_2(float v) {
  float r;
  __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
FN uint low_pair(uint a, uint b) {
  uint r;
  __asm__("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
FN uint high_pair(uint a, uint b) {
  uint r;
  __asm__("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
#else
#define power_of_2(v) exp2(v)
FN uint low_pair(uint a, uint b) { return (a & 0xffff) | b << 16; }
FN uint high_pair(uint a, uint b) { return a >> 16 | (b & 0xffff0000); }
// The same through local memory.
#define UNITS_LOCAL __local uint frag[AW * 32 * 6];
#define QUERIES_AT(a, part, piece)                                                                                        \
  for (int m = 0; m < 4; m++)                                                                                             \
    (a)[m] = ((__local uint *)lh)[((part) * 16 * QL + QPIECE(lane / 4 + 8 * (m % 2), (piece) + m / 2)) * 4 + lane % 4]
#define UNITS_MULTIPLY(c, a, b0, b1) units_multiply(frag, c, a, b0, b1)
FN void units_multiply(__local uint *frag, float *c, const uint *a, uint b0, uint b1) {
  const int at = get_local_id(0), lane = at % 32;
  __local uint *f = frag + (at - lane) * 6;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 4; i++) f[lane * 6 + i] = a[i];
  f[lane * 6 + 4] = b0;
  f[lane * 6 + 5] = b1;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 4; i++) {
    const int row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
    float v = 0;
    for (int k = 0; k < 16; k++) {
      const uint x = f[(row % 8 * 4 + k % 8 / 2) * 6 + row / 8 + k / 8 * 2], y = f[(col * 4 + k % 8 / 2) * 6 + 4 + k / 8];
      v += half_bits((ushort)(x >> 16 * (k % 2))) * half_bits((ushort)(y >> 16 * (k % 2)));
    }
    c[i] += v;
  }
}
#endif

FN uint word_of(uint4 v, int i) { return i == 0 ? v.x : (i == 1 ? v.y : (i == 2 ? v.z : v.w)); }

#ifdef NVIDIA
#define LANE_MEM
#define LANE_MEM_ARG
#else
#define LANE_MEM , lane_mem
#define LANE_MEM_ARG , __local float *lane_mem
#endif

// Norms and rotates n rows that a wave holds, v[i * (size / 32) + c] being value
// lane + 32*c of row i, and leaves row i at h + i*step. All waves come here together.
FN void ready(float *v, int n, int size, __local float *h, int step, const float *w, int normed, float eps, CGLOBAL float *cs, int rot,
              int neox LANE_MEM_ARG) {
  const int lane = get_local_id(0) % 32, half_ = rot / 2, each = size / 32;
  float s[8], cosine[(BIG + 63) / 64], sine[(BIG + 63) / 64];
#pragma unroll
  for (int c = 0; c < (size + 63) / 64; c++) {
    const int i = lane + 32 * c;
    cosine[c] = i < half_ ? cs[i] : 0;
    sine[c] = i < half_ ? cs[half_ + i] : 0;
  }
#pragma unroll
  for (int r = 0; r < n; r++) {
    s[r] = 0;
#pragma unroll
    for (int c = 0; c < each; c++) s[r] += v[r * each + c] * v[r * each + c];
  }
#pragma unroll
  for (int m = 16; m > 0; m >>= 1) {
#pragma unroll
    for (int r = 0; r < n; r++) s[r] += lane_xor(s[r], m);
  }
#pragma unroll
  for (int r = 0; r < n; r++) {
    const float f = normed ? 1.0f / sqrt(s[r] / (float)size + eps) : 1.0f;
#pragma unroll
    for (int c = 0; c < each; c++) h[r * step + lane + 32 * c] = v[r * each + c] * (f * w[c]);
  }
  WAVE_SYNC;
#pragma unroll
  for (int r = 0; r < n; r++) {
#pragma unroll
    for (int c = 0; c < (size + 63) / 64; c++) {
      const int i = lane + 32 * c;
      if (i < half_) {
        const int p = neox ? i : 2 * i, q = neox ? i + half_ : 2 * i + 1;
        const float a = h[r * step + p], b = h[r * step + q];
        h[r * step + p] = a * cosine[c] - b * sine[c];
        h[r * step + q] = a * sine[c] + b * cosine[c];
      }
    }
  }
  WAVE_SYNC;
}

__kernel WAVED __attribute__((reqd_work_group_size(32 * AW, 1, 1))) void attend_units(
    CGLOBAL float *q, int ldq, int qstep, CGLOBAL float *knew, CGLOBAL float *vnew, CGLOBAL float *qw, CGLOBAL float *kw, CGLOBAL float *cs,
    int rot, CGLOBAL int *st, int tokens, int heads, int kvheads, int ctx, int window, float scale, float cap, float eps, int flags,
    GLOBAL uchar *kcache, GLOBAL uchar *vcache, int splits, GLOBAL float *parts) {
  LANE_LOCAL
  UNITS_LOCAL
  enum { KN = KD / 32, VN = VD / 64 / SHARERS };
  __local float mem[ROOM] __attribute__((aligned(128)));
  __local float newk[AW * KD], newv[VD], own[GH];
  __local float lm[TAKERS * 16], ll[TAKERS * 16], lf[(TAKERS + 1) * GH];
  __local float *lq = mem;
  __local uint4 *lh = (__local uint4 *)(mem + AW * EACH * KD);
  const int at = get_local_id(0), lane = at % 32, wave = at / 32, lr = lane / 4, lc = lane % 4;
  const int taker = wave % TAKERS, part0 = wave / TAKERS * VN; // the first 64 columns of this wave
  const int split = get_group_id(0), g = get_group_id(1), group = heads / kvheads;
  const int row0 = get_group_id(2) * GH, rows = tokens * group, fused = flags & HEAD_FUSED;
  if (!fused) {
    BEGIN
  }
  const int pos = st[0], keys = fused ? pos : pos + tokens; // in the cache
  const int chunk = max((keys + splits - 1) / splits + TAKERS * KEYS - 1, 1) / (TAKERS * KEYS) * (TAKERS * KEYS);
  int from = split * chunk;
  const int to = min(from + chunk, keys);
  if (window > 0) from = max(from, pos + row0 / group - window + 1);
  const int ends = fused && (split + 1) * chunk >= keys && split * chunk <= keys && (split == 0 || split * chunk < keys);
  const int turns = to > from ? (to - from + TAKERS * KEYS - 1) / (TAKERS * KEYS) : 0;
  const ulong rows_all = (ulong)kvheads * ctx, head0 = (ulong)g * ctx; // rows of the caches

  // Of 16 keys from `base` on: this lane's piece lc of keys lr and lr + 8, and of
  // values 2*lc, 2*lc+1, and these + 8, the columns 64*i + 8*lr. Past the end the last row.
  eight kr[2][KN], vr[4][VN];
#define BASE(turn) (from + ((turn) * TAKERS + taker) * KEYS)
#define LOAD_KEYS(turn)                                                                                              \
  _Pragma("unroll") for (int t = 0; t < 2; t++) {                                                                    \
    const ulong row = head0 + min(BASE(turn) + 8 * t + lr, to - 1);                                                  \
    _Pragma("unroll") for (int j = 0; j < KN; j++) kr[t][j] = load_eight(kcache, rows_all, KD, row, 4 * j + lc);      \
  }
#define LOAD_VALUES(turn)                                                                                            \
  _Pragma("unroll") for (int t = 0; t < 4; t++) {                                                                    \
    const ulong row = head0 + min(BASE(turn) + 2 * lc + t / 2 * 8 + t % 2, to - 1);                                  \
    _Pragma("unroll") for (int i = 0; i < VN; i++) vr[t][i] = load_eight(vcache, rows_all, VD, row, 8 * (part0 + i) + lr); \
  }
  if (turns > 0) {
    LOAD_KEYS(0)
    LOAD_VALUES(0)
  }
  if (fused) {
    BEGIN
  }

  float v[EACH * KN], w[KN];
#pragma unroll
  for (int b = 0; b < EACH; b++) {
    const int r = wave * EACH + b, row = row0 + r;
    CGLOBAL float *s = q + (ulong)(row / group) * ldq + (g * group + row % group) * qstep;
#pragma unroll
    for (int c = 0; c < KN; c++) v[b * KN + c] = r < GH && row < rows ? s[lane + 32 * c] : 0;
  }
  if (fused) {
    float nk[KN], nv[VD / 32], nw[KN];
#pragma unroll
    for (int c = 0; c < KN; c++) {
      w[c] = flags & HEAD_QNORM ? qw[lane + 32 * c] : 1.0f;
      nw[c] = flags & HEAD_KNORM ? kw[lane + 32 * c] : 1.0f;
      nk[c] = ends ? knew[g * KD + lane + 32 * c] : 0;
    }
#pragma unroll
    for (int c = 0; c < VD / 32; c++) nv[c] = ends ? vnew[g * VD + lane + 32 * c] : 0;
    ready(v, EACH, KD, lq + wave * EACH * KD, KD, w, flags & HEAD_QNORM, eps, cs, rot, flags & HEAD_NEOX LANE_MEM);
    if (ends) { // the same for the work-group
      float s = 0;
#pragma unroll
      for (int c = 0; c < VD / 32; c++) s += nv[c] * nv[c];
      s = lane_sum(s);
      const float f = flags & HEAD_VNORM ? 1.0f / sqrt(s / (float)VD + eps) : 1.0f;
      // each wave makes the key for itself
      ready(nk, 1, KD, newk + wave * KD, KD, nw, flags & HEAD_KNORM, eps, cs, rot, flags & HEAD_NEOX LANE_MEM);
#pragma unroll
      for (int c = 0; c < VD / 32; c++) {
        if (wave == 1) newv[lane + 32 * c] = KEPT(nv[c] * f);
      }
      WAVE_SYNC;
      if (row0 == 0 && wave == 0) keep_row(kcache, head0 + pos, rows_all, newk, KD);
      if (row0 == 0 && wave == 1) keep_row(vcache, head0 + pos, rows_all, newv, VD);
      float score[EACH];
#pragma unroll
      for (int b = 0; b < EACH; b++) score[b] = 0;
#pragma unroll
      for (int c = 0; c < KN; c++) {
        const float x = KEPT(newk[wave * KD + lane + 32 * c]);
#pragma unroll
        for (int b = 0; b < EACH; b++) score[b] += x * lq[(wave * EACH + b) * KD + lane + 32 * c];
      }
#pragma unroll
      for (int m = 16; m > 0; m >>= 1) {
#pragma unroll
        for (int b = 0; b < EACH; b++) score[b] += lane_xor(score[b], m);
      }
#pragma unroll
      for (int b = 0; b < EACH; b++) {
        float x = score[b] * scale;
        if (cap != 0) x = cap * (1.0f - 2.0f / (exp(2.0f * x / cap) + 1.0f));
        if (lane == 0 && wave * EACH + b < GH) own[wave * EACH + b] = x * LOG2E;
      }
    }
#pragma unroll
    for (int b = 0; b < EACH; b++)
#pragma unroll
      for (int c = 0; c < KN; c++) v[b * KN + c] = lq[(wave * EACH + b) * KD + lane + 32 * c];
  }
#pragma unroll
  for (int b = 0; b < EACH; b++) {
    const int r = wave * EACH + b;
#pragma unroll
    for (int c = 0; c < KN; c++) {
      const int p = place_of(lane + 32 * c);
      const uint hi = two_halves(v[b * KN + c], 0) & 0xffff, lo = two_halves(v[b * KN + c] - half_bits((ushort)hi), 0) & 0xffff;
      if (r < GH) {
        ((__local ushort *)lh)[QPIECE(r, p / 8) * 8 + p % 8] = (ushort)hi;
        ((__local ushort *)lh)[(16 * QL + QPIECE(r, p / 8)) * 8 + p % 8] = (ushort)lo;
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float acc[8 * VN][4];
#pragma unroll
  for (int j = 0; j < 8 * VN; j++)
#pragma unroll
    for (int k = 0; k < 4; k++) acc[j][k] = 0;
  float m0 = -INFINITY, m1 = -INFINITY, l0 = 0, l1 = 0; // of rows lr and lr + 8; scores in bits
  const int pa = pos + (row0 + lr) / group, pb = pos + (row0 + lr + 8) / group;
  for (int turn = 0; turn < turns; turn++) {
    const int base = BASE(turn);
    float s[2][4];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int k = 0; k < 4; k++) s[t][k] = 0;
#pragma unroll
    for (int j = 0; j < KN; j++) {
      const uint4 k0 = halves_of(kr[0][j]), k1 = halves_of(kr[1][j]);
#pragma unroll
      for (int part = 0; part < 2; part++) {
        uint a[4];
        QUERIES_AT(a, part, 4 * j);
        UNITS_MULTIPLY(s[0], a, k0.x, k0.y);
        UNITS_MULTIPLY(s[1], a, k1.x, k1.y);
        QUERIES_AT(a, part, 4 * j + 2);
        UNITS_MULTIPLY(s[0], a, k0.z, k0.w);
        UNITS_MULTIPLY(s[1], a, k1.z, k1.w);
      }
    }
    if (turn + 1 < turns) {
      LOAD_KEYS(turn + 1)
    }
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int k = 0; k < 4; k++) {
        float x = s[t][k] * scale;
        if (cap != 0) x = cap * (1.0f - 2.0f / (exp(2.0f * x / cap) + 1.0f));
        const int key = base + 8 * t + 2 * lc + k % 2, p = k < 2 ? pa : pb;
        s[t][k] = key >= to || key > p || (window > 0 && key + window <= p) ? -INFINITY : x * LOG2E;
      }
    float t0 = fmax(fmax(s[0][0], s[0][1]), fmax(s[1][0], s[1][1])), t1 = fmax(fmax(s[0][2], s[0][3]), fmax(s[1][2], s[1][3]));
    t0 = fmax(t0, lane_xor(t0, 1));
    t1 = fmax(t1, lane_xor(t1, 1));
    t0 = fmax(m0, fmax(t0, lane_xor(t0, 2)));
    t1 = fmax(m1, fmax(t1, lane_xor(t1, 2)));
    // rows that have seen no key yet
    const float z0 = t0 == -INFINITY ? 0.0f : t0, z1 = t1 == -INFINITY ? 0.0f : t1;
    const float f0 = power_of_2(m0 - z0), f1 = power_of_2(m1 - z1);
    m0 = t0;
    m1 = t1;
    l0 *= f0;
    l1 *= f1;
#pragma unroll
    for (int t = 0; t < 2; t++) {
      s[t][0] = power_of_2(s[t][0] - z0);
      s[t][1] = power_of_2(s[t][1] - z0);
      s[t][2] = power_of_2(s[t][2] - z1);
      s[t][3] = power_of_2(s[t][3] - z1);
      l0 += s[t][0] + s[t][1];
      l1 += s[t][2] + s[t][3];
    }
    const uint a[4] = {two_halves(s[0][0], s[0][1]), two_halves(s[0][2], s[0][3]), two_halves(s[1][0], s[1][1]), two_halves(s[1][2], s[1][3])};
#pragma unroll
    for (int i = 0; i < VN; i++) {
      const uint4 v0 = halves_of(vr[0][i]), v1 = halves_of(vr[1][i]), v2 = halves_of(vr[2][i]), v3 = halves_of(vr[3][i]);
#pragma unroll
      for (int e = 0; e < 8; e++) {
        float *c = acc[8 * i + e];
        c[0] *= f0;
        c[1] *= f0;
        c[2] *= f1;
        c[3] *= f1;
        const uint x = word_of(v0, e / 2), y = word_of(v1, e / 2), z = word_of(v2, e / 2), u = word_of(v3, e / 2);
        UNITS_MULTIPLY(c, a, e % 2 ? high_pair(x, y) : low_pair(x, y), e % 2 ? high_pair(z, u) : low_pair(z, u));
      }
    }
    if (turn + 1 < turns) {
      LOAD_VALUES(turn + 1)
    }
  }

  l0 += lane_xor(l0, 1);
  l1 += lane_xor(l1, 1);
  l0 += lane_xor(l0, 2);
  l1 += lane_xor(l1, 2);
  if (lc == 0 && part0 == 0) {
    lm[taker * 16 + lr] = m0;
    ll[taker * 16 + lr] = l0;
    lm[taker * 16 + lr + 8] = m1;
    ll[taker * 16 + lr + 8] = l1;
  }
  barrier(CLK_LOCAL_MEM_FENCE); // queries are not needed any more
#pragma unroll
  for (int h = 0; h < (GH > 8 ? 2 : 1); h++) {
    const int r = lr + 8 * h;
    if (r < GH) {
#pragma unroll
      for (int i = 0; i < VN; i++)
#pragma unroll
        for (int e = 0; e < 8; e++) {
          // columns 64*i + 16*lc + e and 8 more
          vstore2((float2)(acc[8 * i + e][2 * h], acc[8 * i + e][2 * h + 1]), 0, mem + (taker * GH + r) * (VD + 8) + 64 * (part0 + i) + 8 * e + 2 * lc);
        }
    }
  }
  // what each wave counts, and the token itself
  if (at < GH) {
    float t = ends ? own[at] : -INFINITY, sum = 0;
    for (int i = 0; i < TAKERS; i++) t = fmax(t, lm[i * 16 + at]);
    for (int i = 0; i <= TAKERS; i++) {
      const float m = i < TAKERS ? lm[i * 16 + at] : (ends ? own[at] : -INFINITY);
      const float f = m == -INFINITY ? 0.0f : power_of_2(m - t);
      sum += f * (i < TAKERS ? ll[i * 16 + at] : 1.0f);
      lf[i * GH + at] = f;
    }
    const int row = row0 + at;
    if (row < rows) {
      GLOBAL float *p = parts + (((ulong)split * tokens + row / group) * heads + g * group + row % group) * (VD + 2) + VD;
      p[0] = sum;
      p[1] = t * (1.0f / LOG2E);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int b = 0; b < (GH * VD + 32 * AW - 1) / (32 * AW); b++) {
    const int i = b * 32 * AW + at, r = i / VD, d = i % VD, row = row0 + r;
    if (r >= GH || row >= rows) continue;
    const int place = d / 64 * 64 + d % 8 * 8 + d / 16 % 4 * 2 + d / 8 % 2;
    float x = ends ? lf[TAKERS * GH + r] * newv[d] : 0;
#pragma unroll
    for (int k = 0; k < TAKERS; k++) x += lf[k * GH + r] * mem[(k * GH + r) * (VD + 8) + place];
    parts[(((ulong)split * tokens + row / group) * heads + g * group + row % group) * (VD + 2) + d] = x;
  }
}
