// join: the parts of attend to one row of heads*vd values a token, with a sink
// (a score without a value, one a head) and an output gate, rounded to 8 bits.
// Dimension 1 is the token; a work-item makes a value.

#define JOIN_SINKS 1
#define JOIN_GATE 2 // gate: ldg floats a token, head h's gate at h*gstep + goff
#define JOIN_FLOATS 4
#define JOIN_ROUND 8

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void join(CGLOBAL float *parts, int splits, int tokens, int heads, int vd,
                                                                    CGLOBAL float *sinks, CGLOBAL float *gate, int ldg, int gstep, int goff,
                                                                    int flags, GLOBAL float *y, GLOBAL uint4 *xq, GLOBAL uint2 *xm) {
  __local float mem[128];
  const int n = heads * vd, i = get_global_id(0), at = get_local_id(0);
  const ulong t = get_group_id(1);
  if (i < n) {
    const int h = i / vd, d = i % vd;
    CGLOBAL float *p = parts + (t * heads + h) * (vd + 2);
    const ulong step = (ulong)tokens * heads * (vd + 2);
    float top = -INFINITY;
    if (flags & JOIN_SINKS) top = sinks[h];
    for (int s = 0; s < splits; s++) top = fmax(top, p[s * step + vd + 1]);
    float sum = 0, v = 0;
    if (flags & JOIN_SINKS) sum = exp(sinks[h] - top);
    for (int s = 0; s < splits; s++) {
      const float m = p[s * step + vd + 1];
      if (m == -INFINITY) continue;
      const float f = exp(m - top);
      sum += f * p[s * step + vd];
      v += f * p[s * step + d];
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
    for (int j = 0; j < 8; j++) v[j] = vload4(j, mem + 32 * at);
    quantize_unit(v, xq + 2 * t * (n / 32), xm + t * (n / 32), n / 32, u);
  }
}
