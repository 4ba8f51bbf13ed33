// The gated delta net over many tokens, CHUNK at a time (arXiv 2412.06464,
// section 3.3). With M the state before a chunk, k and q normed, b = beta and
// G_i the product of the decays up to token i, what token i adds to the state
// times k_i is
//
//   d_i = b_i (v_i - G_i M k_i - sum_{j<i} G_i/G_j (k_j.k_i) d_j)
//
// so with A_ij = b_i G_i/G_j (k_i.k_j) below the diagonal, D = U - W M' where
// (I+A) U = b V and (I+A) W = b G K. U and W need no state: chunk_solve makes
// them for all chunks at once. chunk_pass goes through the chunks:
//
//   y_i = G_i M q_i + sum_{j<=i} G_i/G_j (k_j.q_i) d_j
//   M  <- G_last M + sum_j G_last/G_j d_j k_j'
//
// Decays are kept as logarithms: quotients of them are at most 1, and none
// divides by a product that has become 0.
//
// rec: for each (chunk, value head) U and W, (CHUNK, DN) each; the factors of d_j
// in y_i, (CHUNK, CHUNK); those of q_i, of k_j and of M, CHUNK numbers each.

#define CHUNK 32
#define REC (2 * CHUNK * DN + CHUNK * CHUNK + 3 * CHUNK)
#define LD (DN + 4) // lanes with different rows are in different banks
// NVIDIA's compiler would load the whole triangle of A first, into registers that
// it does not have.
#ifdef NVIDIA
#define IN_ORDER __asm__ volatile("" ::: "memory")
#else
#define IN_ORDER
#endif
#define LOCAL4(p) (*(__local float4 *)(p))
#define GLOBAL4(p) (*(CGLOBAL float4 *)(p))

// Convolve (delta.cl) for many tokens: dimension 1 takes CONV_TOKENS each. The
// history is read only; convolve_keep changes it afterwards.
#define CONV_TOKENS 16
KERNEL_N(64) void convolve_many(CGLOBAL float *u, int ldu, int tokens, int channels, int taps, CGLOBAL float *w, CGLOBAL float *hist,
                                CGLOBAL float *old, CGLOBAL int *st, int flags, GLOBAL float *y) {
  BEGIN
  const int c = get_global_id(0), t0 = get_group_id(1) * CONV_TOKENS;
  if (c >= channels) return;
  const int n = taps - 1, kept = st[1];
  float k[TAPS_MAX], x[TAPS_MAX - 1 + CONV_TOKENS];
#pragma unroll
  for (int i = 0; i < TAPS_MAX; i++) { // right-aligned, so that loops have a fixed length
    const int j = i - (TAPS_MAX - taps);
    k[i] = j >= 0 ? w[j * channels + c] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < TAPS_MAX - 1 + CONV_TOKENS; i++) {
    const int t = t0 + i - (TAPS_MAX - 1), b = n + t + kept;
    x[i] = 0;
    if (t >= 0)
      x[i] = u[(ulong)min(t, tokens - 1) * ldu + c];
    else if (n + t >= 0)
      x[i] = b < n ? hist[b * channels + c] : old[(b - n) * channels + c];
  }
#pragma unroll
  for (int i = 0; i < CONV_TOKENS; i++) {
    float v = 0;
#pragma unroll
    for (int j = 0; j < TAPS_MAX; j++) v += k[j] * x[i + j];
    if (flags & CONV_SILU) v = v / (1.0f + exp(-v));
    if (t0 + i < tokens) y[(ulong)(t0 + i) * channels + c] = v;
  }
}

// The last taps-1 of at least so many tokens become the history.
KERNEL_N(64) void convolve_keep(CGLOBAL float *u, int ldu, int tokens, int channels, int taps, GLOBAL float *hist) {
  BEGIN
  const int c = get_global_id(0), n = taps - 1;
  if (c >= channels) return;
  for (int a = 0; a < n; a++) hist[a * channels + c] = u[(ulong)(tokens - n + a) * ldu + c];
}

