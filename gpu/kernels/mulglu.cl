// The first half of a feed-forward: h[c][r] = act(gate[r].x[c]) * (up[r].x[c]),
// for $NC columns, rounded to 8 bits at once.
//
// A work-group makes 32 values of a column: one unit of the result. The matrix
// has 2*rows rows: those of the gate, then those of the up matrix. A wave takes
// PAIRS rows of both, its next $DEPTH fetches on their way.
//
// The kernel comes in two forms: mulglu_N for one matrix, whose weights may be
// fetched before the launch waits, and mulexperts, whose waves have all they need
// on its way at once, as it cannot begin before it knows its matrices.
//
// With experts (GLU_EXPERTS, one column only) dimension 1 is a slot: the matrix is
// number ids[slot], `stride` bytes apart; the column is slot / used; the result
// goes to row `slot`.

#ifndef GLU_BIAS
#define GLU_BIAS 1    // bias: `rows` floats for the gate, then for up, of each matrix
#define GLU_EXPERTS 2
#define GLU_FLOATS 4  // write floats to h
#define GLU_ROUND 8   // write 8-bit values to hq, hm
#define GLU_WAVES (GLU_ITEMS / LANES)
#define PAIRS (32 / GLU_WAVES)
#endif

// as in mulvec.cl
#undef GLU_RAW
#undef GLU_LOAD
#if $NC == 1
#define GLU_RAW LRAW
#define GLU_LOAD(o, p, u) fetch_lane(o, p, u, lane)
#else
#define GLU_RAW raw
#define GLU_LOAD(o, p, u) fetch(o, p, u)
#endif

