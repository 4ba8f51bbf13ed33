// Float weights of few rows (routers) times many columns: work-groups of FEW x FEW
// results only, so that there are enough of them, and the next FEW_UNITS units of
// 8 values on their way meanwhile. Arguments and flags as matmul.cl, without
// experts.

#define FEW 32
#define FEW_UNITS 8
#define FEW_LINE (FEW_UNITS * 8 + 4) // floats: lanes with different rows are in different banks

KERNEL_N(256) void matmul_few(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab,
                              xvalues *restrict xq, CGLOBAL uint2 *restrict xm, int cols, CGLOBAL int *order, CGLOBAL int *start, int div,
                              GLOBAL float *y, int ldy, CGLOBAL float *extra, int flags, float scale) {
  BEGIN
  TABLE_BEGIN(256 / LANES)
  __local float4 lw[FEW * FEW_LINE / 4], lx[FEW * FEW_LINE / 4];
  const int at = get_local_id(0), line = at / FEW_UNITS, own = at % FEW_UNITS;
  const int row0 = get_group_id(0) * FEW, col0 = get_group_id(1) * FEW;
  const planes p = planes_at(w, units, (ulong)min(row0 + line, rows - 1) * upr);
  const int xr = min(col0 + line, cols - 1);
  const int r = at / 16, c = at % 16; // and 16 more
  raw f;
  xunit x;
  float acc[2][2];
  acc[0][0] = acc[0][1] = acc[1][0] = acc[1][1] = 0;
  fetch(&f, p, min(own, upr - 1));
  x = x_at(xq, xm, upr, xr, min(own, upr - 1));
  for (int base = 0; base < upr; base += FEW_UNITS) {
    unit t;
    unpack(&t, &f, 0, tab);
    const float on = base + own < upr ? 1.0f : 0.0f;
    const int to = (line * FEW_LINE + own * 8) / 4;
    lw[to] = t.a * on;
    lw[to + 1] = t.b * on;
    lx[to] = x.a * on;
    lx[to + 1] = x.b * on;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int next = min(base + FEW_UNITS + own, upr - 1);
    fetch(&f, p, next);
    x = x_at(xq, xm, upr, xr, next);
#pragma unroll
    for (int k = 0; k < FEW_UNITS * 2; k++) {
      const float4 w0 = lw[r * FEW_LINE / 4 + k], w1 = lw[(r + 16) * FEW_LINE / 4 + k];
      const float4 x0 = lx[c * FEW_LINE / 4 + k], x1 = lx[(c + 16) * FEW_LINE / 4 + k];
      acc[0][0] += dot(w0, x0);
      acc[0][1] += dot(w0, x1);
      acc[1][0] += dot(w1, x0);
      acc[1][1] += dot(w1, x1);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const int row = row0 + r + 16 * i, col = col0 + c + 16 * j;
      if (row >= rows || col >= cols) continue;
      GLOBAL float *to = y + (ulong)col * ldy + row;
      float v = acc[i][j];
      if (flags & MM_BIAS) v += extra[row];
      v *= scale;
      if (flags & MM_ADD) v += *to;
      *to = v;
    }
}