// Arguments as delta (delta.cl). Dimension 0 is the chunk, 1 the value head; the
// first token is `base`.
KERNEL(256 / LANES) void chunk_solve(CGLOBAL float *uc, int channels, CGLOBAL float *raw, int ldraw, CGLOBAL float *ssm_a, CGLOBAL float *dt,
                               int base, int tokens, int heads, int keys, float eps, int flags, GLOBAL float *rec) {
  BEGIN
  __local float lq[CHUNK * LD] __attribute__((aligned(16))), lk[CHUNK * LD] __attribute__((aligned(16)));
  __local float la[CHUNK * CHUNK] __attribute__((aligned(16))), part[2 * 256];
  __local float lg[CHUNK], beta[CHUNK], qf[CHUNK], kf[CHUNK];
  const int at = get_local_id(0), h = get_group_id(1), chunk = get_group_id(0);
  const int kh = (flags & DELTA_MOD) ? h % keys : h / (heads / keys);
  const int t0 = base + chunk * CHUNK, n = min(CHUNK, base + tokens - t0);
  GLOBAL float *r = rec + ((ulong)chunk * heads + h) * REC;

  for (int i = at; i < CHUNK * DN / 4; i += 256) {
    const int row = i / (DN / 4), c = i % (DN / 4);
    CGLOBAL float *u = uc + (ulong)(t0 + min(row, n - 1)) * channels + kh * DN;
    const float on = row < n ? 1.0f : 0.0f;
    LOCAL4(lq + row * LD + 4 * c) = GLOBAL4(u + 4 * c) * on;
    LOCAL4(lk + row * LD + 4 * c) = GLOBAL4(u + keys * DN + 4 * c) * on;
  }
  if (at < CHUNK) {
    float g = 0, b = 0;
    if (at < n) {
      CGLOBAL float *ra = raw + (ulong)(t0 + at) * ldraw;
      float a;
      if (flags & DELTA_FUSED) {
        const int m = heads / keys, i = h / m * 2 * m + h % m;
        b = ra[i];
        a = ra[i + m];
      } else {
        a = ra[h];
        b = ra[heads + h];
      }
      const float x = a + dt[h];
      g = ssm_a[h] * (x > 20.0f ? x : log1p(exp(x)));
      b = 1.0f / (1.0f + exp(-b));
    }
    beta[at] = b;
    part[at] = g;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at < CHUNK) {
    float s = 0;
    for (int j = 0; j <= at; j++) s += part[j];
    lg[at] = s;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  {
    const int row = at / 8;
    float qq = 0, kk = 0;
    for (int c = at % 8; c < DN; c += 8) {
      const float q = lq[row * LD + c], k = lk[row * LD + c];
      qq += q * q;
      kk += k * k;
    }
    part[at] = qq;
    part[256 + at] = kk;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at < CHUNK) {
    float qq = 0, kk = 0;
    for (int i = 0; i < 8; i++) {
      qq += part[at * 8 + i];
      kk += part[256 + at * 8 + i];
    }
    qf[at] = 1.0f / sqrt(qq + eps) / sqrt((float)DN);
    kf[at] = 1.0f / sqrt(kk + eps);
    r[2 * CHUNK * DN + CHUNK * CHUNK + at] = qf[at] * exp(lg[at]);
    r[2 * CHUNK * DN + CHUNK * CHUNK + CHUNK + at] = kf[at] * exp(lg[CHUNK - 1] - lg[at]);
    r[2 * CHUNK * DN + CHUNK * CHUNK + 2 * CHUNK + at] = exp(lg[CHUNK - 1]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  {
    const int i = at % 32, j0 = at / 32 * 4;
    float a[4], b[4];
#pragma unroll
    for (int j = 0; j < 4; j++) a[j] = b[j] = 0;
    for (int c = 0; c < DN / 4; c++) {
      const float4 q = LOCAL4(lq + i * LD + 4 * c), k = LOCAL4(lk + i * LD + 4 * c);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float4 o = LOCAL4(lk + (j0 + j) * LD + 4 * c);
        a[j] += dot(k, o);
        b[j] += dot(q, o);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int k = j0 + j;
      const float f = k <= i ? exp(lg[i] - lg[k]) * kf[k] : 0.0f;
      la[i * CHUNK + k] = k < i ? a[j] * f * beta[i] * kf[i] : 0.0f;
      r[2 * CHUNK * DN + i * CHUNK + k] = b[j] * f * qf[i];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // a column of V or K each
  for (int col = at; col < 2 * DN; col += 256) {
    float x[CHUNK];
    const int c = col % DN;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) {
      if (col < DN)
        x[i] = i < n ? beta[i] * uc[(ulong)(t0 + min(i, n - 1)) * channels + 2 * keys * DN + h * DN + c] : 0.0f;
      else
        x[i] = beta[i] * exp(lg[i]) * kf[i] * lk[i * LD + c];
    }
#pragma unroll
    for (int i = 1; i < CHUNK; i++) {
      float v = x[i];
#pragma unroll
      for (int j = 0; j < i; j += 4) {
        const float4 a = LOCAL4(la + i * CHUNK + j);
        v -= a.x * x[j];
        if (j + 1 < i) v -= a.y * x[j + 1];
        if (j + 2 < i) v -= a.z * x[j + 2];
        if (j + 3 < i) v -= a.w * x[j + 3];
      }
      x[i] = v;
      IN_ORDER;
    }
    GLOBAL float *to = r + (col < DN ? 0 : CHUNK * DN) + c;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) to[i * DN] = x[i];
  }
}

// Goes through the chunks of rec. Dimension 0 is a block of CROWS rows of the
// state, 1 the value head. kept: st[1] tokens of the last window come first, when
// `first` is set.
#define CROWS 16
#define CITEMS 128
#define COWN (CROWS * DN / CITEMS) // rows of the state of a work-item, in one column

KERNEL(CITEMS / LANES) void chunk_pass(CGLOBAL float *uc, int channels, CGLOBAL float *rec, int base, int tokens, int heads, int keys, GLOBAL float *s,
                                 CGLOBAL float *old_k, CGLOBAL float *old_d, CGLOBAL float *old_g, CGLOBAL int *st, int first, int flags,
                                 GLOBAL float *y) {
  BEGIN
  __local float lw[CHUNK * LD] __attribute__((aligned(16))), lq[CHUNK * LD] __attribute__((aligned(16))); // W, then keys; queries
  __local float lm[CROWS * DN] __attribute__((aligned(16))), ld[CHUNK * CROWS] __attribute__((aligned(16)));
  __local float lb[CHUNK * CHUNK] __attribute__((aligned(16)));
  const int at = get_local_id(0), h = get_group_id(1), r0 = get_group_id(0) * CROWS;
  const int kh = (flags & DELTA_MOD) ? h % keys : h / (heads / keys);
  const int col = at % DN, own = at / DN * COWN; // of the state
  const int i = at % CHUNK, rr = at / CHUNK * 4; // token and rows of results
  GLOBAL float *state = s + ((ulong)h * DN + r0 + own) * DN + col;
  float m[COWN];
#pragma unroll
  for (int r = 0; r < COWN; r++) m[r] = state[r * DN];
  const int kept = first ? st[1] : 0;
  for (int t = 0; t < kept; t++) {
    const float g = old_g[t * heads + h], k = old_k[((ulong)t * keys + kh) * DN + col];
#pragma unroll
    for (int r = 0; r < COWN; r++) m[r] = m[r] * g + old_d[((ulong)t * heads + h) * DN + r0 + own + r] * k;
  }
  for (int chunk = 0; chunk * CHUNK < tokens; chunk++) {
    const int t0 = base + chunk * CHUNK, n = min(CHUNK, base + tokens - t0);
    CGLOBAL float *r = rec + ((ulong)chunk * heads + h) * REC;
    CGLOBAL float *factor = r + 2 * CHUNK * DN + CHUNK * CHUNK;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < COWN; k++) lm[(own + k) * DN + col] = m[k];
    for (int k = at; k < CHUNK * DN / 4; k += CITEMS) {
      const int row = k / (DN / 4), c = k % (DN / 4);
      LOCAL4(lw + row * LD + 4 * c) = GLOBAL4(r + CHUNK * DN + 4 * k);
      LOCAL4(lq + row * LD + 4 * c) = GLOBAL4(uc + (ulong)(t0 + min(row, n - 1)) * channels + kh * DN + 4 * c);
    }
    for (int k = at; k < CHUNK * CHUNK / 4; k += CITEMS) LOCAL4(lb + 4 * k) = GLOBAL4(r + 2 * CHUNK * DN + 4 * k);
    const float4 u = GLOBAL4(r + i * DN + r0 + rr);
    const float qs = factor[i], gm = factor[2 * CHUNK];
    barrier(CLK_LOCAL_MEM_FENCE);
    float wm[4], qm[4];
#pragma unroll
    for (int k = 0; k < 4; k++) wm[k] = qm[k] = 0;
    for (int c = 0; c < DN / 4; c++) {
      const float4 w = LOCAL4(lw + i * LD + 4 * c), q = LOCAL4(lq + i * LD + 4 * c);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const float4 v = LOCAL4(lm + (rr + k) * DN + 4 * c);
        wm[k] += dot(w, v);
        qm[k] += dot(q, v);
      }
    }
    LOCAL4(ld + i * CROWS + rr) = u - (float4)(wm[0], wm[1], wm[2], wm[3]);
    barrier(CLK_LOCAL_MEM_FENCE);
    // the keys take the place of W
    for (int k = at; k < CHUNK * DN / 4; k += CITEMS) {
      const int row = k / (DN / 4), c = k % (DN / 4);
      const float f = row < n ? factor[CHUNK + row] : 0.0f;
      LOCAL4(lw + row * LD + 4 * c) = GLOBAL4(uc + (ulong)(t0 + min(row, n - 1)) * channels + (keys + kh) * DN + 4 * c) * f;
    }
    float4 out = (float4)(qm[0], qm[1], qm[2], qm[3]) * qs;
    for (int j = 0; j < CHUNK; j++) out += lb[i * CHUNK + j] * LOCAL4(ld + j * CROWS + rr);
    if (i < n) *(GLOBAL float4 *)(y + ((ulong)(t0 + i) * heads + h) * DN + r0 + rr) = out;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < COWN; k++) m[k] *= gm;
    for (int j = 0; j < CHUNK; j++) {
      const float k = lw[j * LD + col];
#pragma unroll
      for (int q = 0; q < COWN; q += 4) {
        const float4 d = LOCAL4(ld + j * CROWS + own + q);
        m[q] += d.x * k;
        m[q + 1] += d.y * k;
        m[q + 2] += d.z * k;
        m[q + 3] += d.w * k;
      }
    }
  }
#pragma unroll
  for (int r = 0; r < COWN; r++) state[r * DN] = m[r];
}