KERNEL(GLU_WAVES) void $NAME(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows,
                                  CGLOBAL uint *restrict gtab, xvalues *xq, CGLOBAL uint2 *xm, int cols,
                                  CGLOBAL int *ids, int used, CGLOBAL float *bias, int act, int flags, GLOBAL float *h,
                                  GLOBAL uint4 *hq, GLOBAL uint2 *hm) {
  LANE_LOCAL
  __local float out[2][$NC * 32]; // gate, up
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int block = get_group_id(0), iters = (upr + $UNITS * LANES - 1) / ($UNITS * LANES);
  int col = 0, slot = 0;
  if (flags & GLU_EXPERTS) {
    slot = get_group_id(1);
    WAIT; // the expert's number comes from a kernel before
    LET_NEXT; // so that the next launch finds the numbers complete (muldown.cl)
    const int e = ids[slot];
    col = slot / used;
    w += stride * e;
    bias += (ulong)e * 2 * rows;
  }
  const planes p = planes_at(w, units, 0);
  // A wave goes through $ROWS streams of rows: even ones of the gate, odd ones of
  // the up matrix, each of `turns` rows that follow each other.
  const int first = block * 32 + wave * PAIRS, turns = 2 * PAIRS / $ROWS;
  GLU_RAW ring[$DEPTH][$UNITS][$ROWS];
  int base[$ROWS], fu = lane, fleft = iters, frow = 0;
  const int fend = turns * upr;
#pragma unroll
  for (int r = 0; r < $ROWS; r++) base[r] = (r % 2 * rows + first + r / 2 * turns) * upr;
#define GLU_FETCH(d)                                                                               \
  if (frow < fend) {                                                                               \
    _Pragma("unroll") for (int j = 0; j < $UNITS; j++) {                                            \
      if (fu + j * LANES < upr) {                                                                  \
        _Pragma("unroll") for (int r = 0; r < $ROWS; r++)                                       \
            GLU_LOAD(&ring[d][j][r], p, base[r] + frow + fu + j * LANES);                             \
      }                                                                                            \
    }                                                                                              \
    fu += $UNITS * LANES;                                                                           \
    if (--fleft == 0) {                                                                            \
      fleft = iters;                                                                               \
      fu = lane;                                                                                   \
      frow += upr;                                                                                 \
    }                                                                                              \
  }
#pragma unroll
  for (int d = 0; d < $DEPTH; d++) {
    GLU_FETCH(d)
  }
  TABLE_BEGIN(GLU_WAVES)
  if (!(flags & GLU_EXPERTS)) {
    BEGIN
  }
  float acc[$ROWS][$NC];
#pragma unroll
  for (int r = 0; r < $ROWS; r++)
#pragma unroll
    for (int c = 0; c < $NC; c++) acc[r][c] = 0;
  int turn = 0, u = lane, left = iters;
  while (turn < turns) {
#pragma unroll
    for (int d = 0; d < $DEPTH; d++) {
      if (turn < turns) {
#pragma unroll
        for (int j = 0; j < $UNITS; j++) {
#if $NC == 1
          const int at = u + j * LANES;
          const xunit x = x_at(xq, xm, upr, col, min(at, upr - 1));
          vunit wt[$ROWS];
#pragma unroll
          for (int r = 0; r < $ROWS; r++) vec_lane(&wt[r], &ring[d][j][r], lane, tab); // steps are multiples of 8 units
#pragma unroll
          for (int r = 0; r < $ROWS; r++) {
            const float v = vec_dot(&wt[r], &x, acc[r][0]);
            acc[r][0] = at < upr ? v : acc[r][0];
          }
#else
          if (u + j * LANES < upr) {
            unit wt[$ROWS];
#pragma unroll
            for (int r = 0; r < $ROWS; r++) unpack(&wt[r], &ring[d][j][r], lane, tab);
#pragma unroll
            for (int c = 0; c < $NC; c++) {
              const xunit x = x_at(xq, xm, upr, c ? min(c, cols - 1) : col, u + j * LANES);
#pragma unroll
              for (int r = 0; r < $ROWS; r++) acc[r][c] = dot_unit(&wt[r], &x, acc[r][c]);
            }
          }
#endif
        }
        GLU_FETCH(d)
        u += $UNITS * LANES;
        if (--left == 0) {
          left = iters;
          u = lane;
#if defined(LANE_SUMS) && $ROWS * $NC <= 32
          const float v = lane_sums(&acc[0][0], $ROWS * $NC);
          const int i = lane / (LANES / ($ROWS * $NC)), r = i / $NC;
          if (lane % (LANES / ($ROWS * $NC)) == 0) out[r % 2][i % $NC * 32 + wave * PAIRS + r / 2 * turns + turn] = v;
#pragma unroll
          for (int k = 0; k < $ROWS * $NC; k++) acc[k / $NC][k % $NC] = 0;
#else
#pragma unroll
          for (int r = 0; r < $ROWS; r++) {
#pragma unroll
            for (int c = 0; c < $NC; c++) {
              const float v = lane_sum(acc[r][c]);
              if (lane == 0) out[r % 2][c * 32 + wave * PAIRS + r / 2 * turns + turn] = v;
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
  const int i = get_local_id(0);
  for (int j = i; j < 32 * $NC; j += GLU_WAVES * LANES) {
    const int row = min(block * 32 + j % 32, rows - 1);
    float gs = out[0][j], vs = out[1][j];
    if (flags & GLU_BIAS) {
      gs += bias[row];
      vs += bias[rows + row];
    }
    out[0][j] = activate(act, gs, vs);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (flags & GLU_FLOATS) {
    for (int j = i; j < 32 * $NC; j += GLU_WAVES * LANES) {
      const int c = j / 32, row = block * 32 + j % 32;
      if (c < cols && row < rows) h[(ulong)(slot + c) * rows + row] = out[0][j];
    }
  }
  if ((flags & GLU_ROUND) && i < cols && i < $NC) {
    float4 b[8];
#pragma unroll
    for (int j = 0; j < 8; j++) b[j] = vload4(j, out[0] + 32 * i);
    const int hpr = rows / 32;
    const ulong row = slot + i;
    quantize_unit(b, hq + 2 * row * hpr, hm + row * hpr, hpr, block);
  }
}
#undef GLU_FETCH
