// Attention of a few query rows over a part of the context, and the joining of
// the parts. KD and VD are the sizes of a key and a value, GH the query rows
// that a work-group takes: rows are (token, head of the key head's group).
//
// Dimension 0 is the part of the context, 1 the key head, 2 the block of rows.
// A wave takes LANES keys at a time: a lane a key for the scores, a lane some
// values for the sum.
//
// With HEAD_FUSED (one token) queries are normed and rotated here, and the
// work-group whose part ends the context makes the token's key and value; all
// rows of a key head must then be in one block.
//
// parts: (split, row, VD+2): weighted sum, sum of weights, largest score.

#define AW 4 // waves
#define VPL ((VD + LANES - 1) / LANES)
#define VWHOLE (VD % LANES == 0)

// Eight values of a key from i on.
static void key8(CGLOBAL uchar *cache, ulong row, ulong rows_all, int i, float *o) {
#ifdef KV_Q8
  const float d = vload_half(row * (KD / 32) + i / 32, (CGLOBAL half *)(cache + rows_all * KD));
  const char8 c = vload8(0, (CGLOBAL char *)cache + row * KD + i);
  const float8 f = d * convert_float8(c);
  vstore8(f, 0, o);
#else
  const uint4 v = *(CGLOBAL uint4 *)(cache + (row * KD + i) * 2);
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

// The values of a lane: VPL in a row where that divides, else LANES apart.
static void values(CGLOBAL uchar *cache, ulong row, ulong rows_all, int lane, float *o) {
#ifdef KV_Q8
  CGLOBAL half *scales = (CGLOBAL half *)(cache + rows_all * VD);
  for (int k = 0; k < VPL; k++) {
    const int i = VWHOLE ? lane * VPL + k : lane + k * LANES;
    o[k] = i < VD ? vload_half(row * (VD / 32) + i / 32, scales) * (float)((CGLOBAL char *)cache)[row * VD + i] : 0;
  }
#else
#if VWHOLE && VPL % 4 == 0
  for (int k = 0; k < VPL; k += 4) {
    const uint2 v = *(CGLOBAL uint2 *)(cache + (row * VD + lane * VPL + k) * 2);
    o[k] = half_bits((ushort)v.x);
    o[k + 1] = half_bits((ushort)(v.x >> 16));
    o[k + 2] = half_bits((ushort)v.y);
    o[k + 3] = half_bits((ushort)(v.y >> 16));
  }
#else
  for (int k = 0; k < VPL; k++) {
    const int i = VWHOLE ? lane * VPL + k : lane + k * LANES;
    o[k] = i < VD ? half_bits(((CGLOBAL ushort *)cache)[row * VD + i]) : 0;
  }
#endif
#endif
}

KERNEL(AW) void attend(CGLOBAL float *q, int ldq, int qstep, CGLOBAL float *knew, CGLOBAL float *vnew, CGLOBAL float *qw,
                       CGLOBAL float *kw, CGLOBAL float *cs, int rot, CGLOBAL int *st, int tokens, int heads, int kvheads, int ctx,
                       int window, float scale, float cap, float eps, int flags, GLOBAL uchar *kcache, GLOBAL uchar *vcache,
                       int splits, GLOBAL float *parts) {
  LANE_LOCAL
  __local float lq[GH * KD];
  __local float lp[AW * GH * LANES];
  __local float lm[AW * GH], ll[AW * GH];
  __local float out[GH * VD];
  __local float spare[AW * (KD > VD ? KD : VD)]; // the token's key and value, or nothing, a wave each
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int split = get_group_id(0), g = get_group_id(1), group = heads / kvheads;
  const int row0 = get_group_id(2) * GH, rows = tokens * group;
  const int pos = st[0], all = pos + tokens;
  const ulong rows_all = (ulong)kvheads * ctx;
  const int chunk = ((all + splits - 1) / splits + LANES - 1) / LANES * LANES;
  int from = split * chunk;
  const int to = min(from + chunk, all);
  if (window > 0) from = max(from, pos + row0 / group - window + 1);

  if (flags & HEAD_FUSED) {
    for (int b = 0; b < GH; b += AW) {
      const int r = b + wave;
      __local float *h = r < GH ? lq + r * KD : spare + wave * (KD > VD ? KD : VD);
      const int hd = g * group + r;
      for (int i = lane; i < KD; i += LANES) h[i] = r < group && r < GH ? q[hd * qstep + i] : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      HEAD_READY(h, KD, qw, (flags & HEAD_QNORM) ? 1 : 0, eps, cs, rot, flags & HEAD_NEOX);
    }
    if (split * chunk < all && to == all) { // uniform in the work-group
      __local float *h = spare + wave * (KD > VD ? KD : VD);
      const int n = wave == 1 ? VD : KD;
      for (int i = lane; i < n; i += LANES) h[i] = wave == 1 ? vnew[g * VD + i] : knew[g * KD + i];
      barrier(CLK_LOCAL_MEM_FENCE);
      const int normed = wave == 1 ? ((flags & HEAD_VNORM) ? 2 : 0) : ((flags & HEAD_KNORM) ? 1 : 0);
      HEAD_READY(h, n, kw, normed, eps, cs, wave == 1 ? 0 : rot, flags & HEAD_NEOX);
      if (wave == 0) keep_row(kcache, (ulong)g * ctx + pos, rows_all, h, KD);
      if (wave == 1) keep_row(vcache, (ulong)g * ctx + pos, rows_all, h, VD);
      barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
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
  const int turns = to > from ? (to - from + AW * LANES - 1) / (AW * LANES) : 0;
  for (int turn = 0; turn < turns; turn++) {
    const int base = from + (turn * AW + wave) * LANES;
    const int key = base + lane;
    const ulong krow = (ulong)g * ctx + min(key, to - 1);
    float s[GH];
#pragma unroll
    for (int r = 0; r < GH; r++) s[r] = 0;
#pragma unroll 2
    for (int i = 0; i < KD; i += 8) {
      float kk[8];
      key8(kcache, krow, rows_all, i, kk);
#pragma unroll
      for (int r = 0; r < GH; r++) {
        const float4 a = vload4(0, lq + r * KD + i), b = vload4(0, lq + r * KD + i + 4);
        s[r] += a.x * kk[0] + a.y * kk[1] + a.z * kk[2] + a.w * kk[3] + b.x * kk[4] + b.y * kk[5] + b.z * kk[6] + b.w * kk[7];
      }
    }
    __local float *p = lp + wave * GH * LANES;
#pragma unroll
    for (int r = 0; r < GH; r++) {
      float v = s[r] * scale;
      if (cap != 0) v = cap * tanh(v / cap);
      const int at = pos + (row0 + r) / group; // position of the query
      if (key >= to || key > at || (window > 0 && key + window <= at) || row0 + r >= rows) v = -INFINITY;
      const float top = fmax(m[r], lane_max(v));
      const float keep = top == -INFINITY ? 1.0f : exp(m[r] - top);
      const float e = top == -INFINITY ? 0.0f : exp(v - top);
      m[r] = top;
      l[r] = l[r] * keep + e;
#pragma unroll
      for (int k = 0; k < VPL; k++) acc[r][k] *= keep;
      p[r * LANES + lane] = e;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int n = min(LANES, to - base);
    for (int j = 0; j < n; j++) {
      float v[VPL];
      values(vcache, (ulong)g * ctx + base + j, rows_all, lane, v);
#pragma unroll
      for (int r = 0; r < GH; r++) {
        const float e = p[r * LANES + j];
#pragma unroll
        for (int k = 0; k < VPL; k++) acc[r][k] += e * v[k];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  // the waves of the group, one after the other
#pragma unroll
  for (int r = 0; r < GH; r++) {
    const float sum = lane_sum(l[r]);
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
          const int i = VWHOLE ? lane * VPL + k : lane + k * LANES;
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
