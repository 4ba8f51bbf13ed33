// RMS norms of rows, with what stands before and after them in a layer: the
// residual addition, and the rounding to 8 bits.
//
//   x += scale * add              NORM_ADD
//   x += scale * rms(add) * post  NORM_ADD | NORM_POST   (sandwich families)
//   v = rms(x) * w
//   y = v                         NORM_FLOATS
//   xq, xm = round8(v)            NORM_ROUND
//
// Rows of n floats, n a multiple of 32; one work-group a row.

#define NORM_ADD 1
#define NORM_POST 2
#define NORM_FLOATS 4
#define NORM_ROUND 8
#define NORM_PLAIN 16 // without w

#define GROUP 256
#define GROUP_WAVES (GROUP / LANES)

KERNEL(GROUP_WAVES) void norm(GLOBAL float *x, int n, CGLOBAL float *add, CGLOBAL float *post, CGLOBAL float *w, float eps,
                              float scale, int flags, GLOBAL float *y, GLOBAL uint4 *xq, GLOBAL uint2 *xm) {
  BEGIN
  LANE_LOCAL
  GROUP_LOCAL(GROUP_WAVES)
  const int i = get_local_id(0);
  const ulong row = get_group_id(0);
  GLOBAL float4 *xr = (GLOBAL float4 *)(x + row * n);
  CGLOBAL float4 *ar = (CGLOBAL float4 *)(add + row * n);
  const int n4 = n / 4;
  if (flags & NORM_ADD) {
    float f = scale;
    if (flags & NORM_POST) {
      float s = 0;
      for (int k = i; k < n4; k += GROUP) s += dot(ar[k], ar[k]);
      s = group_sum(GROUP_WAVES, s);
      f *= rsqrt(s / (float)n + eps);
    }
    for (int k = i; k < n4; k += GROUP) {
      float4 v = f * ar[k];
      if (flags & NORM_POST) v *= ((CGLOBAL float4 *)post)[k];
      xr[k] += v;
    }
  }
  float s = 0;
  for (int k = i; k < n4; k += GROUP) s += dot(xr[k], xr[k]); // what this work-item wrote itself
  if (!(flags & (NORM_FLOATS | NORM_ROUND))) return;
  s = group_sum(GROUP_WAVES, s);
  const float f = 1.0f / sqrt(s / (float)n + eps);
  barrier(CLK_GLOBAL_MEM_FENCE);
  const int upr = n / 32;
  for (int u = i; u < upr; u += GROUP) {
    float4 v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
      v[k] = f * xr[8 * u + k];
      if (!(flags & NORM_PLAIN)) v[k] *= ((CGLOBAL float4 *)w)[8 * u + k];
      if (flags & NORM_FLOATS) ((GLOBAL float4 *)(y + row * n))[8 * u + k] = v[k];
    }
    if (flags & NORM_ROUND) quantize_unit(v, xq + 2 * row * upr, xm + row * upr, upr, u);
  }
}
