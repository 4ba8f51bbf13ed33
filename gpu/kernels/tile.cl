// Matrix times many columns on matrix units over halves, with float sums: the
// weights of a tile are unpacked once into local memory, scales and offsets
// applied, so that nothing is left to do for each block of 32 but the products.
// Activations come as halves (halve.cl). Arguments and flags as matmul.cl; with
// MM_EXPERTS dimension 1 counts the tiles of all experts, one expert's after the
// other's, and there may be more work-groups than tiles.
//
// A work-group of $WM x $WN waves makes 16*$MT*$WM rows by 8*$NT*$WN columns, 32
// values of a row at a time. A row of a tile is four pieces of 16 bytes, moved
// around by SWIZZLE, so that eight rows of a fragment lie in different banks.
//
// NVIDIA: lane l of a wave holds, of 16 x 8 results, rows l/4 and l/4+8 and
// columns 2*(l%4) and 2*(l%4)+1 (PTX ISA, mma.m16n8k16). Elsewhere the same with
// ordinary arithmetic, so that all around the units can be tested.
//
// DPAS, Intel's units: a wave is a subgroup of 8 or 16, and $MT times as many rows
// by 8*$NT columns are its part. One product takes 8 columns, of which a lane gives
// a pair of values (subgroups of 8) or one value (16), and a row of weights of
// each lane, eight pairs of values; a lane gets its row of eight columns
// (cl_intel_subgroup_matrix_multiply_accumulate). With DPAS_EMULATED the product goes
// through local memory, in subgroups of 8.

#define MM_BIAS 1
#define MM_ADD 2
#define MM_EXPERTS 8

#ifndef TILE_ONCE
#define TILE_ONCE
#define SWIZZLE(row, piece) ((row) * 4 + ((piece) ^ ((row) >> 1 & 3)))

// Weights are multiplied with this on their way to halves, whose normal numbers
// end at 6e-5; NVFP4 has large numbers, as its tensors have a scale beside.
#if FORMAT == 40 || FORMAT == 1
#define LARGER 1.0f
#else
#define LARGER 64.0f
#endif

#ifdef DPAS
#ifdef INTEL
#define SG LANES
#define DPAS_LOCAL
#if INTEL == 8
float8 __attribute__((overloadable)) intel_sub_group_f16_f16_matrix_mad_k16(int8 a, int8 b, float8 acc);
#else
float8 __attribute__((overloadable)) intel_sub_group_f16_f16_matrix_mad_k16(short8 a, int8 b, float8 acc);
#endif
#define DPAS_MAD(a, b, c) intel_sub_group_f16_f16_matrix_mad_k16(a, b, c)
#else
#define SG 8
#define DPAS_LOCAL __local int8 dpas_a[256];
FN float8 dpas_mad(__local int8 *mem, int8 a, int8 b, float8 c) {
  const int at = get_local_id(0), sub = at / SG * SG;
  float f[8];
  vstore8(c, 0, f);
  mem[at] = a;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int m = 0; m < 8; m++)
    for (int k = 0; k < 8; k++) {
      const uint x = ((__local uint *)(mem + sub + k))[m];
#ifdef DPAS_SWAPPED // for a test: units that differ from what the kernel believes
      const uint y = rotate(((const uint *)&b)[k], 16u);
#else
      const uint y = ((const uint *)&b)[k];
#endif
      f[m] += low_half(x) * low_half(y) + high_half(x) * high_half(y);
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  return vload8(0, f);
}
#define DPAS_MAD(a, b, c) dpas_mad(dpas_a, a, b, c)
#endif
#define ROWS_EACH SG
#if SG == 8
typedef int8 columns8;
typedef uint column_part;
#else
typedef short8 columns8;
typedef ushort column_part;
#endif
// What a lane gives of eight columns from `col` on, half k of a step.
FN columns8 columns_at(__local const uint4 *l, int col, int k) {
  const int lane = get_local_id(0) % SG, each = 16 / sizeof(column_part);
  const int piece = 2 * k + lane / each, part = lane % each;
  column_part v[8];
#pragma unroll
  for (int m = 0; m < 8; m++) v[m] = ((__local const column_part *)l)[SWIZZLE(col + m, piece) * each + part];
  return (columns8)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}
