// Matrix times a few columns of 8-bit activations: y[c][r] = sum_k w[r][k] x[c][k].
//
// A wave takes NR rows; its lanes go over the units of the rows. `split` waves
// of a work-group share the same rows, each with a part of the units.
//
// Activations: xq holds for each column the first halves of all units (16 bytes
// each), then the second halves; xm holds for each column and unit the scale
// and the two sums of 16.
//
// $NC columns, of which `cols` exist.

#define FLAG_BIAS 1 // extra holds one float per row to add first
#define FLAG_ADD 2  // y holds something already

#ifndef DOT_UNIT
#define DOT_UNIT
static float dot_unit(const unit *w, uint4 a, uint4 b, uint2 m) {
  float d = as_float(m.x);
#if SCALES == 1
  int s = 0;
  s = dot4(w->q[0], a.x, s);
  s = dot4(w->q[1], a.y, s);
  s = dot4(w->q[2], a.z, s);
  s = dot4(w->q[3], a.w, s);
  s = dot4(w->q[4], b.x, s);
  s = dot4(w->q[5], b.y, s);
  s = dot4(w->q[6], b.z, s);
  s = dot4(w->q[7], b.w, s);
  float v = w->s0 * (float)s;
#else
  int s = 0, t = 0;
  s = dot4(w->q[0], a.x, s);
  s = dot4(w->q[1], a.y, s);
  s = dot4(w->q[2], a.z, s);
  s = dot4(w->q[3], a.w, s);
  t = dot4(w->q[4], b.x, t);
  t = dot4(w->q[5], b.y, t);
  t = dot4(w->q[6], b.z, t);
  t = dot4(w->q[7], b.w, t);
  float v = w->s0 * (float)s + w->s1 * (float)t;
#endif
#if OFFSETS == 1
  v += w->m0 * (float)((short)m.y + (short)(m.y >> 16));
#elif OFFSETS == 2
  v += w->m0 * (float)(short)m.y + w->m1 * (float)(short)(m.y >> 16);
#endif
  return d * v;
}
#endif

KERNEL(WAVES) void mulvec_$NC(CGLOBAL uchar *restrict w, ulong units, int upr, int rows, CGLOBAL uint *restrict tab,
                              CGLOBAL uint4 *restrict xq, CGLOBAL uint2 *restrict xm, int cols, GLOBAL float *y, int ldy,
                              int split, CGLOBAL float *extra, int flags, float scale) {
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
  for (int u = slice * LANES + lane; u < upr; u += split * LANES) {
    unit wt[NR];
#pragma unroll
    for (int r = 0; r < NR; r++) unpack(&wt[r], p[r], u, tab);
#pragma unroll
    for (int c = 0; c < $NC; c++) {
      const int at = min(c, cols - 1) * upr;
      uint4 a = xq[2 * at + u], b = xq[2 * at + upr + u];
      uint2 m = xm[at + u];
#pragma unroll
      for (int r = 0; r < NR; r++) acc[r][c] += dot_unit(&wt[r], a, b, m);
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
    if (flags & FLAG_BIAS) v += extra[row];
    v *= scale;
    if (flags & FLAG_ADD) v += y[c * ldy + row];
    y[c * ldy + row] = v;
  }
}
