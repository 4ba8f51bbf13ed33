// The gated delta net (arXiv 2412.06464) and causal convolutions.
//
// A window of drafts is run tentatively: states are read, not changed, and what
// each token would do is logged; st[1] tells how many tokens of the last window
// were right, and they are applied first. st[0] is not used here.

#define DELTA_KEEP 1  // keep the new state; else log (tentative)
#define DELTA_MOD 2   // value head h uses key head h mod keys, else h / (heads/keys)
#define DELTA_FUSED 4 // raw: per key head r betas, then r alphas; else all alphas, then all betas
#define CONV_SILU 8

#define TAPS_MAX 8

// Depthwise causal convolution of u (tokens, channels) with taps (k, channels),
// tap 0 the oldest. hist: (k-1, channels), the inputs before. old and log:
// inputs of the last and of this tentative window. A work-item a channel.
__kernel void convolve(CGLOBAL float *u, int ldu, int tokens, int channels, int taps, CGLOBAL float *w, GLOBAL float *hist,
                       CGLOBAL float *old, GLOBAL float *log, CGLOBAL int *st, int flags, GLOBAL float *y) {
  BEGIN
  const int c = get_global_id(0);
  if (c >= channels) return;
  float h[TAPS_MAX], k[TAPS_MAX];
  const int n = taps - 1, kept = st[1];
#pragma unroll
  for (int i = 0; i < TAPS_MAX; i++) {
    h[i] = 0;
    k[i] = 0;
    // right-aligned, so that loops have a fixed length
    const int j = i - (TAPS_MAX - taps);
    if (j >= 0) k[i] = w[j * channels + c];
    const int a = i - (TAPS_MAX - 1 - n); // place in the history, for h[0..TAPS_MAX-2]
    if (i < TAPS_MAX - 1 && a >= 0) {
      const int b = a + kept;
      h[i] = b < n ? hist[b * channels + c] : old[(b - n) * channels + c];
    }
  }
  if (!(flags & DELTA_KEEP) && kept > 0)
    for (int i = 0; i < TAPS_MAX - 1; i++) {
      const int a = i - (TAPS_MAX - 1 - n);
      if (a >= 0) hist[a * channels + c] = h[i];
    }
  for (int t = 0; t < tokens; t++) {
    const float x = u[(ulong)t * ldu + c];
    h[TAPS_MAX - 1] = x;
    if (!(flags & DELTA_KEEP)) log[(ulong)t * channels + c] = x;
    float v = 0;
#pragma unroll
    for (int i = 0; i < TAPS_MAX; i++) v += k[i] * h[i];
    if (flags & CONV_SILU) v = v / (1.0f + exp(-v));
    y[(ulong)t * channels + c] = v;
#pragma unroll
    for (int i = 0; i < TAPS_MAX - 1; i++) h[i] = h[i + 1];
  }
  if (flags & DELTA_KEEP)
    for (int i = 0; i < TAPS_MAX - 1; i++) {
      const int a = i - (TAPS_MAX - 1 - n);
      if (a >= 0) hist[a * channels + c] = h[i];
    }
}

// One step of the net for every token. uc: (tokens, channels) = q | k | v heads
// after the convolution; raw: (tokens, 2*heads); ssm_a, dt: per value head.
// s: (head, value row, key column). DN is the size of a head. A wave takes
// DROWS rows of a head's state through all tokens.
//
// log_k: (window, keys, DN) normed keys; log_d: (window, heads, DN); log_g:
// (window, heads) decays; old_*: those of the last window.
#define DW 4
#define DROWS 2
#define DPL ((DN + LANES - 1) / LANES)

