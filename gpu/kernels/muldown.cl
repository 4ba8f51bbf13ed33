// The second half of a mixture of experts for few tokens:
//
//   y[t][r] (+)= scale * sum_j weight[t*used+j] * (w_e[r].x[t*used+j] + bias[e][r]),  e = ids[t*used+j]
//
// Dimension 1 is the token. The waves of a work-group share DR rows; their lanes
// go over the units of all experts of the token as if they were one long row.

#define DOWN_BIAS 1
#define DOWN_ADD 2
#define DOWN_SLOTS 64
#define DR 2

KERNEL(WAVES) void muldown(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab,
                           xvalues *restrict xq, CGLOBAL uint2 *restrict xm, CGLOBAL int *ids, CGLOBAL float *weight, int used,
                           CGLOBAL float *bias, int flags, float scale, GLOBAL float *y, int ldy) {
  LANE_LOCAL
  TABLE_BEGIN(WAVES)
  __local float part[WAVES * DR], lweight[DOWN_SLOTS];
  __local int lids[DOWN_SLOTS];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int first = get_group_id(0) * DR, token = get_group_id(1), slot0 = token * used;
  BEGIN
  for (int j = get_local_id(0); j < used; j += WAVES * LANES) {
    lids[j] = ids[slot0 + j];
    lweight[j] = weight[slot0 + j];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float acc[DR];
  raw ring[DEPTH][DR];
  const int total = used * upr, step = WAVES * LANES, i0 = wave * LANES + lane;
#define DOWN_FETCH(d, i)                                                                                              \
  if ((i) < total) {                                                                                                  \
    const int j = (i) / upr, u = (i)-j * upr;                                                                         \
    CGLOBAL uchar *we = w + stride * lids[j];                                                                         \
    _Pragma("unroll") for (int r = 0; r < DR; r++)                                                                    \
        fetch(&ring[d][r], planes_at(we, units, (ulong)min(first + r, rows - 1) * upr), u);                           \
  }
#pragma unroll
  for (int r = 0; r < DR; r++) acc[r] = 0;
#pragma unroll
  for (int d = 0; d < DEPTH; d++) {
    DOWN_FETCH(d, i0 + d * step)
  }
  for (int base = i0; base < total; base += DEPTH * step) {
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      const int i = base + d * step;
      if (i < total) {
        const int j = i / upr, u = i - j * upr;
        const float f = lweight[j];
        const xunit x = x_at(xq, xm, upr, slot0 + j, u);
#pragma unroll
        for (int r = 0; r < DR; r++) {
          unit wt;
          unpack(&wt, &ring[d][r], u, tab);
          acc[r] += f * dot_unit(&wt, &x);
        }
      }
      DOWN_FETCH(d, i + DEPTH * step)
    }
  }
#pragma unroll
  for (int r = 0; r < DR; r++) {
    const float v = lane_sum(acc[r]);
    if (lane == 0) part[wave * DR + r] = v;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int r = get_local_id(0), row = first + r;
  if (r < DR && row < rows) {
    float v = 0;
    for (int s = 0; s < WAVES; s++) v += part[s * DR + r];
    if (flags & DOWN_BIAS)
      for (int j = 0; j < used; j++) v += lweight[j] * bias[(ulong)lids[j] * rows + row];
    v *= scale;
    if (flags & DOWN_ADD) v += y[token * ldy + row];
    y[token * ldy + row] = v;
  }
}
