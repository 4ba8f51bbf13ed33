// RMS norms of rows, with what stands before and after them in a layer: the
// residual addition, and the rounding to 8 bits.
//
//   x += scale * add              NORM_ADD
//   x += scale * rms(add) * post  NORM_ADD | NORM_POST   (sandwich families)
//   v = rms(x) * w
//   y = v                         NORM_FLOATS
//   xq, xm = round8(v)            NORM_ROUND
//
// Rows of n floats, n a multiple of 32 and at most NORM_MOST; one work-group a row.
// A work-item keeps every NORM_ITEMS'th four values from the first load to the last
// store; eight neighbours round a unit together, to the numbers of quantize_unit.

#define NORM_ADD 1
#define NORM_POST 2
#define NORM_FLOATS 4
#define NORM_ROUND 8
#define NORM_PLAIN 16 // without w

#ifdef NVIDIA
#define NORM_ITEMS 512
#define NORM_EACH 8
#else // some drivers have no larger work-groups
#define NORM_ITEMS 256
#define NORM_EACH 16
#endif
#define NORM_WAVES (NORM_ITEMS / LANES)
#define NORM_MOST (4 * NORM_ITEMS * NORM_EACH)
#define NORM_LOOP _Pragma("unroll") for (int j = 0; j < NORM_EACH; j++) if (j * NORM_ITEMS < n4)

#if defined(NVIDIA) || defined(INTEL)
#define LANE_MEM
#define LANE_MEM_ARG
#else
#define LANE_MEM , lane_mem
#define LANE_MEM_ARG , __local float *lane_mem
#endif

// Rounds unit u of a row of upr units, of which eight neighbouring lanes hold four
// values each, this one those of place `own`. Same numbers as quantize_unit. All of
// the work-group come here; those that are not live write nothing.
FN void round_neighbours(float4 r, int live, int upr, int u, int own, GLOBAL uint *xq, GLOBAL uint2 *xm LANE_MEM_ARG) {
  float most = fmax(fmax(fabs(r.x), fabs(r.y)), fmax(fabs(r.z), fabs(r.w)));
  if (broken(r.x) | broken(r.y) | broken(r.z) | broken(r.w)) most = INFINITY;
  most = fmax(most, lane_xor(most, 1));
  most = fmax(most, lane_xor(most, 2));
  most = fmax(most, lane_xor(most, 4));
  const int bad = broken(most), none = bad || !(most >= 0x1p-120f);
  const uint q = none ? 0 : round4(r, ratio(127.0f, most));
  float sum = (float)sum4(q);
  sum += lane_xor(sum, 1);
  sum += lane_xor(sum, 2);
  const float second = lane_xor(sum, 4);
  if (!live) return;
  xq[(own < 4 ? u : upr + u) * 4 + own % 4] = q;
  if (own == 0) xm[u] = none ? (uint2)(bad ? 0x7fc00000 : 0, 0) : (uint2)(as_uint(ratio(most, 127.0f)), ((int)sum & 0xffff) | (uint)(int)second << 16);
}

KERNEL(NORM_WAVES) void norm(GLOBAL float *x, int n, CGLOBAL float *add, CGLOBAL float *post, CGLOBAL float *w, float eps,
                             float scale, int flags, GLOBAL float *y, GLOBAL uint *xq, GLOBAL uint2 *xm) {
  LANE_LOCAL
  GROUP_LOCAL(NORM_WAVES)
  const int i = get_local_id(0), n4 = n / 4, upr = n / 32;
  const ulong row = get_group_id(0);
  GLOBAL float4 *xr = (GLOBAL float4 *)(x + row * n);
  float4 v[NORM_EACH];
  const int weighted = !(flags & NORM_PLAIN);
#ifdef NVIDIA // weights, which no kernel writes, come while this launch waits
  float4 weight[NORM_EACH];
  NORM_LOOP {
    const int k = i + j * NORM_ITEMS;
    weight[j] = weighted && k < n4 ? ((CGLOBAL float4 *)w)[k] : (float4)(1.0f);
  }
#define WEIGHT(j, k) weight[j]
#else
#define WEIGHT(j, k) (weighted && k < n4 ? ((CGLOBAL float4 *)w)[k] : (float4)(1.0f))
#endif
  BEGIN
  NORM_LOOP {
    const int k = i + j * NORM_ITEMS;
    v[j] = k < n4 ? xr[k] : (float4)(0.0f);
  }
  if (flags & NORM_ADD) {
    CGLOBAL float4 *ar = (CGLOBAL float4 *)(add + row * n);
    float f = scale;
    if (flags & NORM_POST) {
      float s = 0;
      NORM_LOOP {
        const int k = i + j * NORM_ITEMS;
        if (k < n4) s += dot(ar[k], ar[k]);
      }
      s = group_sum(NORM_WAVES, s);
      f *= rsqrt(s / (float)n + eps);
    }
    NORM_LOOP {
      const int k = i + j * NORM_ITEMS;
      if (k < n4) {
        float4 a = f * ar[k];
        if (flags & NORM_POST) a *= ((CGLOBAL float4 *)post)[k];
        v[j] += a;
        xr[k] = v[j];
      }
    }
  }
  if (!(flags & (NORM_FLOATS | NORM_ROUND))) return;
  float s = 0;
  NORM_LOOP s += dot(v[j], v[j]);
  s = group_sum(NORM_WAVES, s);
  const float f = 1.0f / sqrt(s / (float)n + eps);
  NORM_LOOP {
    const int k = i + j * NORM_ITEMS, u = k / 8, own = k % 8;
    const float4 r = f * v[j] * WEIGHT(j, k);
    if ((flags & NORM_FLOATS) && k < n4) ((GLOBAL float4 *)(y + row * n))[k] = r;
    if (flags & NORM_ROUND) round_neighbours(r, k < n4, upr, u, own, xq + 8 * row * upr, xm + row * upr LANE_MEM);
  }
}