#else
#define SG 32
#define ROWS_EACH 16
#endif

// Unit u of a row to four pieces of halves.
#ifdef BLOCK_BYTES
#define TILE_RAW 1
FN void tile_fetch(raw *o, planes p, int u) { fetch(o, p, u); }
typedef struct {
  unit t;
  uint s[2], m[2];
} tile_unit;
// What all pieces of a unit need, and then piece c.
FN void tile_begin(tile_unit *o, const raw *r, int u, TAB *tab) {
  unpack(&o->t, r, u, tab);
  o->s[0] = two_halves(o->t.s0 * LARGER, o->t.s0 * LARGER);
  o->s[1] = SCALES == 2 ? two_halves(o->t.s1 * LARGER, o->t.s1 * LARGER) : o->s[0];
#if OFFSETS > 0 && !defined(BIAS)
  o->m[0] = two_halves(o->t.m0 * LARGER, o->t.m0 * LARGER);
  o->m[1] = OFFSETS == 2 ? two_halves(o->t.m1 * LARGER, o->t.m1 * LARGER) : o->m[0];
#endif
}
FN uint4 tile_piece(const tile_unit *o, int c) {
#if OFFSETS == 0
  const uint zero = 0x64806480; // 1024 + 128
#elif defined(BIAS)
  const uint zero = 0x64006400 + BIAS * 0x10001;
#else
  const uint zero = 0x64006400;
#endif
  uint h[4];
#pragma unroll
  for (int k = 0; k < 2; k++) {
    uint q = o->t.q[2 * c + k];
#if OFFSETS == 0
    q ^= 0x80808080;
#endif
    spread_bytes(q, &h[2 * k], &h[2 * k + 1]);
  }
#pragma unroll
  for (int k = 0; k < 4; k++) {
#if OFFSETS == 0 || defined(BIAS)
    h[k] = mul_halves(sub_halves(h[k], zero), o->s[c / 2]);
#else
    h[k] = fma_halves(sub_halves(h[k], zero), o->s[c / 2], o->m[c / 2]);
#endif
  }
  return (uint4)(h[0], h[1], h[2], h[3]);
}
#else
// float weights come in units of 8
#define TILE_RAW 4
FN void tile_fetch(raw *o, planes p, int u) {
#pragma unroll
  for (int k = 0; k < 4; k++) fetch(o + k, p, 4 * u + k);
}
#if FORMAT != 1
FN uint halves_of(uint w) { return two_halves(wide(w & 0xffff) * LARGER, wide(w >> 16) * LARGER); }
#endif
typedef struct {
  uint4 a[4];
} tile_unit;
FN void tile_begin(tile_unit *o, const raw *r, int u, TAB *tab) {
#pragma unroll
  for (int k = 0; k < 4; k++) o->a[k] = r[k].a;
}
FN uint4 tile_piece(const tile_unit *o, int c) {
#if FORMAT == 1
  return o->a[c];
#else
  const uint4 v = o->a[c];
  return (uint4)(halves_of(v.x), halves_of(v.y), halves_of(v.z), halves_of(v.w));
#endif
}
#endif
FN void tile_unpack(__local uint4 *l, int row, const raw *r, int u, TAB *tab) {
  tile_unit t;
  tile_begin(&t, r, u, tab);
#pragma unroll
  for (int c = 0; c < 4; c++) l[SWIZZLE(row, c)] = tile_piece(&t, c);
}

