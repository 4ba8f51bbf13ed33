// Matrix times many columns on NVIDIA's matrix units: mma.sync over 8-bit
// numbers (PTX ISA, m16n8k32 and m16n8k16, compute capability 8.0), with the
// block scales applied to its whole-number results. Arguments and flags as
// matmul.cl.
//
// A work-group of $WM x $WN waves makes 16*$MT*$WM rows by 8*$NT*$WN columns.
// Tiles of KU units pass through local memory, the next one is on its way in
// registers meanwhile. A line of a tile holds KU units of 8 words and 4 words of
// padding, so that the lanes of a fragment read from different banks.
//
// Lane l of a wave holds, of a tile of 16 x 8 results, rows l/4 and l/4+8 and
// columns 2*(l%4) and 2*(l%4)+1.

#define MM_BIAS 1
#define MM_ADD 2
#define MM_EXPERTS 8

#ifndef MMA_ONCE
#define MMA_ONCE
#define KU 2
#define LINE (KU * 8 + 4)
#ifdef BIAS
#define MOFFSETS 0
#else
#define MOFFSETS OFFSETS
#endif
// Whole numbers below 2^22 plus this are the bits of a float with the same
// distance from MAGIC_F: an addition turns them back at full rate.
#define MAGIC 0x4b400000
#define MAGIC_F 12582912.0f

#ifdef NVIDIA
#define MMA_LOCAL
#define MMA32(c, a, b0, b1)                                                                                                             \
  __asm__("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"                    \
          : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])                                                                              \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(MAGIC))
#define MMA16(c, a0, a1, b0)                                                                                                            \
  __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"                                 \
          : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])                                                                              \
          : "r"(a0), "r"(a1), "r"(b0), "r"(MAGIC))
