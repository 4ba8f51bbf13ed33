// Activations to halves, a work-group a row. A row is multiplied with a power of
// two that brings its largest value below 2^15, so that nothing overflows and
// 2^-29 of it is still a normal number; xs has what undoes that. A row with a
// NaN or an infinity gets a NaN there.
//
// xh: rows of values in order, 8 to a uint4.

#define HALVE_WAVES (256 / LANES)

// 2^e.
FN float power(int e) { return as_float((uint)(127 + e) << 23); }

FN int exponent(float v) { return max((int)(as_uint(v) >> 23 & 255) - 127, -100); }

// From 8-bit activations of upr units a row (quantize.cl).
KERNEL(HALVE_WAVES) void halve_rounded(CGLOBAL uint4 *xq, CGLOBAL uint2 *xm, int upr, GLOBAL uint4 *xh, GLOBAL float *xs) {
  BEGIN
  LANE_LOCAL
  GROUP_LOCAL(HALVE_WAVES)
  const int at = get_local_id(0);
  const ulong row = get_group_id(0);
  float most = 0, bad = 0;
  for (int u = at; u < upr; u += 256) {
    const float d = as_float(xm[row * upr + u].x);
    if (broken(d)) bad = 1;
    else most = fmax(most, d);
  }
  most = group_max(HALVE_WAVES, most);
  bad = group_max(HALVE_WAVES, bad);
  // the scale of a unit is its largest value / 127
  const int e = exponent(most) - 7;
  if (at == 0) xs[row] = bad > 0 ? as_float(0x7fc00000) : power(e);
  const float f = power(-e);
  for (int i = at; i < 2 * upr; i += 256) {
    const int u = i % upr;
    const uint4 q = xq[2 * row * upr + i];
    const float d = as_float(xm[row * upr + u].x) * f;
    const uint w[4] = {q.x, q.y, q.z, q.w};
    uint h[8];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const char4 c = as_char4(w[k]);
      h[2 * k] = two_halves((float)c.x * d, (float)c.y * d);
      h[2 * k + 1] = two_halves((float)c.z * d, (float)c.w * d);
    }
    GLOBAL uint4 *to = xh + row * upr * 4 + u * 4 + i / upr * 2;
    to[0] = (uint4)(h[0], h[1], h[2], h[3]);
    to[1] = (uint4)(h[4], h[5], h[6], h[7]);
  }
}

// From floats, n a row, a multiple of 8.
KERNEL(HALVE_WAVES) void halve_floats(CGLOBAL float *x, int n, GLOBAL uint4 *xh, GLOBAL float *xs) {
  BEGIN
  LANE_LOCAL
  GROUP_LOCAL(HALVE_WAVES)
  const int at = get_local_id(0);
  const ulong row = get_group_id(0);
  CGLOBAL float *v = x + row * n;
  float most = 0, bad = 0;
  for (int i = at; i < n; i += 256) {
    if (broken(v[i])) bad = 1;
    else most = fmax(most, fabs(v[i]));
  }
  most = group_max(HALVE_WAVES, most);
  bad = group_max(HALVE_WAVES, bad);
  const int e = exponent(most) - 14;
  if (at == 0) xs[row] = bad > 0 ? as_float(0x7fc00000) : power(e);
  const float f = power(-e);
  for (int i = at; i < n / 8; i += 256) {
    const float4 a = ((CGLOBAL float4 *)v)[2 * i] * f, b = ((CGLOBAL float4 *)v)[2 * i + 1] * f;
    xh[row * (n / 8) + i] = (uint4)(two_halves(a.x, a.y), two_halves(a.z, a.w), two_halves(b.x, b.y), two_halves(b.z, b.w));
  }
}
