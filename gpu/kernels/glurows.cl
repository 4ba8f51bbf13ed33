// glu_rows (rows.cl) for many rows: a work-item makes four values. Dimension 1 is
// the row; rows of gates and ups begin at multiples of 16 bytes.
#define GLU_FLOATS 4
#define GLU_ROUND 8

KERNEL_N(MANY_ITEMS) void glu_many(CGLOBAL float *gate, int ldg, CGLOBAL float *up, int ldu, int n, int act, int flags, GLOBAL float *h,
                                   GLOBAL uint *hq, GLOBAL uint2 *hm) {
  BEGIN
  __local float most[MANY_ITEMS];
  __local int bad[MANY_ITEMS], sums[MANY_ITEMS];
  const int all = n / 4, i = get_global_id(0), mine = min(i, all - 1);
  const ulong r = get_group_id(1);
  const float4 g = ((CGLOBAL float4 *)(gate + r * ldg))[mine], u = ((CGLOBAL float4 *)(up + r * ldu))[mine];
  const float4 v = (float4)(activate(act, g.x, u.x), activate(act, g.y, u.y), activate(act, g.z, u.z), activate(act, g.w, u.w));
  if ((flags & GLU_FLOATS) && i < all) ((GLOBAL float4 *)(h + r * n))[i] = v;
  if (flags & GLU_ROUND) round_together(most, bad, sums, v, i < all, n / 32, mine / 8, hq + 8 * r * (n / 32), hm + r * (n / 32));
}