#ifdef DN
KERNEL(DW) void delta(CGLOBAL float *uc, int channels, CGLOBAL float *raw, int ldraw, CGLOBAL float *ssm_a, CGLOBAL float *dt,
                      int tokens, int heads, int keys, float eps, GLOBAL float *s, CGLOBAL float *old_k, CGLOBAL float *old_d,
                      CGLOBAL float *old_g, GLOBAL float *log_k, GLOBAL float *log_d, GLOBAL float *log_g, CGLOBAL int *st, int flags,
                      GLOBAL float *y) {
  BEGIN
  LANE_LOCAL
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int h = get_group_id(1), r0 = (get_group_id(0) * DW + wave) * DROWS;
  const int kh = (flags & DELTA_MOD) ? h % keys : h / (heads / keys);
  const int kept = st[1];
  float m[DROWS][DPL];
#pragma unroll
  for (int r = 0; r < DROWS; r++)
#pragma unroll
    for (int i = 0; i < DPL; i++) {
      const int c = lane + i * LANES;
      m[r][i] = c < DN && r0 + r < DN ? s[((ulong)h * DN + r0 + r) * DN + c] : 0;
    }
  for (int t = 0; t < kept; t++) {
    const float g = old_g[t * heads + h];
#pragma unroll
    for (int r = 0; r < DROWS; r++) {
      const float d = old_d[((ulong)t * heads + h) * DN + min(r0 + r, DN - 1)];
#pragma unroll
      for (int i = 0; i < DPL; i++) {
        const int c = lane + i * LANES;
        m[r][i] = m[r][i] * g + d * (c < DN ? old_k[((ulong)t * keys + kh) * DN + c] : 0);
      }
    }
  }
  if (!(flags & DELTA_KEEP) && kept > 0) {
#pragma unroll
    for (int r = 0; r < DROWS; r++)
#pragma unroll
      for (int i = 0; i < DPL; i++) {
        const int c = lane + i * LANES;
        if (c < DN && r0 + r < DN) s[((ulong)h * DN + r0 + r) * DN + c] = m[r][i];
      }
  }
  for (int t = 0; t < tokens; t++) {
    CGLOBAL float *u = uc + (ulong)t * channels;
    float q[DPL], k[DPL];
    float qq = 0, kk = 0, qk = 0;
#pragma unroll
    for (int i = 0; i < DPL; i++) {
      const int c = lane + i * LANES;
      q[i] = c < DN ? u[kh * DN + c] : 0;
      k[i] = c < DN ? u[(keys + kh) * DN + c] : 0;
      qq += q[i] * q[i];
      kk += k[i] * k[i];
      qk += q[i] * k[i];
    }
    qq = lane_sum(qq);
    kk = lane_sum(kk);
    qk = lane_sum(qk);
    const float qf = 1.0f / sqrt(qq + eps) / sqrt((float)DN), kf = 1.0f / sqrt(kk + eps);
    CGLOBAL float *ra = raw + (ulong)t * ldraw;
    float a, b;
    if (flags & DELTA_FUSED) {
      const int n = heads / keys, at = h / n * 2 * n + h % n;
      b = ra[at];
      a = ra[at + n];
    } else {
      a = ra[h];
      b = ra[heads + h];
    }
    const float x = a + dt[h];
    const float g = exp(ssm_a[h] * (x > 20.0f ? x : log1p(exp(x))));
    const float beta = 1.0f / (1.0f + exp(-b));
#pragma unroll
    for (int r = 0; r < DROWS; r++) {
      float sk = 0, sq = 0;
#pragma unroll
      for (int i = 0; i < DPL; i++) {
        sk += m[r][i] * k[i];
        sq += m[r][i] * q[i];
      }
      sk = lane_sum(sk) * g * kf;
      sq = lane_sum(sq) * g * qf;
      const int row = min(r0 + r, DN - 1);
      const float d = beta * (u[2 * keys * DN + h * DN + row] - sk);
#pragma unroll
      for (int i = 0; i < DPL; i++) m[r][i] = m[r][i] * g + d * kf * k[i];
      if (lane == 0 && r0 + r < DN) {
        y[((ulong)t * heads + h) * DN + row] = sq + d * qk * kf * qf;
        if (!(flags & DELTA_KEEP)) log_d[((ulong)t * heads + h) * DN + row] = d;
      }
    }
    if (!(flags & DELTA_KEEP) && r0 == 0) {
      if (lane == 0) log_g[t * heads + h] = g;
      // the first value head of a key head writes the key
      if (h == ((flags & DELTA_MOD) ? kh : kh * (heads / keys)))
        for (int i = 0; i < DPL; i++) {
          const int c = lane + i * LANES;
          if (c < DN) log_k[((ulong)t * keys + kh) * DN + c] = k[i] * kf;
        }
    }
  }
  if (flags & DELTA_KEEP) {
#pragma unroll
    for (int r = 0; r < DROWS; r++)
#pragma unroll
      for (int i = 0; i < DPL; i++) {
        const int c = lane + i * LANES;
        if (c < DN && r0 + r < DN) s[((ulong)h * DN + r0 + r) * DN + c] = m[r][i];
      }
  }
}

// y = rms(o) * w * silu(z), or * sigmoid(z), per head of DN values; rounded to 8
// bits as well when DN allows. Dimension 1 is the token; a wave takes a head.
#define GN_SIGMOID 1
#define GN_FLOATS 4
#define GN_ROUND 8
KERNEL(DW) void gate_norm(CGLOBAL float *o, CGLOBAL float *z, int ldz, CGLOBAL float *w, int heads, float eps, int flags,
                          GLOBAL float *y, GLOBAL uint4 *xq, GLOBAL uint2 *xm) {
  BEGIN
  LANE_LOCAL
  __local float mem[DW * DN];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int h = get_group_id(0) * DW + wave;
  const ulong t = get_group_id(1);
  const int hh = min(h, heads - 1);
  __local float *v = mem + wave * DN;
  float ss = 0;
  for (int i = lane; i < DN; i += LANES) {
    const float a = o[(t * heads + hh) * DN + i];
    ss += a * a;
  }
  ss = lane_sum(ss);
  const float f = 1.0f / sqrt(ss / (float)DN + eps);
  for (int i = lane; i < DN; i += LANES) {
    const float g = z[t * ldz + hh * DN + i];
    float a = o[(t * heads + hh) * DN + i] * f * w[i] / (1.0f + exp(-g));
    if (!(flags & GN_SIGMOID)) a *= g;
    v[i] = a;
    if ((flags & GN_FLOATS) && h < heads) y[(t * heads + h) * DN + i] = a;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int upr = heads * DN / 32;
  if ((flags & GN_ROUND) && h < heads)
    for (int u = lane; u < DN / 32; u += LANES) {
      float4 b[8];
#pragma unroll
      for (int j = 0; j < 8; j++) b[j] = vload4(j, v + 32 * u);
      quantize_unit(b, xq + 2 * t * upr, xm + t * upr, upr, h * (DN / 32) + u);
    }
}
#endif
