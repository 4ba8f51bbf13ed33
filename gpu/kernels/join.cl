// join: the parts of attend to one row of heads*vd values a token, with a sink
// (a score without a value, one a head) and an output gate, rounded to 8 bits.
// Dimension 1 is the token; a work-group makes 32 values, JOIN_SLICES work-items
// for each of them with parts of their own, so that all is on its way at once.

#define JOIN_SINKS 1
#define JOIN_GATE 2 // gate: ldg floats a token, head h's gate at h*gstep + goff
#define JOIN_FLOATS 4
#define JOIN_ROUND 8
#define JOIN_PARTS 64
#define JOIN_ITEMS 256
#define JOIN_SLICES (JOIN_ITEMS / 32)
#define JOIN_EACH (JOIN_PARTS / JOIN_SLICES)
#define JOIN_HEADS 5 // of 32 values in heads of 8

KERNEL(JOIN_ITEMS / LANES) void join(CGLOBAL float *parts, int splits, int tokens, int heads, int vd, CGLOBAL float *sinks, CGLOBAL float *gate,
                                     int ldg, int gstep, int goff, int flags, GLOBAL float *y, GLOBAL uint *xq, GLOBAL uint2 *xm) {
  BEGIN
  LANE_LOCAL
  __local float top_of_head[JOIN_HEADS * JOIN_PARTS], sum_of_head[JOIN_HEADS * JOIN_PARTS];
  __local float values[JOIN_ITEMS], sums[JOIN_ITEMS], joined[32];
  const int at = get_local_id(0), slice = at / 32, block = get_group_id(0), n = heads * vd, i = block * 32 + at % 32, h0 = block * 32 / vd;
  const ulong t = get_group_id(1), step = (ulong)tokens * heads * (vd + 2);
  const int h = min(i, n - 1) / vd, d = min(i, n - 1) % vd;
  CGLOBAL float *p = parts + (t * heads + h) * (vd + 2) + d;
  float part[JOIN_EACH];
#pragma unroll
  for (int k = 0; k < JOIN_EACH; k++) part[k] = k * JOIN_SLICES + slice < splits ? p[(k * JOIN_SLICES + slice) * step] : 0;
  // largest scores and sums of the heads that this work-group has values of
  for (int k = at; k < JOIN_HEADS * splits; k += JOIN_ITEMS) {
    const int head = h0 + k / splits, s = k % splits;
    if (head >= heads || head * vd >= (block + 1) * 32) continue;
    CGLOBAL float *from = parts + s * step + (t * heads + head) * (vd + 2) + vd;
    sum_of_head[k] = from[0];
    top_of_head[k] = from[1];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __local const float *m = top_of_head + (h - h0) * splits, *l = sum_of_head + (h - h0) * splits;
  float top = (flags & JOIN_SINKS) ? sinks[h] : -INFINITY;
#pragma unroll 8
  for (int s = 0; s < splits; s++) top = fmax(top, m[s]);
  float v = 0, sum = 0;
#pragma unroll
  for (int k = 0; k < JOIN_EACH; k++) {
    const int s = k * JOIN_SLICES + slice;
    if (s < splits) {
      const float f = m[s] == -INFINITY ? 0.0f : exp(m[s] - top);
      sum += f * l[s];
      v += f * part[k];
    }
  }
  values[at] = v;
  sums[at] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at < 32) {
#pragma unroll
    for (int k = 1; k < JOIN_SLICES; k++) {
      v += values[k * 32 + at];
      sum += sums[k * 32 + at];
    }
    if (flags & JOIN_SINKS) sum += exp(sinks[h] - top);
    v /= sum;
    if (flags & JOIN_GATE) v /= 1.0f + exp(-gate[t * ldg + h * gstep + goff + d]);
    joined[at] = v;
    if ((flags & JOIN_FLOATS) && i < n) y[t * n + i] = v;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (flags & JOIN_ROUND) {
    const int upr = n / 32;
    round_neighbours(vload4(at % 8, joined), at < 8 && block < upr, upr, block, at % 8, xq + 8 * t * upr, xm + t * upr LANE_MEM);
  }
}
