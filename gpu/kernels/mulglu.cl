// The first half of a feed-forward: h[c][r] = act(gate[r].x[c]) * (up[r].x[c]),
// for $NC columns, rounded to 8 bits at once.
//
// A work-group makes 32 values of a column: one unit of the result. The matrix
// has 2*rows rows: those of the gate, then those of the up matrix.
//
// With experts (GLU_EXPERTS, one column only) dimension 1 is a slot: the matrix is
// number ids[slot], `stride` bytes apart; the column is slot / used; the result
// goes to row `slot`.

#define GLU_BIAS 1    // bias: `rows` floats for the gate, then for up, of each matrix
#define GLU_EXPERTS 2
#define GLU_FLOATS 4  // write floats to h
#define GLU_ROUND 8   // write 8-bit values to hq, hm

#ifndef GLU_WAVES
#ifdef INTEL
#define GLU_WAVES (256 / LANES)
#else
#define GLU_WAVES 16
#endif
#endif

KERNEL(GLU_WAVES) void mulglu_$NC(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows,
                                  CGLOBAL uint *restrict tab, xvalues *restrict xq, CGLOBAL uint2 *restrict xm, int cols,
                                  CGLOBAL int *ids, int used, CGLOBAL float *bias, int act, int flags, GLOBAL float *h,
                                  GLOBAL uint4 *hq, GLOBAL uint2 *hm) {
  LANE_LOCAL
  __local float out[$NC * 32];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  const int block = get_group_id(0);
  int col = 0, slot = 0;
  if (flags & GLU_EXPERTS) {
    slot = get_group_id(1);
    const int e = ids[slot];
    col = slot / used;
    w += stride * e;
    bias += (ulong)e * 2 * rows;
  }
  for (int k = 0; k < 32 / GLU_WAVES; k++) {
    const int at = k * GLU_WAVES + wave, row = min(block * 32 + at, rows - 1);
    float g[$NC], v[$NC];
    for (int c = 0; c < $NC; c++) {
      g[c] = 0;
      v[c] = 0;
    }
    planes pg = planes_at(w, units, (ulong)row * upr), pu = planes_at(w, units, (ulong)(rows + row) * upr);
    for (int u = lane; u < upr; u += LANES) {
      unit a, b;
      unpack(&a, pg, u, tab);
      unpack(&b, pu, u, tab);
#pragma unroll
      for (int c = 0; c < $NC; c++) {
        xunit x = x_at(xq, xm, upr, col + min(c, cols - 1), u);
        g[c] += dot_unit(&a, &x);
        v[c] += dot_unit(&b, &x);
      }
    }
#pragma unroll
    for (int c = 0; c < $NC; c++) {
      float gs = lane_sum(g[c]), vs = lane_sum(v[c]);
      if (lane == 0) {
        if (flags & GLU_BIAS) {
          gs += bias[row];
          vs += bias[rows + row];
        }
        out[c * 32 + at] = activate(act, gs, vs);
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
    float4 v[8];
    for (int j = 0; j < 8; j++) v[j] = vload4(j, out + 32 * i);
    const int hpr = rows / 32;
    const ulong row = slot + i;
    quantize_unit(v, hq + 2 * row * hpr, hm + row * hpr, hpr, block);
  }
}
