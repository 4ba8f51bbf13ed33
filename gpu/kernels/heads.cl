// Queries, keys and values between projection and attention: head norms,
// rotation, and the caches.
//
// A cache holds for each head `ctx` rows. KV_HALF: rows of dim halves. KV_Q8:
// dim signed bytes a row, and after all rows of all heads one half a 32 values
// as scale.
//
// st[0] is the position of the first token of the pass. cs holds for each token
// rot/2 cosines, then rot/2 sines.

#define HEAD_QNORM 1 // norm each query head with qw
#define HEAD_KNORM 2 // each key head with kw
#define HEAD_VNORM 4 // each value head, without weights
#define HEAD_NEOX 8  // pairs (i, i + rot/2), else (2i, 2i+1)
#define HEAD_FUSED 16 // attend: make and keep keys and values as well (one token)

#define HEAD_MAX 576

// Norms and rotates the head h[0..n-1] in local memory, by one wave. All waves
// of the work-group must come here together.
FN void head_ready(__local float *h, int n, CGLOBAL float *w, int normed, float eps, CGLOBAL float *cs, int rot, int neox
#if !defined(NVIDIA) && !defined(INTEL)
                       , __local float *lane_mem
#endif
) {
  const int lane = get_local_id(0) % LANES;
  float s = 0;
  for (int i = lane; i < n; i += LANES) s += h[i] * h[i];
  s = lane_sum(s);
  if (normed) {
    const float f = 1.0f / sqrt(s / (float)n + eps);
    for (int i = lane; i < n; i += LANES) h[i] *= normed > 1 ? f : f * w[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int half_ = rot / 2;
  for (int i = lane; i < half_; i += LANES) {
    const int p = neox ? i : 2 * i, q = neox ? i + half_ : 2 * i + 1;
    const float a = h[p], b = h[q], c = cs[i], d = cs[half_ + i];
    h[p] = a * c - b * d;
    h[q] = a * d + b * c;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#if !defined(NVIDIA) && !defined(INTEL)
#define HEAD_READY(h, n, w, normed, eps, cs, rot, neox) head_ready(h, n, w, normed, eps, cs, rot, neox, lane_mem)
#else
#define HEAD_READY(h, n, w, normed, eps, cs, rot, neox) head_ready(h, n, w, normed, eps, cs, rot, neox)
#endif

// Writes head h to row `row` of a cache of rows_all rows, by one wave.
FN void keep_row(GLOBAL uchar *cache, ulong row, ulong rows_all, __local const float *h, int n) {
  const int lane = get_local_id(0) % LANES;
#ifdef KV_Q8
  GLOBAL ushort *scales = (GLOBAL ushort *)(cache + rows_all * n);
  for (int u = lane; u < n / 32; u += LANES) {
    float m = 0;
    for (int i = 0; i < 32; i++) m = fmax(m, fabs(h[32 * u + i]));
    // rounded to half first, so that bytes are relative to what readers see
    vstore_half(m / 127.0f, row * (n / 32) + u, (GLOBAL half *)scales);
    const float d = vload_half(row * (n / 32) + u, (GLOBAL half *)scales);
    const float inv = d > 0 ? 1.0f / d : 0;
    for (int i = 0; i < 32; i++) ((GLOBAL char *)cache)[row * n + 32 * u + i] = (char)clamp(rint(h[32 * u + i] * inv), -127.0f, 127.0f);
  }
#else
  for (int i = lane; i < n; i += LANES) vstore_half(h[i], row * n + i, (GLOBAL half *)cache);
#endif
}
