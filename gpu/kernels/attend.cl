// Attention of a few query rows over a part of the context, and the joining of
// the parts. KD and VD are the sizes of a key and a value, GH the query rows
// that a work-group takes: rows are (token, head of the key head's group).
//
// Dimension 0 is the part of the context, 1 the key head, 2 the block of rows.
// A wave takes KPW keys at a time: four lanes a key for the scores, each with
// every fourth eight of its values; then every lane some values of all KPW for
// the sum. Keys and values of the next turn are on their way meanwhile.
//
// With HEAD_FUSED (one token) queries are normed and rotated here, and the
// work-groups whose part ends the context make the token's key and value, use
// them, and put them into the caches, for the next token.
//
// parts: (split, row, VD+2): weighted sum, sum of weights, largest score.

#define AW 4 // waves
#define BIG (KD > VD ? KD : VD)
#define KPW (LANES / 4)
#define EIGHTS ((KD / 8 + 3) / 4) // of a key, for a lane
#define VPL ((VD + LANES - 1) / LANES)
#define VWHOLE (VD % LANES == 0)
// Values of a lane lie in a row where that divides, else LANES apart.
#define VPLACE(k) (VWHOLE ? lane * VPL + (k) : lane + (k) * LANES)
#if VWHOLE && VPL % 2 == 0
#define VPAIRS
#endif
// Scales of an 8-bit cache that the values of a lane have.
#if VWHOLE && 32 % VPL == 0
#define VSCALES 1
#else
#define VSCALES VPL
#endif

// A value as a cache of halves gives it back.
FN float half_and_back(float v) {
  ushort h;
  vstore_half(v, 0, (half *)&h);
  return half_bits(h);
}
#ifdef KV_Q8
#define KEPT(v) (v)
#else
#define KEPT(v) half_and_back(v)
#endif

// What a lane loads for KPW keys, as it lies in the caches.
typedef struct {
#ifdef KV_Q8
  uint2 k[EIGHTS];
  ushort kd[EIGHTS];
#ifdef VPAIRS
  ushort v[KPW][VPL / 2];
#else
  char v[KPW][VPL];
#endif
  ushort vd[KPW][VSCALES];
#else
  uint4 k[EIGHTS];
#ifdef VPAIRS
  uint v[KPW][VPL / 2];
#else
  ushort v[KPW][VPL];
#endif
#endif
} cached;

// krow: row of this lane's key; vrow: first row of the KPW, of which the last is
// `last` (rows past it are not written yet: it stands in for them).
FN void load_cached(cached *o, CGLOBAL uchar *kc, CGLOBAL uchar *vc, ulong rows_all, ulong krow, ulong vrow, ulong last, int lane) {
#pragma unroll
  for (int i = 0; i < EIGHTS; i++) {
    const int e = i * 4 + lane % 4;
    if (KD % 32 == 0 || e < KD / 8) {
#ifdef KV_Q8
      o->k[i] = ((CGLOBAL uint2 *)(kc + krow * KD))[e];
      o->kd[i] = ((CGLOBAL ushort *)(kc + rows_all * KD))[krow * (KD / 32) + e / 4];
#else
      o->k[i] = ((CGLOBAL uint4 *)(kc + krow * KD * 2))[e];
#endif
    }
  }
#pragma unroll
  for (int j = 0; j < KPW; j++) {
    const ulong row = min(vrow + j, last);
#ifdef KV_Q8
#ifdef VPAIRS
#pragma unroll
    for (int k = 0; k < VPL / 2; k++) o->v[j][k] = ((CGLOBAL ushort *)(vc + row * VD))[lane * (VPL / 2) + k];
#else
#pragma unroll
    for (int k = 0; k < VPL; k++) o->v[j][k] = VPLACE(k) < VD ? ((CGLOBAL char *)vc)[row * VD + VPLACE(k)] : 0;
#endif
#pragma unroll
    for (int k = 0; k < VSCALES; k++)
      o->vd[j][k] = VPLACE(k) < VD ? ((CGLOBAL ushort *)(vc + rows_all * VD))[row * (VD / 32) + VPLACE(k) / 32] : 0;
#else
#if defined(VPAIRS) && VPL % 8 == 0
#pragma unroll
    for (int k = 0; k < VPL / 8; k++) {
      const uint4 v = ((CGLOBAL uint4 *)(vc + row * VD * 2))[lane * (VPL / 8) + k];
      o->v[j][4 * k] = v.x;
      o->v[j][4 * k + 1] = v.y;
      o->v[j][4 * k + 2] = v.z;
      o->v[j][4 * k + 3] = v.w;
    }
#elif defined(VPAIRS) && VPL % 4 == 0
    const uint2 v = ((CGLOBAL uint2 *)(vc + row * VD * 2))[lane];
    o->v[j][0] = v.x;
    o->v[j][1] = v.y;
#elif defined(VPAIRS)
#pragma unroll
    for (int k = 0; k < VPL / 2; k++) o->v[j][k] = ((CGLOBAL uint *)(vc + row * VD * 2))[lane * (VPL / 2) + k];
#else
#pragma unroll
    for (int k = 0; k < VPL; k++) o->v[j][k] = VPLACE(k) < VD ? ((CGLOBAL ushort *)vc)[row * VD + VPLACE(k)] : 0;
#endif
#endif
  }
}

