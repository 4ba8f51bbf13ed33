// Matrix times many columns of activations, in tiles: TM rows and TN columns a
// work-group of 16 x 16 work-items, each 4 x 4 results, KU units at a time.
//
// With MM_EXPERTS dimension 2 is the expert e and its columns are the slots
// order[start[e]] .. order[start[e+1]-1]: activation row slot / div, result row
// slot.

#define MM_BIAS 1
#define MM_ADD 2
#define MM_EXPERTS 8

#define TM 64
#define TN 64
#define KU 2
#define MM_ITEMS 256

KERNEL_N(MM_ITEMS) void matmul(CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab,
                               xvalues *restrict xq, CGLOBAL uint2 *restrict xm, int cols, CGLOBAL int *order, CGLOBAL int *start,
                               int div, GLOBAL float *y, int ldy, CGLOBAL float *extra, int flags, float scale) {
  TABLE_BEGIN(MM_ITEMS / LANES)
#ifdef BLOCK_BYTES
  __local int lw[KU * 8 * TM], lx[KU * 8 * TN];
  __local float ls[KU * SCALES * TM], ld[KU * TN];
#if OFFSETS > 0
  __local float lo[KU * OFFSETS * TM], lsum[KU * OFFSETS * TN];
#endif
#else
  __local float lw[KU * 8 * TM], lx[KU * 8 * TN];
#endif
  __local int xrow[TN], yrow[TN];
  BEGIN
  const int at = get_local_id(0);
  const int row0 = get_group_id(0) * TM, col0 = get_group_id(1) * TN;
  int first = 0;
  if (flags & MM_EXPERTS) {
    const int e = get_group_id(2);
    first = start[e];
    cols = start[e + 1] - first;
    w += stride * e;
    extra += (flags & MM_BIAS) ? (ulong)e * rows : 0;
  }
  if (col0 >= cols) return; // the whole work-group
  if (at < TN) {
    const int c = min(col0 + at, cols - 1);
    const int s = (flags & MM_EXPERTS) ? order[first + c] : c;
    xrow[at] = (flags & MM_EXPERTS) ? s / div : s;
    yrow[at] = s;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  // who loads what: the first half rows of weights, the second half columns
  const int mine = at % (MM_ITEMS / 2), line = mine % TM, ku = mine / TM;
  const int loads_w = at < MM_ITEMS / 2;
  const planes p = planes_at(w, units, (ulong)min(row0 + line, rows - 1) * upr);
  const int xr = xrow[line];

  const int tx = at % 16 * 4, ty = at / 16 * 4;
  float acc[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) acc[i][j] = 0;

  for (int base = 0; base < upr; base += KU) {
    const int u = base + ku;
    if (loads_w) {
      unit t;
      raw f;
      fetch(&f, p, min(u, upr - 1));
      unpack(&t, &f, min(u, upr - 1), tab);
#ifdef BLOCK_BYTES
#pragma unroll
      for (int k = 0; k < 8; k++) lw[(ku * 8 + k) * TM + line] = t.q[k];
      const float on = u < upr ? 1.0f : 0.0f;
      ls[ku * SCALES * TM + line] = t.s0 * on;
#if SCALES == 2
      ls[(ku * SCALES + 1) * TM + line] = t.s1 * on;
#endif
#if OFFSETS > 0
      lo[ku * OFFSETS * TM + line] = t.m0 * on;
#endif
#if OFFSETS == 2
      lo[(ku * OFFSETS + 1) * TM + line] = t.m1 * on;
#endif
#else
      const float on = u < upr ? 1.0f : 0.0f;
      lw[(ku * 8 + 0) * TM + line] = t.a.x * on;
      lw[(ku * 8 + 1) * TM + line] = t.a.y * on;
      lw[(ku * 8 + 2) * TM + line] = t.a.z * on;
      lw[(ku * 8 + 3) * TM + line] = t.a.w * on;
      lw[(ku * 8 + 4) * TM + line] = t.b.x * on;
      lw[(ku * 8 + 5) * TM + line] = t.b.y * on;
      lw[(ku * 8 + 6) * TM + line] = t.b.z * on;
      lw[(ku * 8 + 7) * TM + line] = t.b.w * on;
#endif
    } else {
      const xunit x = x_at(xq, xm, upr, xr, min(u, upr - 1));
#ifdef BLOCK_BYTES
      lx[(ku * 8 + 0) * TN + line] = x.a.x;
      lx[(ku * 8 + 1) * TN + line] = x.a.y;
      lx[(ku * 8 + 2) * TN + line] = x.a.z;
      lx[(ku * 8 + 3) * TN + line] = x.a.w;
      lx[(ku * 8 + 4) * TN + line] = x.b.x;
      lx[(ku * 8 + 5) * TN + line] = x.b.y;
      lx[(ku * 8 + 6) * TN + line] = x.b.z;
      lx[(ku * 8 + 7) * TN + line] = x.b.w;
      ld[ku * TN + line] = as_float(x.m.x);
#if OFFSETS == 1
      lsum[ku * TN + line] = (float)((short)x.m.y + (short)(x.m.y >> 16));
#elif OFFSETS == 2
      lsum[ku * 2 * TN + line] = (float)(short)x.m.y;
      lsum[(ku * 2 + 1) * TN + line] = (float)(short)(x.m.y >> 16);
#endif
#else
      lx[(ku * 8 + 0) * TN + line] = x.a.x;
      lx[(ku * 8 + 1) * TN + line] = x.a.y;
      lx[(ku * 8 + 2) * TN + line] = x.a.z;
      lx[(ku * 8 + 3) * TN + line] = x.a.w;
      lx[(ku * 8 + 4) * TN + line] = x.b.x;
      lx[(ku * 8 + 5) * TN + line] = x.b.y;
      lx[(ku * 8 + 6) * TN + line] = x.b.z;
      lx[(ku * 8 + 7) * TN + line] = x.b.w;
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int b = 0; b < KU; b++) {
#ifdef BLOCK_BYTES
      int s[SCALES][4][4];
#pragma unroll
      for (int h = 0; h < SCALES; h++) {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) s[h][i][j] = 0;
#pragma unroll
        for (int k = h * (8 / SCALES); k < (h + 1) * (8 / SCALES); k++) {
          const int4 a = vload4(0, lw + (b * 8 + k) * TM + ty), x = vload4(0, lx + (b * 8 + k) * TN + tx);
          const int ai[4] = {a.x, a.y, a.z, a.w}, xj[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) s[h][i][j] = dot4(ai[i], xj[j], s[h][i][j]);
        }
      }
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float d = ld[b * TN + tx + j];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          float v = ls[b * SCALES * TM + ty + i] * (float)s[0][i][j];
#if SCALES == 2
          v += ls[(b * SCALES + 1) * TM + ty + i] * (float)s[1][i][j];
#endif
#if OFFSETS > 0
          v += lo[b * OFFSETS * TM + ty + i] * lsum[b * OFFSETS * TN + tx + j];
#endif
#if OFFSETS == 2
          v += lo[(b * 2 + 1) * TM + ty + i] * lsum[(b * 2 + 1) * TN + tx + j];
#endif
          acc[i][j] += d * v;
        }
      }
#else
#pragma unroll
      for (int k = 0; k < 8; k++) {
        const float4 a = vload4(0, lw + (b * 8 + k) * TM + ty), x = vload4(0, lx + (b * 8 + k) * TN + tx);
        const float ai[4] = {a.x, a.y, a.z, a.w}, xj[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) acc[i][j] += ai[i] * xj[j];
      }
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (col0 + tx + j >= cols) continue;
    GLOBAL float *to = y + (ulong)yrow[tx + j] * ldy;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int row = row0 + ty + i;
      if (row >= rows) continue;
      float v = acc[i][j];
      if (flags & MM_BIAS) v += extra[row];
      v *= scale;
      if (flags & MM_ADD) v += to[row];
      to[row] = v;
    }
  }
}
