// join: the parts of attend to one row of heads*vd values a token, with a sink
// (a score without a value, one a head) and an output gate, rounded to 8 bits.
// Dimension 1 is the token; a work-item makes a value.

#define JOIN_SINKS 1
#define JOIN_GATE 2 // gate: ldg floats a token, head h's gate at h*gstep + goff
#define JOIN_FLOATS 4
#define JOIN_ROUND 8
#define JOIN_PARTS 64
#define JOIN_HEADS 17 // of 128 values in heads of 8

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void join(CGLOBAL float *parts, int splits, int tokens, int heads, int vd,
                                                                    CGLOBAL float *sinks, CGLOBAL float *gate, int ldg, int gstep, int goff,
                                                                    int flags, GLOBAL float *y, GLOBAL uint4 *xq, GLOBAL uint2 *xm) {
  BEGIN
  __local float mem[128];
  __local float top_of_head[JOIN_HEADS * JOIN_PARTS], sum_of_head[JOIN_HEADS * JOIN_PARTS];
  const int n = heads * vd, i = get_global_id(0), at = get_local_id(0), h0 = get_group_id(0) * 128 / vd;
  const ulong t = get_group_id(1);
  const ulong step = (ulong)tokens * heads * (vd + 2);
  // largest scores and sums of the heads that this work-group has values of
  for (int k = at; k < JOIN_HEADS * splits; k += 128) {
    const int h = h0 + k / splits, s = k % splits;
    if (h >= heads || h * vd >= (int)(get_group_id(0) + 1) * 128) continue;
    CGLOBAL float *p = parts + s * step + (t * heads + h) * (vd + 2) + vd;
    sum_of_head[k] = p[0];
    top_of_head[k] = p[1];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n) {
    const int h = i / vd, d = i % vd;
    __local const float *m = top_of_head + (h - h0) * splits, *l = sum_of_head + (h - h0) * splits;
    float top = (flags & JOIN_SINKS) ? sinks[h] : -INFINITY;
    for (int s = 0; s < splits; s++) top = fmax(top, m[s]);
    float sum = (flags & JOIN_SINKS) ? exp(sinks[h] - top) : 0, v = 0;
    CGLOBAL float *p = parts + (t * heads + h) * (vd + 2) + d;
#pragma unroll 8
    for (int s = 0; s < splits; s++) {
      const float f = m[s] == -INFINITY ? 0.0f : exp(m[s] - top);
      sum += f * l[s];
      v += f * p[s * step];
    }
    v /= sum;
    if (flags & JOIN_GATE) v /= 1.0f + exp(-gate[t * ldg + h * gstep + goff + d]);
    mem[at] = v;
    if (flags & JOIN_FLOATS) y[t * n + i] = v;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int u = get_group_id(0) * 4 + at;
  if ((flags & JOIN_ROUND) && at < 4 && u < n / 32) {
    float4 v[8];
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = vload4(j, mem + 32 * at);
    quantize_unit(v, xq + 2 * t * (n / 32), xm + t * (n / 32), n / 32, u);
  }
}