// Eight values of the lane's key.
FN void key8(const cached *c, int i, float *o) {
#ifdef KV_Q8
  const float d = half_bits(c->kd[i]);
  const char4 a = as_char4(c->k[i].x), b = as_char4(c->k[i].y);
  o[0] = d * a.x;
  o[1] = d * a.y;
  o[2] = d * a.z;
  o[3] = d * a.w;
  o[4] = d * b.x;
  o[5] = d * b.y;
  o[6] = d * b.z;
  o[7] = d * b.w;
#else
  const uint4 v = c->k[i];
  o[0] = half_bits((ushort)v.x);
  o[1] = half_bits((ushort)(v.x >> 16));
  o[2] = half_bits((ushort)v.y);
  o[3] = half_bits((ushort)(v.y >> 16));
  o[4] = half_bits((ushort)v.z);
  o[5] = half_bits((ushort)(v.z >> 16));
  o[6] = half_bits((ushort)v.w);
  o[7] = half_bits((ushort)(v.w >> 16));
#endif
}

// Value k of the lane, of key j.
FN float value(const cached *c, int j, int k) {
#ifdef KV_Q8
#ifdef VPAIRS
  const float q = (float)(char)(c->v[j][k / 2] >> 8 * (k % 2));
#else
  const float q = (float)c->v[j][k];
#endif
  return half_bits(c->vd[j][VSCALES == 1 ? 0 : k]) * q;
#elif defined(VPAIRS)
  return half_bits((ushort)(c->v[j][k / 2] >> 16 * (k % 2)));
#else
  return half_bits(c->v[j][k]);
#endif
}

