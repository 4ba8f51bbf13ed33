// Small things done to rows of floats.

// y[i] = scale * cap*tanh(x/cap) for the logits; cap 0: none.
__kernel void scale_rows(GLOBAL float *x, ulong n, float scale, float cap) {
  BEGIN
  for (ulong i = get_global_id(0); i < n; i += items_x()) {
    float v = x[i] * scale;
    if (cap != 0) v = cap * tanh(v / cap);
    x[i] = v;
  }
}

// x += scale * y
__kernel void add_rows(GLOBAL float *x, CGLOBAL float *y, ulong n, float scale) {
  BEGIN
  for (ulong i = get_global_id(0); i < n; i += items_x()) x[i] += scale * y[i];
}

// Rows idx[r] of x (n floats each) to row r of y. Dimension 1 is r.
__kernel void gather_rows(CGLOBAL float *x, CGLOBAL int *idx, int n, GLOBAL float *y) {
  BEGIN
  const ulong r = get_global_id(1);
  const ulong from = (ulong)idx[r] * n;
  for (int i = get_global_id(0); i < n; i += items_x()) y[r * n + i] = x[from + i];
}

// h = act(gate) * up for rows of n floats: floats and 8-bit copy. One work-item a unit of 32; dimension 1 is the row.
#define GLU_FLOATS 4
#define GLU_ROUND 8
__kernel void glu_rows(CGLOBAL float *gate, int ldg, CGLOBAL float *up, int ldu, int n, int act, int flags,
                       GLOBAL float *h, GLOBAL uint4 *hq, GLOBAL uint2 *hm) {
  BEGIN
  const int u = get_global_id(0);
  const ulong r = get_global_id(1);
  if (u >= n / 32) return;
  CGLOBAL float *g = gate + r * ldg + 32 * u, *p = up + r * ldu + 32 * u;
  float4 v[8];
#pragma unroll
  for (int j = 0; j < 8; j++) {
    const float4 a = vload4(j, g), b = vload4(j, p);
    v[j] = (float4)(activate(act, a.x, b.x), activate(act, a.y, b.y), activate(act, a.z, b.z), activate(act, a.w, b.w));
    if (flags & GLU_FLOATS) ((GLOBAL float4 *)(h + r * n))[8 * u + j] = v[j];
  }
  if (flags & GLU_ROUND) quantize_unit(v, hq + 2 * r * (n / 32), hm + r * (n / 32), n / 32, u);
}

// y *= sigmoid(gate), gate head h of a row at h*gstep. Dimension 1 is the row.
__kernel void gate_rows(GLOBAL float *y, int n, int hd, CGLOBAL float *gate, int ldg, int gstep) {
  BEGIN
  const int i = get_global_id(0);
  const ulong r = get_global_id(1);
  if (i < n) y[r * n + i] /= 1.0f + exp(-gate[r * ldg + i / hd * gstep + i % hd]);
}
