// turn: head norms and rotation for all tokens of a pass; queries in place,
// keys and values into their caches. Dimension 1 is the token; a wave takes a
// head. Queries of a gated head are qstep = 2*kd apart.
KERNEL(4) void turn(GLOBAL float *q, int ldq, int qstep, CGLOBAL float *k, int ldk, CGLOBAL float *v, int ldv, CGLOBAL float *qw,
                    CGLOBAL float *kw, CGLOBAL float *cs, int rot, CGLOBAL int *st, int heads, int kvheads, int kd, int vd,
                    int ctx, float eps, int flags, GLOBAL uchar *kcache, GLOBAL uchar *vcache) {
  BEGIN
  LANE_LOCAL
  __local float mem[4 * HEAD_MAX];
  const int lane = get_local_id(0) % LANES, wave = get_local_id(0) / LANES;
  __local float *h = mem + wave * HEAD_MAX;
  const ulong t = get_group_id(1);
  const int at = get_group_id(0) * 4 + wave;
  const int isq = at < heads, isk = !isq && at < heads + kvheads, isv = !isq && !isk && at < heads + 2 * kvheads;
  const int g = isq ? at : (isk ? at - heads : at - heads - kvheads);
  const int n = isv ? vd : kd;
  CGLOBAL float *src = isq ? q + t * ldq + g * qstep : (isk ? k + t * ldk + g * kd : v + t * ldv + g * vd);
  if (isq || isk || isv)
    for (int i = lane; i < n; i += LANES) h[i] = src[i];
  int normed = 0;
  if (isq) normed = (flags & HEAD_QNORM) ? 1 : 0;
  if (isk) normed = (flags & HEAD_KNORM) ? 1 : 0;
  if (isv) normed = (flags & HEAD_VNORM) ? 2 : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  HEAD_READY(h, n, isq ? qw : kw, normed, eps, cs + t * rot, isq || isk ? rot : 0, flags & HEAD_NEOX);
  const ulong row = (ulong)g * ctx + st[0] + t;
  if (isq)
    for (int i = lane; i < n; i += LANES) q[t * ldq + g * qstep + i] = h[i];
  else if (isk)
    keep_row(kcache, row, (ulong)kvheads * ctx, h, n);
  else if (isv)
    keep_row(vcache, row, (ulong)kvheads * ctx, h, n);
}
