// Rounding by eight neighbours, each with four of a unit's 32 values: for rows of
// prompts, where a work-item with a unit of its own reads what lies far from its
// neighbours'. Same numbers as quantize_unit.

#define MANY_ITEMS 256

// most, bad and sums have a place for each work-item; u is the unit of a row of
// upr units that begins at xq (words) and xm. All of the work-group come here,
// those that are not live write nothing.
FN void round_together(__local float *most, __local int *bad, __local int *sums, float4 v, int live, int upr, int u, GLOBAL uint *xq, GLOBAL uint2 *xm) {
  const int at = get_local_id(0), unit = at & ~7, own = at & 7;
  const float4 size = fabs(v);
  most[at] = fmax(fmax(size.x, size.y), fmax(size.z, size.w));
  bad[at] = broken(v.x) | broken(v.y) | broken(v.z) | broken(v.w);
  barrier(CLK_LOCAL_MEM_FENCE);
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
  if (!live) return;
  xq[(own < 4 ? u : upr + u) * 4 + own % 4] = q;
  if (own == 0) {
    const int s = sums[at] + sums[at + 1] + sums[at + 2] + sums[at + 3], z = sums[at + 4] + sums[at + 5] + sums[at + 6] + sums[at + 7];
    xm[u] = none ? (uint2)(broke ? 0x7fc00000 : 0, 0) : (uint2)(as_uint(ratio(top, 127.0f)), (s & 0xffff) | (uint)z << 16);
  }
}
