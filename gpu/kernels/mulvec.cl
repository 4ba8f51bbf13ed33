// Matrix times a few columns of activations: y[c][r] = sum_k w[r][k] x[c][k].
//
// A wave takes `turns` groups of NR rows, one group after the other; its lanes go
// over the units of the rows, UNITS of each at once. `split` waves of a work-group share the same rows,
// each with a part of the units. The next DEPTH fetches of a wave are on their
// way across the border of row groups: the memory never waits for a sum. Sums
// meet in local memory, and the work-group writes all its results at its end.
//
// $NC columns, of which `cols` exist; turns is at most TURNS.
//
//   v = scale * (w.x + extra[r])    with MUL_BIAS
//   v *= sigmoid(extra[c * ldx])    with MUL_GATE
//   y[c*ldy + r] = v, or += v       with MUL_ADD
//
// Products of the same activations need not wait for each other: the first
// (MUL_HOLD) lets the next launch in only when the activations are complete, the
// others (MUL_SETTLED) begin at once and wait for those before them at their end.

#ifndef MUL_BIAS
#define MUL_BIAS 1
#define MUL_ADD 2
#define MUL_GATE 4
#define MUL_HOLD 8
#define MUL_SETTLED 16
#define TURNS 16
#endif

// With one column lanes share scales (dot.cl), which leaves registers; with
// more, what is unpacked had better not live outside the branch.
#undef MUL_RAW
#undef MUL_LOAD
#if $NC == 1
#define MUL_RAW LRAW
#define MUL_LOAD(o, p, u) fetch_lane(o, p, u, lane)
#else
#define MUL_RAW raw
#define MUL_LOAD(o, p, u) fetch(o, p, u)
#endif

KERNEL(WAVES) void mulvec_$NC(CGLOBAL uchar *restrict w, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab,
                              xvalues *xq, CGLOBAL uint2 *xm, int cols, GLOBAL float *y, int ldy,
                              int split, int turns, CGLOBAL float *extra, int ldx, int flags, float scale) {
  LANE_LOCAL
  __local float part[WAVES * TURNS * NR * $NC];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int sets = WAVES / split, set = wave / split, slice = wave % split;
  const int group = get_group_id(0) * sets * turns * NR, first = group + set * turns * NR;
  const int u0 = slice * LANES + lane, jump = split * LANES, step = jump * UNITS, iters = (upr + step - 1) / step;
  const planes p = planes_at(w, units, 0);

  // Row r of group k is first + r * turns + k: so a place moves on by a row's units
  // whatever r is. Past the end of the matrix the last rows are taken again.
  MUL_RAW ring[DEPTH][UNITS][NR];
  int base[NR], late[NR];
  int fu = u0, fleft = iters, frow = 0;
  const int fend = turns * upr;
#pragma unroll
  for (int r = 0; r < NR; r++) {
    const int from = min(first + r * turns, rows - turns);
    late[r] = first + r * turns - from;
    base[r] = from * upr;
  }
  // The next step of all rows to place d of the ring.
#define MUL_FETCH(d)                                                                               \
  if (frow < fend) {                                                                               \
    _Pragma("unroll") for (int j = 0; j < UNITS; j++) {                                            \
      if (fu + j * jump < upr) {                                                                   \
        _Pragma("unroll") for (int r = 0; r < NR; r++)                                             \
            MUL_LOAD(&ring[d][j][r], p, base[r] + frow + fu + j * jump);                           \
      }                                                                                            \
    }                                                                                              \
    fu += step;                                                                                    \
    if (--fleft == 0) {                                                                            \
      fleft = iters;                                                                               \
      fu = u0;                                                                                     \
      frow += upr;                                                                                 \
    }                                                                                              \
  }
#pragma unroll
  for (int d = 0; d < DEPTH; d++) {
    MUL_FETCH(d)
  }
  TABLE_BEGIN(WAVES)
  if (flags & MUL_SETTLED) {
    LET_NEXT;
  } else if (flags & MUL_HOLD) {
    WAIT;
    LET_NEXT;
  } else {
    BEGIN
  }

  float acc[NR][$NC];
#pragma unroll
  for (int r = 0; r < NR; r++)
#pragma unroll
    for (int c = 0; c < $NC; c++) acc[r][c] = 0;
  int u = u0, left = iters, turn = 0;
  while (turn < turns) {
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      if (turn < turns) {
#pragma unroll
        for (int j = 0; j < UNITS; j++) {
#if $NC == 1
          // Past the end of a row the last activations are taken, and nothing is added: no
          // branch, so their loads go on while weights are waited for.
          const int at = u + j * jump;
          const xunit x = x_at(xq, xm, upr, 0, min(at, upr - 1));
          vunit wt[NR];
#pragma unroll
          for (int r = 0; r < NR; r++) vec_lane(&wt[r], &ring[d][j][r], lane, tab); // steps are multiples of 8 units
#pragma unroll
          for (int r = 0; r < NR; r++) {
            const float v = vec_dot(&wt[r], &x, acc[r][0]);
            acc[r][0] = at < upr ? v : acc[r][0];
          }
#else
          if (u + j * jump < upr) {
            unit wt[NR];
#pragma unroll
            for (int r = 0; r < NR; r++) unpack(&wt[r], &ring[d][j][r], lane, tab);
#pragma unroll
            for (int c = 0; c < $NC; c++) {
              const xunit x = x_at(xq, xm, upr, c ? min(c, cols - 1) : 0, u + j * jump);
#pragma unroll
              for (int r = 0; r < NR; r++) acc[r][c] = dot_unit(&wt[r], &x, acc[r][c]);
            }
          }
#endif
        }
        MUL_FETCH(d)
        u += step;
        if (--left == 0) {
          left = iters;
          u = u0;
#if defined(LANE_SUMS) && NR * $NC <= 32
          const float v = lane_sums(&acc[0][0], NR * $NC);
          const int i = lane / (LANES / (NR * $NC)), r = i / $NC, at = first + r * turns, behind = turn - at + min(at, rows - turns);
          if (lane % (LANES / (NR * $NC)) == 0 && behind >= 0) part[(((set * NR + r) * turns + behind) * $NC + i % $NC) * split + slice] = v;
#pragma unroll
          for (int k = 0; k < NR * $NC; k++) acc[k / $NC][k % $NC] = 0;
#else
#pragma unroll
          for (int r = 0; r < NR; r++) {
#pragma unroll
            for (int c = 0; c < $NC; c++) {
              const float v = lane_sum(acc[r][c]);
              if (lane == 0 && turn >= late[r]) part[(((set * NR + r) * turns + turn - late[r]) * $NC + c) * split + slice] = v;
              acc[r][c] = 0;
            }
          }
#endif
          turn++;
        }
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_local_id(0); i < sets * turns * NR * $NC; i += WAVES * LANES) {
    const int c = i % $NC, r = group + i / $NC;
    if (r >= rows || c >= cols) continue;
    float v = 0;
    for (int s = 0; s < split; s++) v += part[i * split + s];
    if (flags & MUL_BIAS) v += extra[r];
    v *= scale;
    if (flags & MUL_GATE) v /= 1.0f + exp(-extra[c * ldx]);
    if (flags & MUL_ADD) v += y[c * ldy + r];
    y[c * ldy + r] = v;
  }
  if (flags & MUL_SETTLED) WAIT; // so that the end of this launch is the end of all before it
}
#undef MUL_FETCH
