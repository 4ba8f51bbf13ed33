// Matrix times a few columns of activations: y[c][r] = sum_k w[r][k] x[c][k].
//
// A wave takes NR rows at a time; its lanes go over the units of the rows.
// `split` waves of a work-group share the same rows, each with a part of the
// units. A wave goes through `turns` row groups, and its next DEPTH fetches are on
// their way across the border of row groups: the memory never waits for a sum.
//
// $NC columns, of which `cols` exist.
//
//   v = scale * (w.x + extra[r])    with MUL_BIAS
//   v *= sigmoid(extra[c * ldx])    with MUL_GATE
//   y[c*ldy + r] = v, or += v       with MUL_ADD

#ifndef MUL_BIAS
#define MUL_BIAS 1
#define MUL_ADD 2
#define MUL_GATE 4
#endif

KERNEL(WAVES) void mulvec_$NC(CGLOBAL uchar *restrict w, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab,
                              xvalues *restrict xq, CGLOBAL uint2 *restrict xm, int cols, GLOBAL float *y, int ldy,
                              int split, int turns, CGLOBAL float *extra, int ldx, int flags, float scale) {
  LANE_LOCAL
  TABLE_BEGIN(WAVES)
  __local float part[WAVES * NR * $NC];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int slice = wave % split, sets = WAVES / split;
  // row group k of this wave begins at row first + k * NR * sets
  const int first = (get_group_id(0) * turns * sets + wave / split) * NR;
  const int u0 = slice * LANES + lane, step = split * LANES, iters = (upr + step - 1) / step;

  raw ring[DEPTH][NR];
  planes p[NR];
  int fetched = 0, at = 0; // row groups and steps of the one being fetched
#pragma unroll
  for (int r = 0; r < NR; r++) p[r] = planes_at(w, units, (ulong)min(first + r, rows - 1) * upr);
  // The next step of all rows to place d of the ring.
#define MUL_FETCH(d)                                                                                                            \
  if (fetched < turns) {                                                                                                        \
    const int u = u0 + at * step;                                                                                               \
    if (u < upr) {                                                                                                              \
      _Pragma("unroll") for (int r = 0; r < NR; r++) fetch(&ring[d][r], p[r], u);                                               \
    }                                                                                                                           \
    if (++at == iters) {                                                                                                        \
      at = 0;                                                                                                                   \
      fetched++;                                                                                                                \
      const int row = first + fetched * NR * sets;                                                                              \
      _Pragma("unroll") for (int r = 0; r < NR; r++) p[r] = planes_at(w, units, (ulong)min(row + r, rows - 1) * upr);           \
    }                                                                                                                           \
  }
#pragma unroll
  for (int d = 0; d < DEPTH; d++) {
    MUL_FETCH(d)
  }
  BEGIN

  float acc[NR][$NC];
#pragma unroll
  for (int r = 0; r < NR; r++)
#pragma unroll
    for (int c = 0; c < $NC; c++) acc[r][c] = 0;
  int turn = 0, now = 0;
  while (turn < turns) {
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      if (turn < turns) {
        const int u = u0 + now * step;
        if (u < upr) {
          unit wt[NR];
#pragma unroll
          for (int r = 0; r < NR; r++) unpack(&wt[r], &ring[d][r], u, tab);
#pragma unroll
          for (int c = 0; c < $NC; c++) {
            const xunit x = x_at(xq, xm, upr, min(c, cols - 1), u);
#pragma unroll
            for (int r = 0; r < NR; r++) acc[r][c] += dot_unit(&wt[r], &x);
          }
        }
        MUL_FETCH(d)
        if (++now == iters) {
          now = 0;
#pragma unroll
          for (int r = 0; r < NR; r++) {
#pragma unroll
            for (int c = 0; c < $NC; c++) {
              const float v = lane_sum(acc[r][c]);
              if (lane == 0) part[(wave * NR + r) * $NC + c] = v;
              acc[r][c] = 0;
            }
          }
          if (split > 1)
            barrier(CLK_LOCAL_MEM_FENCE);
          else
            WAVE_SYNC;
          // the lanes of the first wave of a set make one result each
          for (int i = lane; i < NR * $NC && slice == 0; i += LANES) {
            const int c = i % $NC, r = i / $NC;
            const int row = first + turn * NR * sets + r;
            if (row >= rows || c >= cols) continue;
            float v = 0;
            for (int s = 0; s < split; s++) v += part[((wave + s) * NR + r) * $NC + c];
            if (flags & MUL_BIAS) v += extra[row];
            v *= scale;
            if (flags & MUL_GATE) v /= 1.0f + exp(-extra[c * ldx]);
            if (flags & MUL_ADD) v += y[c * ldy + row];
            y[c * ldy + row] = v;
          }
          if (split > 1)
            barrier(CLK_LOCAL_MEM_FENCE);
          else
            WAVE_SYNC;
          turn++;
        }
      }
    }
  }
}
#undef MUL_FETCH
