// The first half of a feed-forward: h[c][r] = act(gate[r].x[c]) * (up[r].x[c]),
// for $NC columns, rounded to 8 bits at once.
//
// A work-group makes 32 values of a column: one unit of the result. The matrix
// has 2*rows rows: those of the gate, then those of the up matrix. A wave takes
// PAIRS rows of both, one after the other, its next fetches on their way.
//
// With experts (GLU_EXPERTS, one column only) dimension 1 is a slot: the matrix is
// number ids[slot], `stride` bytes apart; the column is slot / used; the result
// goes to row `slot`.

#ifndef GLU_BIAS
#define GLU_BIAS 1    // bias: `rows` floats for the gate, then for up, of each matrix
#define GLU_EXPERTS 2
#define GLU_FLOATS 4  // write floats to h
#define GLU_ROUND 8   // write 8-bit values to hq, hm
#define GLU_WAVES (256 / LANES)
#define PAIRS (32 / GLU_WAVES)
#endif

KERNEL(GLU_WAVES) void mulglu_$NC(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows,
                                  CGLOBAL uint *restrict gtab, xvalues *restrict xq, CGLOBAL uint2 *restrict xm, int cols,
                                  CGLOBAL int *ids, int used, CGLOBAL float *bias, int act, int flags, GLOBAL float *h,
                                  GLOBAL uint4 *hq, GLOBAL uint2 *hm) {
  LANE_LOCAL
  TABLE_BEGIN(GLU_WAVES)
  __local float out[$NC * 32];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int block = get_group_id(0), iters = (upr + LANES - 1) / LANES;
  int col = 0, slot = 0;
  if (flags & GLU_EXPERTS) {
    slot = get_group_id(1);
    BEGIN // the expert's number comes from a kernel before
    const int e = ids[slot];
    col = slot / used;
    w += stride * e;
    bias += (ulong)e * 2 * rows;
  }
  raw rg[DEPTH], ru[DEPTH];
  planes pg, pu;
  int fetched = 0, at = 0;
#define GLU_ROW(k) min(block * 32 + (k) * GLU_WAVES + wave, rows - 1)
#define GLU_FETCH(d)                                                    \
  if (fetched < PAIRS) {                                                \
    if (at == 0) {                                                      \
      const int row = GLU_ROW(fetched);                                 \
      pg = planes_at(w, units, (ulong)row * upr);                       \
      pu = planes_at(w, units, (ulong)(rows + row) * upr);              \
    }                                                                   \
    const int u = lane + at * LANES;                                    \
    if (u < upr) {                                                      \
      fetch(&rg[d], pg, u);                                             \
      fetch(&ru[d], pu, u);                                             \
    }                                                                   \
    if (++at == iters) {                                                \
      at = 0;                                                           \
      fetched++;                                                        \
    }                                                                   \
  }
#pragma unroll
  for (int d = 0; d < DEPTH; d++) {
    GLU_FETCH(d)
  }
  if (!(flags & GLU_EXPERTS)) {
    BEGIN
  }
  float g[$NC], v[$NC];
#pragma unroll
  for (int c = 0; c < $NC; c++) {
    g[c] = 0;
    v[c] = 0;
  }
  int pair = 0, now = 0;
  while (pair < PAIRS) {
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      if (pair < PAIRS) {
        const int u = lane + now * LANES;
        if (u < upr) {
          unit a, b;
          unpack(&a, &rg[d], u, tab);
          unpack(&b, &ru[d], u, tab);
#pragma unroll
          for (int c = 0; c < $NC; c++) {
            const xunit x = x_at(xq, xm, upr, col + min(c, cols - 1), u);
            g[c] += dot_unit(&a, &x);
            v[c] += dot_unit(&b, &x);
          }
        }
        GLU_FETCH(d)
        if (++now == iters) {
          now = 0;
          const int row = GLU_ROW(pair);
#pragma unroll
          for (int c = 0; c < $NC; c++) {
            float gs = lane_sum(g[c]), vs = lane_sum(v[c]);
            g[c] = 0;
            v[c] = 0;
            if (lane == 0) {
              if (flags & GLU_BIAS) {
                gs += bias[row];
                vs += bias[rows + row];
              }
              out[c * 32 + pair * GLU_WAVES + wave] = activate(act, gs, vs);
            }
          }
          pair++;
        }
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int i = get_local_id(0);
  if (flags & GLU_FLOATS) {
    for (int j = i; j < 32 * $NC; j += GLU_WAVES * LANES) {
      const int c = j / 32, row = block * 32 + j % 32;
      if (c < cols && row < rows) h[(ulong)(slot + c) * rows + row] = out[j];
    }
  }
  if ((flags & GLU_ROUND) && i < cols && i < $NC) {
    float4 b[8];
#pragma unroll
    for (int j = 0; j < 8; j++) b[j] = vload4(j, out + 32 * i);
    const int hpr = rows / 32;
    const ulong row = slot + i;
    quantize_unit(b, hq + 2 * row * hpr, hm + row * hpr, hpr, block);
  }
}
#undef GLU_FETCH