#else
// The same through local memory, so that everything around it can be tested
// where there are no such units.
#define MMA_LOCAL __local int mma_a[8 * 32 * 4], mma_b[8 * 32 * 2];
FN void mma_emulated(__local int *ma, __local int *mb, int *c, int words, const int *a, int b0, int b1) {
  const int i = get_local_id(0), lane = i % 32, wave = i / 32 * 32;
  for (int k = 0; k < 4; k++) ma[i * 4 + k] = a[k];
  mb[i * 2] = b0;
  mb[i * 2 + 1] = b1;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = 0; r < 4; r++) {
    const int row = lane / 4, col = lane % 4 * 2 + r % 2;
    int s = MAGIC;
    for (int w = 0; w < 4; w++) {
      const int la = (wave + row * 4 + w) * 4, lb = (wave + col * 4 + w) * 2;
      s = dot4(ma[la + (r < 2 ? 0 : 1)], mb[lb], s);
      if (words == 8) s = dot4(ma[la + (r < 2 ? 2 : 3)], mb[lb + 1], s);
    }
    c[r] = s;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#define MMA32(c, a, b0, b1) mma_emulated(mma_a, mma_b, c, 8, a, b0, b1)
#define MMA16(c, a0, a1, b0)                                                                                                            \
  do {                                                                                                                                  \
    const int half_a[4] = {a0, a1, 0, 0};                                                                                               \
    mma_emulated(mma_a, mma_b, c, 4, half_a, b0, 0);                                                                                    \
  } while (0)
#endif
#endif

__kernel WAVED __attribute__((reqd_work_group_size(256, 1, 1))) void $NAME(
    CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab, xvalues *restrict xq,
    CGLOBAL uint2 *restrict xm, int cols, CGLOBAL int *order, CGLOBAL int *start, int div, GLOBAL float *y, int ldy,
    CGLOBAL float *extra, int flags, float scale) {
  enum { TM = 16 * $MT * $WM, TN = 8 * $NT * $WN };
  MMA_LOCAL
  TABLE_BEGIN(8)
  __local uint lw[TM * LINE] __attribute__((aligned(16)));
  __local uint lx[TN * LINE] __attribute__((aligned(16)));
  __local float ls[KU * SCALES * TM], ld[KU * TN];
#if MOFFSETS > 0
  __local float lo[KU * MOFFSETS * TM], lsum[KU * MOFFSETS * TN];
#endif
  __local int xrow[TN], yrow[TN];
  const int at = get_local_id(0), lane = at % 32, wave = at / 32;
  const int row0 = get_group_id(0) * TM, col0 = get_group_id(1) * TN;
  int first = 0;
  BEGIN
  if (flags & MM_EXPERTS) {
    const int e = get_group_id(2);
    first = start[e];
    cols = start[e + 1] - first;
    w += stride * e;
    extra += (flags & MM_BIAS) ? (ulong)e * rows : 0;
  }
  if (col0 >= cols) return; // the whole work-group
  for (int i = at; i < TN; i += 256) {
    const int c = min(col0 + i, cols - 1);
    const int s = (flags & MM_EXPERTS) ? order[first + c] : c;
    xrow[i] = (flags & MM_EXPERTS) ? s / div : s;
    yrow[i] = s;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  // Each work-item brings one unit of weights and, while they last, one of
  // activations. TM * KU is 256.
  const int wline = at % TM, wku = at / TM, xline = at % TN, xku = at / TN;
  const int brings_x = at < TN * KU;
  const planes p = planes_at(w, units, (ulong)min(row0 + wline, rows - 1) * upr);
  const int xr = xrow[xline];
  raw nw;
  xunit nx;
  fetch(&nw, p, min(wku, upr - 1));
  if (brings_x) nx = x_at(xq, xm, upr, xr, min(xku, upr - 1));

  const int wm = wave % $WM * ($MT * 16), wn = wave / $WM * ($NT * 8);
  const int lr = lane / 4, lc = lane % 4;
  float acc[$MT][$NT][4];
#pragma unroll
  for (int i = 0; i < $MT; i++)
#pragma unroll
    for (int j = 0; j < $NT; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) acc[i][j][k] = 0;

  for (int base = 0; base < upr; base += KU) {
    {
      const float on = base + wku < upr ? 1.0f : 0.0f;
      unit t;
      unpack(&t, &nw, min(base + wku, upr - 1), tab);
#ifdef BIAS
#pragma unroll
      for (int k = 0; k < 8; k++) t.q[k] = less(t.q[k], BIAS);
#endif
      __local uint *l = lw + wline * LINE + wku * 8;
      vstore4((uint4)(t.q[0], t.q[1], t.q[2], t.q[3]), 0, l);
      vstore4((uint4)(t.q[4], t.q[5], t.q[6], t.q[7]), 1, l);
      ls[wku * SCALES * TM + wline] = t.s0 * on;
#if SCALES == 2
      ls[(wku * SCALES + 1) * TM + wline] = t.s1 * on;
#endif
#if MOFFSETS > 0
      lo[wku * MOFFSETS * TM + wline] = t.m0 * on;
#endif
#if MOFFSETS == 2
      lo[(wku * MOFFSETS + 1) * TM + wline] = t.m1 * on;
#endif
    }
    if (brings_x) {
      __local uint *l = lx + xline * LINE + xku * 8;
      vstore4(nx.a, 0, l);
      vstore4(nx.b, 1, l);
      const float d = as_float(nx.m.x);
      ld[xku * TN + xline] = d;
#if MOFFSETS == 1
      lsum[xku * TN + xline] = d * (float)((short)nx.m.y + (short)(nx.m.y >> 16));
#elif MOFFSETS == 2
      lsum[xku * 2 * TN + xline] = d * (float)(short)nx.m.y;
      lsum[(xku * 2 + 1) * TN + xline] = d * (float)(short)(nx.m.y >> 16);
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (base + KU < upr) {
      fetch(&nw, p, min(base + KU + wku, upr - 1));
      if (brings_x) nx = x_at(xq, xm, upr, xr, min(base + KU + xku, upr - 1));
    }
#pragma unroll
    for (int b = 0; b < KU; b++) {
      int b0[$NT], b1[$NT];
      float xd[$NT][2];
#if MOFFSETS > 0
      float xs[$NT][2];
#endif
#if MOFFSETS == 2
      float xt[$NT][2];
#endif
#pragma unroll
      for (int j = 0; j < $NT; j++) {
        const int c = wn + j * 8;
        b0[j] = lx[(c + lr) * LINE + b * 8 + lc];
        b1[j] = lx[(c + lr) * LINE + b * 8 + 4 + lc];
        xd[j][0] = ld[b * TN + c + 2 * lc];
        xd[j][1] = ld[b * TN + c + 2 * lc + 1];
#if MOFFSETS > 0
        xs[j][0] = lsum[b * MOFFSETS * TN + c + 2 * lc];
        xs[j][1] = lsum[b * MOFFSETS * TN + c + 2 * lc + 1];
#endif
#if MOFFSETS == 2
        xt[j][0] = lsum[(b * 2 + 1) * TN + c + 2 * lc];
        xt[j][1] = lsum[(b * 2 + 1) * TN + c + 2 * lc + 1];
#endif
      }
#pragma unroll
      for (int i = 0; i < $MT; i++) {
        const int r = wm + i * 16 + lr;
        const int a[4] = {lw[r * LINE + b * 8 + lc], lw[(r + 8) * LINE + b * 8 + lc], lw[r * LINE + b * 8 + 4 + lc],
                          lw[(r + 8) * LINE + b * 8 + 4 + lc]};
        const float s0 = ls[b * SCALES * TM + r], s1 = ls[b * SCALES * TM + r + 8];
#if SCALES == 2
        const float t0 = ls[(b * SCALES + 1) * TM + r], t1 = ls[(b * SCALES + 1) * TM + r + 8];
#endif
#if MOFFSETS > 0
        const float o0 = lo[b * MOFFSETS * TM + r], o1 = lo[b * MOFFSETS * TM + r + 8];
#endif
#if MOFFSETS == 2
        const float u0 = lo[(b * 2 + 1) * TM + r], u1 = lo[(b * 2 + 1) * TM + r + 8];
#endif
#pragma unroll
        for (int j = 0; j < $NT; j++) {
          int c[4];
#if SCALES == 1
          MMA32(c, a, b0[j], b1[j]);
          acc[i][j][0] += s0 * (xd[j][0] * (as_float(c[0]) - MAGIC_F));
          acc[i][j][1] += s0 * (xd[j][1] * (as_float(c[1]) - MAGIC_F));
          acc[i][j][2] += s1 * (xd[j][0] * (as_float(c[2]) - MAGIC_F));
          acc[i][j][3] += s1 * (xd[j][1] * (as_float(c[3]) - MAGIC_F));
#else
          int e[4];
          MMA16(c, a[0], a[1], b0[j]);
          MMA16(e, a[2], a[3], b1[j]);
          acc[i][j][0] += xd[j][0] * (s0 * (as_float(c[0]) - MAGIC_F) + t0 * (as_float(e[0]) - MAGIC_F));
          acc[i][j][1] += xd[j][1] * (s0 * (as_float(c[1]) - MAGIC_F) + t0 * (as_float(e[1]) - MAGIC_F));
          acc[i][j][2] += xd[j][0] * (s1 * (as_float(c[2]) - MAGIC_F) + t1 * (as_float(e[2]) - MAGIC_F));
          acc[i][j][3] += xd[j][1] * (s1 * (as_float(c[3]) - MAGIC_F) + t1 * (as_float(e[3]) - MAGIC_F));
#endif
#if MOFFSETS > 0
          acc[i][j][0] += o0 * xs[j][0];
          acc[i][j][1] += o0 * xs[j][1];
          acc[i][j][2] += o1 * xs[j][0];
          acc[i][j][3] += o1 * xs[j][1];
#endif
#if MOFFSETS == 2
          acc[i][j][0] += u0 * xt[j][0];
          acc[i][j][1] += u0 * xt[j][1];
          acc[i][j][2] += u1 * xt[j][0];
          acc[i][j][3] += u1 * xt[j][1];
#endif
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int j = 0; j < $NT; j++)
#pragma unroll
    for (int k = 0; k < 2; k++) {
      const int c = wn + j * 8 + 2 * lc + k;
      if (col0 + c >= cols) continue;
      GLOBAL float *to = y + (ulong)yrow[c] * ldy;
#pragma unroll
      for (int i = 0; i < $MT; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int row = row0 + wm + i * 16 + lr + 8 * h;
          if (row >= rows) continue;
          float v = acc[i][j][2 * h + k];
          if (flags & MM_BIAS) v += extra[row];
          v *= scale;
          if (flags & MM_ADD) v += to[row];
          to[row] = v;
        }
    }
}