// The expert that tile `tile` belongs to and which of its tiles it is, for tiles
// of tn columns; -1 past the last. By a work-group of n work-items.
FN int2 expert_of(__local int *sums, __local int *found, CGLOBAL int *start, int experts, int tile, int tn, int n) {
  const int at = get_local_id(0), per = (experts + n - 1) / n, from = min(at * per, experts), to = min(from + per, experts);
  int mine = 0;
  for (int e = from; e < to; e++) mine += (start[e + 1] - start[e] + tn - 1) / tn;
  if (at == 0) found[0] = -1;
  int upto = mine;
  sums[at] = upto;
  for (int d = 1; d < n; d *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int before = at >= d ? sums[at - d] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    upto += before;
    sums[at] = upto;
  }
  int left = tile - (upto - mine);
  if (left >= 0 && left < mine) {
    int e = from;
    for (; e < to; e++) {
      const int t = (start[e + 1] - start[e] + tn - 1) / tn;
      if (left < t) break;
      left -= t;
    }
    found[0] = e;
    found[1] = left;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return (int2)(found[0], found[1]);
}
#endif

__kernel WAVED __attribute__((reqd_work_group_size(SG * $WM * $WN, 1, 1))) void $NAME(
    CGLOBAL uchar *restrict w, ulong stride, ulong units, int upr, int rows, CGLOBAL uint *restrict gtab, CGLOBAL uint4 *xh,
    CGLOBAL float *xs, int cols, CGLOBAL int *order, CGLOBAL int *start, int div, GLOBAL float *y, int ldy,
    CGLOBAL float *extra, int flags, float scale, int experts) {
  enum { TM = ROWS_EACH * $MT * $WM, TN = 8 * $NT * $WN, ITEMS = SG * $WM * $WN, STAGES = $ST, AHEAD = $AH, RUNS = (TM + ITEMS - 1) / ITEMS };
  __local uint4 la[2 * TM * 4] __attribute__((aligned(128)));
  __local uint4 lb[STAGES * TN * 4] __attribute__((aligned(128)));
  __local float xscale[TN];
  __local int xrow[TN], yrow[TN], found[2];
#ifdef DPAS
  DPAS_LOCAL
#endif
  const int at = get_local_id(0), lane = at % SG, wave = at / SG;
  const int row0 = get_group_id(0) * TM;
  int col0 = get_group_id(1) * TN, first = 0;
  BEGIN
  TABLE_BEGIN(ITEMS / LANES)
  if (flags & MM_EXPERTS) {
    const int2 e = expert_of((__local int *)la, found, start, experts, get_group_id(1), TN, ITEMS);
    if (e.x < 0) return; // the whole work-group
    first = start[e.x];
    cols = start[e.x + 1] - first;
    col0 = e.y * TN;
    w += stride * e.x;
    extra += (flags & MM_BIAS) ? (ulong)e.x * rows : 0;
  }
  for (int i = at; i < TN; i += ITEMS) {
    const int c = min(col0 + i, cols - 1);
    const int s = (flags & MM_EXPERTS) ? order[first + c] : c;
    const int x = (flags & MM_EXPERTS) ? s / div : s;
    xrow[i] = x;
    yrow[i] = s;
    xscale[i] = xs[x] * (1.0f / LARGER);
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  const int steps = upr / (32 / UNIT);
  // pieces of activations that this work-item brings: columns at/4, at/4 + ITEMS/4, ...
  enum { PIECES = (TN * 4 + ITEMS - 1) / ITEMS };
  CGLOBAL uint4 *from[PIECES];
#pragma unroll
  for (int i = 0; i < PIECES; i++) from[i] = xh + (ulong)xrow[(at / 4 + i * (ITEMS / 4)) % TN] * (steps * 4) + at % 4;
  __local uint4 *into = lb + SWIZZLE(at / 4, at % 4); // ITEMS/4 is a multiple of 8
#define BRING_X(step, stage)                                                                                                 \
  do {                                                                                                                  \
    _Pragma("unroll") for (int i = 0; i < PIECES; i++) if (PIECES * ITEMS == TN * 4 || at + i * ITEMS < TN * 4)           \
        BRING(into + (stage) * (TN * 4) + i * ITEMS, from[i] + (step) * 4);                                       \
  } while (0)

  raw nw[AHEAD][RUNS * TILE_RAW]; // weights of unit u + 1 lie in place u % AHEAD
  planes p[RUNS];
#pragma unroll
  for (int i = 0; i < RUNS; i++) p[i] = planes_at(w, units, (ulong)min(row0 + at + i * ITEMS, rows - 1) * upr);
#define FOR_RUNS _Pragma("unroll") for (int i = 0; i < RUNS; i++) if (TM % ITEMS == 0 || at + i * ITEMS < TM)
  FOR_RUNS tile_fetch(nw[0] + i * TILE_RAW, p[i], 0);
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    BRING_X(min(s, steps - 1), s);
    BROUGHT;
  }
  FOR_RUNS tile_unpack(la, at + i * ITEMS, nw[0] + i * TILE_RAW, 0, tab);
#pragma unroll
  for (int ahead = 0; ahead < AHEAD; ahead++) {
    FOR_RUNS tile_fetch(nw[ahead] + i * TILE_RAW, p[i], min(ahead + 1, steps - 1));
  }

  const int wm = wave % $WM * ($MT * ROWS_EACH), wn = wave / $WM * ($NT * 8);
#ifdef DPAS
  float8 acc[$MT][$NT];
#pragma unroll
  for (int i = 0; i < $MT; i++)
#pragma unroll
    for (int j = 0; j < $NT; j++) acc[i][j] = 0;
#else
  const int lr = lane / 4, lc = lane % 4;
  float acc[$MT][$NT][4];
#pragma unroll
  for (int i = 0; i < $MT; i++)
#pragma unroll
    for (int j = 0; j < $NT; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) acc[i][j][k] = 0;
#endif
#ifdef NVIDIA
  // where this lane's rows of four 8 x 8 matrices lie, for each half of a step
  const int ra = lane % 16, rb = lane % 8 + lane / 16 * 8;
  const uint a0 = SHARED(la) + 16 * SWIZZLE(wm + ra, lane / 16), a1 = SHARED(la) + 16 * SWIZZLE(wm + ra, 2 + lane / 16);
  const uint b0 = SHARED(lb) + 16 * SWIZZLE(wn + rb, lane / 8 % 2), b1 = SHARED(lb) + 16 * SWIZZLE(wn + rb, 2 + lane / 8 % 2);
#endif

  // Steps past the last are brought and unpacked as the last once more, so that
  // the turn has no branch and the arithmetic of unpacking goes on between the
  // products, whose units take several cycles each.
  for (int s0 = 0; s0 < steps; s0 += AHEAD)
#pragma unroll
    for (int ahead = 0; ahead < AHEAD; ahead++) {
      const int s = s0 + ahead;
      if (AHEAD == 1 || s < steps) { // the same for all
        ARRIVED($SW);
        barrier(CLK_LOCAL_MEM_FENCE);
        const int next = min(s + 1, steps - 1);
        __local uint4 *put = la + (s + 1) % 2 * (TM * 4);
#ifdef NVIDIA
        const uint oa = s % 2 * (TM * 64), ob = s % STAGES * (TN * 64);
#pragma unroll
        for (int k = 0; k < 2; k++) {
          uint a[$MT][4], b[$NT / 2][4];
#pragma unroll
          for (int j = 0; j < $NT / 2; j++) matrix4(b[j], (k ? b1 : b0) + ob + j * 1024);
#pragma unroll
          for (int i = 0; i < $MT; i++) matrix4(a[i], (k ? a1 : a0) + oa + i * 1024);
          if (k == 0) {
            BRING_X(min(s + STAGES - 1, steps - 1), (s + STAGES - 1) % STAGES);
            BROUGHT;
            tile_unit t[RUNS];
            FOR_RUNS tile_begin(&t[i], nw[ahead] + i * TILE_RAW, next, tab);
#pragma unroll
            for (int m = 0; m < $MT; m++) {
#pragma unroll
              for (int j = 0; j < $NT; j++) multiply(acc[m][j], a[m], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
#pragma unroll
              for (int c = m * 4 / $MT; c < (m + 1) * 4 / $MT; c++) {
                FOR_RUNS put[SWIZZLE(at + i * ITEMS, c)] = tile_piece(&t[i], c);
              }
            }
            FOR_RUNS tile_fetch(nw[ahead] + i * TILE_RAW, p[i], min(s + 1 + AHEAD, steps - 1));
          } else {
#pragma unroll
            for (int i = 0; i < $MT; i++)
#pragma unroll
              for (int j = 0; j < $NT; j++) multiply(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
          }
        }
#else
        BRING_X(min(s + STAGES - 1, steps - 1), (s + STAGES - 1) % STAGES);
        FOR_RUNS tile_unpack(put, at + i * ITEMS, nw[ahead] + i * TILE_RAW, next, tab);
        FOR_RUNS tile_fetch(nw[ahead] + i * TILE_RAW, p[i], min(s + 1 + AHEAD, steps - 1));
#ifdef DPAS
        __local const uint4 *ta = la + s % 2 * (TM * 4), *tb = lb + s % STAGES * (TN * 4);
#pragma unroll
        for (int k = 0; k < 2; k++) {
          int8 b[$MT];
#pragma unroll
          for (int i = 0; i < $MT; i++) {
            const int row = wm + i * SG + lane;
            b[i] = as_int8((uint8)(ta[SWIZZLE(row, 2 * k)], ta[SWIZZLE(row, 2 * k + 1)]));
          }
#pragma unroll
          for (int j = 0; j < $NT; j++) {
            const columns8 a = columns_at(tb, wn + j * 8, k);
#pragma unroll
            for (int i = 0; i < $MT; i++) acc[i][j] = DPAS_MAD(a, b[i], acc[i][j]);
          }
        }
#else
        __local const half *ta = (__local const half *)(la + s % 2 * (TM * 4)), *tb = (__local const half *)(lb + s % STAGES * (TN * 4));
        for (int k = 0; k < 32; k++)
          for (int i = 0; i < $MT; i++)
            for (int j = 0; j < $NT; j++)
              for (int r = 0; r < 4; r++) {
                const int row = wm + i * 16 + lr + r / 2 * 8, col = wn + j * 8 + 2 * lc + r % 2;
                acc[i][j][r] += vload_half(SWIZZLE(row, k / 8) * 8 + k % 8, ta) * vload_half(SWIZZLE(col, k / 8) * 8 + k % 8, tb);
              }
#endif
#endif
      }
    }
#undef BRING_X
#undef FOR_RUNS
  const int add = flags & MM_ADD;
#ifdef DPAS
  const int row = row0 + wm + lane;
  float bias[$MT];
#pragma unroll
  for (int i = 0; i < $MT; i++) bias[i] = (flags & MM_BIAS) && row + i * SG < rows ? extra[row + i * SG] * scale : 0.0f;
#pragma unroll
  for (int j = 0; j < $NT; j++)
#pragma unroll
    for (int m = 0; m < 8; m++) {
      const int c = wn + j * 8 + m;
      if (col0 + c >= cols) continue;
      GLOBAL float *to = y + (ulong)yrow[c] * ldy + row;
      const float f = xscale[c] * scale;
#pragma unroll
      for (int i = 0; i < $MT; i++) {
        float v[8];
        vstore8(acc[i][j], 0, v);
        if (row + i * SG < rows) to[i * SG] = v[m] * f + bias[i] + (add ? to[i * SG] : 0.0f);
      }
    }
#else
  const int row = row0 + wm + lr;
  float bias[2 * $MT];
#pragma unroll
  for (int i = 0; i < 2 * $MT; i++) bias[i] = (flags & MM_BIAS) && row + i * 8 < rows ? extra[row + i * 8] * scale : 0.0f;
#pragma unroll
  for (int j = 0; j < $NT; j++)
#pragma unroll
    for (int k = 0; k < 2; k++) {
      const int c = wn + j * 8 + 2 * lc + k;
      if (col0 + c >= cols) continue;
      GLOBAL float *to = y + (ulong)yrow[c] * ldy + row;
      const float f = xscale[c] * scale;
#pragma unroll
      for (int i = 0; i < 2 * $MT; i++)
        if (row + i * 8 < rows) to[i * 8] = acc[i / 2][j][i % 2 * 2 + k] * f + bias[i] + (add ? to[i * 8] : 0.0f);
    }
#endif
}