KERNEL(AW) void attend(CGLOBAL float *q, int ldq, int qstep, CGLOBAL float *knew, CGLOBAL float *vnew, CGLOBAL float *qw,
                       CGLOBAL float *kw, CGLOBAL float *cs, int rot, CGLOBAL int *st, int tokens, int heads, int kvheads, int ctx,
                       int window, float scale, float cap, float eps, int flags, GLOBAL uchar *kcache, GLOBAL uchar *vcache,
                       int splits, GLOBAL float *parts) {
  BEGIN
  LANE_LOCAL
  __local float lq[GH * KD];
  __local float lp[AW * GH * KPW];
  __local float lm[AW * GH], ll[AW * GH];
  __local float out[GH * VD];
  __local float spare[(2 + AW) * BIG];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int split = get_group_id(0), g = get_group_id(1), group = heads / kvheads;
  const int row0 = get_group_id(2) * GH, rows = tokens * group;
  const int fused = flags & HEAD_FUSED;
  const int pos = st[0], cached_keys = fused ? pos : pos + tokens;
  const ulong rows_all = (ulong)kvheads * ctx;
  const int chunk = max((cached_keys + splits - 1) / splits + LANES - 1, 1) / LANES * LANES;
  int from = split * chunk;
  const int to = min(from + chunk, cached_keys);
  if (window > 0) from = max(from, pos + row0 / group - window + 1);

  __local float *newk = spare, *newv = spare + BIG; // of the token, with HEAD_FUSED
  const int ends = fused && (split + 1) * chunk >= cached_keys && split * chunk <= cached_keys && (split == 0 || split * chunk < cached_keys);
  if (fused) {
    for (int b = 0; b < GH; b += AW) {
      const int r = b + wave, row = row0 + r;
      __local float *h = r < GH ? lq + r * KD : spare + (2 + wave) * BIG; // a spare place keeps waves together
      for (int i = lane; i < KD; i += LANES) h[i] = r < GH && row < rows ? q[(g * group + row) * qstep + i] : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      HEAD_READY(h, KD, qw, (flags & HEAD_QNORM) ? 1 : 0, eps, cs, rot, flags & HEAD_NEOX);
    }
    if (ends) { // uniform in the work-group
      __local float *h = spare + wave * BIG;
      const int n = wave == 1 ? VD : KD;
      for (int i = lane; i < n; i += LANES) h[i] = wave == 1 ? vnew[g * VD + i] : knew[g * KD + i];
      barrier(CLK_LOCAL_MEM_FENCE);
      const int normed = wave == 1 ? ((flags & HEAD_VNORM) ? 2 : 0) : ((flags & HEAD_KNORM) ? 1 : 0);
      HEAD_READY(h, n, kw, normed, eps, cs, wave == 1 ? 0 : rot, flags & HEAD_NEOX);
      if (wave == 0 && row0 == 0) keep_row(kcache, (ulong)g * ctx + pos, rows_all, h, KD);
      if (wave == 1 && row0 == 0) keep_row(vcache, (ulong)g * ctx + pos, rows_all, h, VD);
    }
  } else {
    for (int i = get_local_id(0); i < GH * KD; i += AW * LANES) {
      const int r = row0 + i / KD, d = i % KD;
      float v = 0;
      if (r < rows) v = q[(ulong)(r / group) * ldq + (g * group + r % group) * qstep + d];
      lq[i] = v;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float m[GH], l[GH], acc[GH][VPL];
#pragma unroll
  for (int r = 0; r < GH; r++) {
    m[r] = -INFINITY;
    l[r] = 0;
#pragma unroll
    for (int k = 0; k < VPL; k++) acc[r][k] = 0;
  }
  const int turns = to > from ? (to - from + AW * KPW - 1) / (AW * KPW) : 0;
  const ulong row_of_head = (ulong)g * ctx;
  cached now;
#define LOAD(turn)                                                                                                              \
  {                                                                                                                             \
    const int base = from + ((turn) * AW + wave) * KPW;                                                                         \
    load_cached(&now, kcache, vcache, rows_all, row_of_head + min(base + lane / 4, to - 1), row_of_head + min(base, to - 1),     \
                row_of_head + to - 1, lane);                                                                                    \
  }
  if (turns > 0) LOAD(0)
  for (int turn = 0; turn < turns; turn++) {
    const int key = from + (turn * AW + wave) * KPW + lane / 4;
    float s[GH];
#pragma unroll
    for (int r = 0; r < GH; r++) s[r] = 0;
#pragma unroll
    for (int i = 0; i < EIGHTS; i++) {
      const int e = i * 4 + lane % 4;
#ifdef NVIDIA
      WAVE_SYNC; // or all queries are loaded ahead, into registers that there are not
#endif
      if (KD % 32 == 0 || e < KD / 8) {
        float kk[8];
        key8(&now, i, kk);
#pragma unroll
        for (int r = 0; r < GH; r++) {
          const float4 a = vload4(0, lq + r * KD + e * 8), b = vload4(0, lq + r * KD + e * 8 + 4);
          s[r] += a.x * kk[0] + a.y * kk[1] + a.z * kk[2] + a.w * kk[3] + b.x * kk[4] + b.y * kk[5] + b.z * kk[6] + b.w * kk[7];
        }
      }
    }
    __local float *p = lp + wave * GH * KPW;
#pragma unroll
    for (int r = 0; r < GH; r++) {
      float v = s[r];
      v += lane_xor(v, 1);
      v += lane_xor(v, 2);
      v *= scale;
      if (cap != 0) v = cap * tanh(v / cap);
      const int at = pos + (row0 + r) / group; // position of the query
      if (key >= to || key > at || (window > 0 && key + window <= at) || row0 + r >= rows) v = -INFINITY;
      float top = fmax(m[r], v);
      for (int o = 4; o < LANES; o <<= 1) top = fmax(top, lane_xor(top, o));
      const float keep = top == -INFINITY ? 1.0f : exp(m[r] - top);
      const float e = top == -INFINITY ? 0.0f : exp(v - top);
      m[r] = top;
      l[r] = l[r] * keep + e; // of four lanes each the same
#pragma unroll
      for (int k = 0; k < VPL; k++) acc[r][k] *= keep;
      if (lane % 4 == 0) p[r * KPW + lane / 4] = e;
    }
    WAVE_SYNC;
#pragma unroll
    for (int j = 0; j < KPW; j++) {
      float v[VPL];
#pragma unroll
      for (int k = 0; k < VPL; k++) v[k] = value(&now, j, k);
#pragma unroll
      for (int r = 0; r < GH; r++) {
        const float e = p[r * KPW + j];
#pragma unroll
        for (int k = 0; k < VPL; k++) acc[r][k] += e * v[k];
      }
    }
    if (turn + 1 < turns) LOAD(turn + 1)
    WAVE_SYNC;
  }

  if (ends) {
    // The token itself, from local memory, by the first wave; the others go along
    // for the sums.
#pragma unroll
    for (int r = 0; r < GH; r++) {
      float v = 0;
      for (int i = lane; i < KD; i += LANES) v += lq[r * KD + i] * KEPT(newk[i]);
      v = lane_sum(v) * scale;
      if (cap != 0) v = cap * tanh(v / cap);
      if (wave == 0) {
        const float top = fmax(m[r], v), keep = exp(m[r] - top), e = exp(v - top);
        m[r] = top;
        l[r] = l[r] * keep + e * (1.0f / KPW); // lane_sum adds it up from all lanes
#pragma unroll
        for (int k = 0; k < VPL; k++) acc[r][k] = acc[r][k] * keep + e * (VPLACE(k) < VD ? KEPT(newv[VPLACE(k)]) : 0);
      }
    }
  }

  // the waves of the group, one after the other
#pragma unroll
  for (int r = 0; r < GH; r++) {
    const float sum = lane_sum(l[r]) * 0.25f;
    if (lane == 0) {
      lm[wave * GH + r] = m[r];
      ll[wave * GH + r] = sum;
    }
  }
  for (int i = get_local_id(0); i < GH * VD; i += AW * LANES) out[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  float top[GH];
#pragma unroll
  for (int r = 0; r < GH; r++) {
    top[r] = lm[r];
    for (int w = 1; w < AW; w++) top[r] = fmax(top[r], lm[w * GH + r]);
  }
  for (int w = 0; w < AW; w++) {
    if (w == wave) {
#pragma unroll
      for (int r = 0; r < GH; r++) {
        const float f = m[r] == -INFINITY ? 0.0f : exp(m[r] - top[r]);
#pragma unroll
        for (int k = 0; k < VPL; k++) {
          const int i = VPLACE(k);
          if (i < VD) out[r * VD + i] += f * acc[r][k];
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = get_local_id(0); i < GH * VD; i += AW * LANES) {
    const int r = i / VD, d = i % VD;
    if (row0 + r >= rows) continue;
    const ulong token = (row0 + r) / group, head = g * group + (row0 + r) % group;
    GLOBAL float *to_ = parts + (((ulong)split * tokens + token) * heads + head) * (VD + 2);
    to_[d] = out[i];
    if (d == 0) {
      float t = lm[r], sum = 0;
      for (int w = 1; w < AW; w++) t = fmax(t, lm[w * GH + r]);
      for (int w = 0; w < AW; w++) sum += lm[w * GH + r] == -INFINITY ? 0.0f : ll[w * GH + r] * exp(lm[w * GH + r] - t);
      to_[VD] = sum;
      to_[VD + 1] = t;
    }
  }
}
