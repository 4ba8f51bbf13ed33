// Matrix times a few columns of activations: y[c][r] = sum_k w[r][k] x[c][k].
//
// A wave takes NR rows; its lanes go over the units of the rows. `split` waves
// of a work-group share the same rows, each with a part of the units.
//
// $NC columns, of which `cols` exist.
//
//   v = scale * (w.x + extra[r])    with MUL_BIAS
//   v *= sigmoid(extra[c * ldx])    with MUL_GATE
//   y[c*ldy + r] = v, or += v       with MUL_ADD

#ifndef UNROLL
#define UNROLL 1
#endif
#define PRAGMA_(x) _Pragma(#x)
#define PRAGMA(x) PRAGMA_(x)

#define MUL_BIAS 1
#define MUL_ADD 2
#define MUL_GATE 4

KERNEL(WAVES) void mulvec_$NC(CGLOBAL uchar *restrict w, ulong units, int upr, int rows, CGLOBAL uint *restrict tab,
                              xvalues *restrict xq, CGLOBAL uint2 *restrict xm, int cols, GLOBAL float *y, int ldy,
                              int split, CGLOBAL float *extra, int ldx, int flags, float scale) {
  LANE_LOCAL
  __local float part[WAVES * NR * $NC];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int slice = wave % split;
  const int first = (get_group_id(0) * (WAVES / split) + wave / split) * NR;

  float acc[NR][$NC];
  planes p[NR];
#pragma unroll
  for (int r = 0; r < NR; r++) {
    p[r] = planes_at(w, units, (ulong)min(first + r, rows - 1) * upr);
#pragma unroll
    for (int c = 0; c < $NC; c++) acc[r][c] = 0;
  }
  PRAGMA(unroll UNROLL)
  for (int u = slice * LANES + lane; u < upr; u += split * LANES) {
    unit wt[NR];
#pragma unroll
    for (int r = 0; r < NR; r++) unpack(&wt[r], p[r], u, tab);
#pragma unroll
    for (int c = 0; c < $NC; c++) {
      xunit x = x_at(xq, xm, upr, min(c, cols - 1), u);
#pragma unroll
      for (int r = 0; r < NR; r++) acc[r][c] += dot_unit(&wt[r], &x);
    }
  }
#pragma unroll
  for (int r = 0; r < NR; r++) {
#pragma unroll
    for (int c = 0; c < $NC; c++) {
      float v = lane_sum(acc[r][c]);
      if (lane == 0) part[(wave * NR + r) * $NC + c] = v;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // one work-item for each result of the group
  for (int i = get_local_id(0); i < WAVES / split * NR * $NC; i += WAVES * LANES) {
    const int c = i % $NC, r = i / $NC % NR, g = i / $NC / NR;
    const int row = (get_group_id(0) * (WAVES / split) + g) * NR + r;
    if (row >= rows || c >= cols) continue;
    float v = 0;
    for (int s = 0; s < split; s++) v += part[((g * split + s) * NR + r) * $NC + c];
    if (flags & MUL_BIAS) v += extra[row];
    v *= scale;
    if (flags & MUL_GATE) v /= 1.0f + exp(-extra[c * ldx]);
    if (flags & MUL_ADD) v += y[c * ldy + row];
    y[c * ldy + row] = v;
  }
}
