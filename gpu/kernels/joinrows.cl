// join (join.cl) for many tokens whose context is in one part: a work-item makes
// four values, eight of them round a unit together. Dimension 1 is the token.

#define JOIN_SINKS 1
#define JOIN_GATE 2
#define JOIN_FLOATS 4
#define JOIN_ROUND 8

KERNEL_N(MANY_ITEMS) void join_rows(CGLOBAL float *parts, int heads, int vd, CGLOBAL float *sinks, CGLOBAL float *gate, int ldg, int gstep,
                                    int goff, int flags, GLOBAL float *y, GLOBAL uint *xq, GLOBAL uint2 *xm) {
  BEGIN
  __local float most[MANY_ITEMS];
  __local int bad[MANY_ITEMS], sums[MANY_ITEMS];
  const int at = get_local_id(0), n = heads * vd, all = n / 4, i = get_global_id(0);
  const ulong t = get_group_id(1);
  const int mine = min(i, all - 1), h = 4 * mine / vd, d = 4 * mine % vd;
  CGLOBAL float *p = parts + (t * heads + h) * (vd + 2);
  float f = 1.0f / p[vd];
  if (flags & JOIN_SINKS) {
    const float m = p[vd + 1], top = fmax(sinks[h], m), e = m == -INFINITY ? 0.0f : exp(m - top);
    f = e / (exp(sinks[h] - top) + e * p[vd]);
  }
  float4 v = (float4)(p[d], p[d + 1], p[d + 2], p[d + 3]) * f;
  if (flags & JOIN_GATE) {
    CGLOBAL float *g = gate + t * ldg + h * gstep + goff + d;
    v /= 1.0f + exp(-(float4)(g[0], g[1], g[2], g[3]));
  }
  if ((flags & JOIN_FLOATS) && i < all) ((GLOBAL float4 *)(y + t * n))[i] = v;
  if (flags & JOIN_ROUND) round_together(most, bad, sums, v, i < all, n / 32, mine / 8, xq + 8 * t * (n / 32), xm + t * (n / 32));
}
