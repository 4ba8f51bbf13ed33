// join (join.cl) for many tokens whose context is in one part: a work-item makes
// four values, eight of them round a unit together. Dimension 1 is the token.

#define JOIN_SINKS 1
#define JOIN_GATE 2
#define JOIN_FLOATS 4
#define JOIN_ROUND 8
#define JOIN_ITEMS 256

KERNEL_N(JOIN_ITEMS) void join_rows(CGLOBAL float *parts, int heads, int vd, CGLOBAL float *sinks, CGLOBAL float *gate, int ldg, int gstep,
                                    int goff, int flags, GLOBAL float *y, GLOBAL uint *xq, GLOBAL uint2 *xm) {
  BEGIN
  __local float most[JOIN_ITEMS];
  __local int bad[JOIN_ITEMS], sums[JOIN_ITEMS];
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
  if (!(flags & JOIN_ROUND)) return; // the whole launch
  const float4 size = fabs(v);
  most[at] = fmax(fmax(size.x, size.y), fmax(size.z, size.w));
  bad[at] = broken(v.x) | broken(v.y) | broken(v.z) | broken(v.w);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int unit = at & ~7, own = at & 7, upr = n / 32, u = mine / 8;
  float top = most[unit];
  int broke = bad[unit];
  for (int k = 1; k < 8; k++) {
    top = fmax(top, most[unit + k]);
    broke |= bad[unit + k];
  }
  const int none = broke || !(top >= 0x1p-120f);
  const uint q = none ? 0 : round4(v, ratio(127.0f, top));
  sums[at] = sum4(q);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i >= all) return;
  xq[(2 * t * upr + (own < 4 ? u : upr + u)) * 4 + own % 4] = q;
  if (own == 0) {
    const int s = sums[at] + sums[at + 1] + sums[at + 2] + sums[at + 3], z = sums[at + 4] + sums[at + 5] + sums[at + 6] + sums[at + 7];
    xm[t * upr + u] = none ? (uint2)(broke ? 0x7fc00000 : 0, 0) : (uint2)(as_uint(ratio(top, 127.0f)), (s & 0xffff) | (uint)z << 16);
  }
}
