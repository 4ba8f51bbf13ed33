// The second half of a mixture of experts for few tokens:
//
//   y[t][r] (+)= scale * sum_j weight[t*used+j] * (w_e[r].x[t*used+j] + bias[e][r]),  e = ids[t*used+j]
//
// With DOWN_SETTLED ids and weight were complete before the launch before this one
// let it in (mulglu does so, with experts): then weights are fetched while that one
// still runs.
//
// Dimension 1 is the token. The waves of a work-group share DOWN_ROWS rows; their
// lanes go over the units of all experts of the token as if they were one long row.

#define DOWN_BIAS 1
#define DOWN_ADD 2
#define DOWN_SETTLED 16
#define DOWN_SLOTS 64

// What a kernel before has just written, past the first cache.
#ifdef NVIDIA
FN uint fresh_at(CGLOBAL void *p, int i) {
  uint v;
  __asm__ volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"((CGLOBAL uint *)p + i) : "memory");
  return v;
}
#else
#define fresh_at(p, i) (((CGLOBAL uint *)(p))[i])
#endif

KERNEL(DOWN_WAVES) void muldown(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab,
                                xvalues *xq, CGLOBAL uint2 *xm, CGLOBAL int *ids, CGLOBAL float *weight, int used,
                                CGLOBAL float *bias, int flags, float scale, GLOBAL float *y, int ldy) {
  LANE_LOCAL
  TABLE_BEGIN(DOWN_WAVES)
  __local float part[DOWN_WAVES * DOWN_ROWS], lweight[DOWN_SLOTS];
  __local int lids[DOWN_SLOTS];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int first = get_group_id(0) * DOWN_ROWS, token = get_group_id(1), slot0 = token * used;
  // a lane's next unit is `us` further on in the expert `js` further on
  const int i0 = get_local_id(0), js = DOWN_WAVES * LANES / upr, us = DOWN_WAVES * LANES % upr;
  int j = i0 / upr, u = i0 % upr, fj = j, fu = u;
  if (!(flags & DOWN_SETTLED)) {
    BEGIN
  }
  for (int s = i0; s < used; s += DOWN_WAVES * LANES) {
    lids[s] = (int)fresh_at(ids, slot0 + s);
    lweight[s] = as_float(fresh_at(weight, slot0 + s));
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float acc[DOWN_ROWS];
  raw ring[DOWN_DEPTH][DOWN_ROWS];
#define DOWN_NEXT(j, u) \
  j += js;              \
  u += us;              \
  if (u >= upr) {       \
    u -= upr;           \
    j++;                \
  }
#define DOWN_FETCH(d)                                                                                                      \
  if (fj < used) {                                                                                                         \
    const planes p = planes_at(w + stride * lids[fj], units, 0);                                                           \
    _Pragma("unroll") for (int r = 0; r < DOWN_ROWS; r++) fetch(&ring[d][r], p, min(first + r, rows - 1) * upr + fu);           \
    DOWN_NEXT(fj, fu)                                                                                                      \
  }
#pragma unroll
  for (int r = 0; r < DOWN_ROWS; r++) acc[r] = 0;
#pragma unroll
  for (int d = 0; d < DOWN_DEPTH; d++) {
    DOWN_FETCH(d)
  }
  if (flags & DOWN_SETTLED) {
    BEGIN
  }
  while (j < used) {
#pragma unroll
    for (int d = 0; d < DOWN_DEPTH; d++) {
      if (j < used) {
        const float f = lweight[j];
        const xunit x = x_at(xq, xm, upr, slot0 + j, u);
#pragma unroll
        for (int r = 0; r < DOWN_ROWS; r++) {
          vunit wt;
          vec_unit(&wt, &ring[d][r], u, tab);
          acc[r] = mad(f, vec_dot(&wt, &x, 0), acc[r]);
        }
        DOWN_FETCH(d)
        DOWN_NEXT(j, u)
      }
    }
  }
#ifdef LANE_SUMS
  const float sum = lane_sums(acc, DOWN_ROWS);
  if (lane % (LANES / DOWN_ROWS) == 0) part[wave * DOWN_ROWS + lane / (LANES / DOWN_ROWS)] = sum;
#else
#pragma unroll
  for (int r = 0; r < DOWN_ROWS; r++) {
    const float v = lane_sum(acc[r]);
    if (lane == 0) part[wave * DOWN_ROWS + r] = v;
  }
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
  const int r = get_local_id(0), row = first + r;
  if (r < DOWN_ROWS && row < rows) {
    float v = 0;
    for (int s = 0; s < DOWN_WAVES; s++) v += part[s * DOWN_ROWS + r];
    if (flags & DOWN_BIAS)
      for (int s = 0; s < used; s++) v += lweight[s] * bias[(ulong)lids[s] * rows + row];
    v *= scale;
    if (flags & DOWN_ADD) v += y[token * ldy + row];
    y[token * ldy + row] = v;
  }
}
