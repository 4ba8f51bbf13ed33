// The second half of a mixture of experts for few tokens:
//
//   y[t][r] (+)= scale * sum_j weight[t*used+j] * (w_e[r].x[t*used+j] + bias[e][r]),  e = ids[t*used+j]
//
// Dimension 1 is the token. The lanes of a wave go over the units of all its
// experts as if they were one long row.

#define DOWN_BIAS 1
#define DOWN_ADD 2

KERNEL(WAVES) void muldown(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows, CGLOBAL uint *restrict tab,
                           xvalues *restrict xq, CGLOBAL uint2 *restrict xm, CGLOBAL int *ids, CGLOBAL float *weight, int used,
                           CGLOBAL float *bias, int flags, float scale, GLOBAL float *y, int ldy) {
  LANE_LOCAL
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int first = (get_group_id(0) * WAVES + wave) * NR, token = get_group_id(1), slot0 = token * used;
  float acc[NR];
#pragma unroll
  for (int r = 0; r < NR; r++) acc[r] = 0;
  for (int i = lane; i < used * upr; i += LANES) {
    const int j = i / upr, u = i - j * upr;
    CGLOBAL uchar *we = w + stride * ids[slot0 + j];
    const float f = weight[slot0 + j];
    xunit x = x_at(xq, xm, upr, slot0 + j, u);
#pragma unroll
    for (int r = 0; r < NR; r++) {
      unit wt;
      unpack(&wt, planes_at(we, units, (ulong)min(first + r, rows - 1) * upr), u, tab);
      acc[r] += f * dot_unit(&wt, &x);
    }
  }
#pragma unroll
  for (int r = 0; r < NR; r++) {
    float v = lane_sum(acc[r]);
    const int row = first + r;
    if (lane == 0 && row < rows) {
      if (flags & DOWN_BIAS)
        for (int j = 0; j < used; j++) v += weight[slot0 + j] * bias[(ulong)ids[slot0 + j] * rows + row];
      v *= scale;
      if (flags & DOWN_ADD) v += y[token * ldy + row];
      y[token * ldy + row] = v;
    }
  }
}
