// Which experts a token gets (models.md 1.4): one wave a token.
//
// kind 1 softmax, 2 sigmoid, 3 softmax over the picked logits, 4 square root of
// softplus. bias counts for the choice only. With groups > 1 a group's score is
// the sum of its two best, and the kept best groups stay. Equal scores: the lower number wins.

#define ROUTE_BIAS 1
#define ROUTE_NORM 2
#define ROUTE_MAX 1024 // experts

// The place of the largest of s[0..n-1], by the wave.
#if !defined(NVIDIA) && !defined(INTEL)
#define LARGEST(s, n) largest(s, n, lane_mem)
FN int largest(__local const float *s, int n, __local float *lane_mem) {
#else
#define LARGEST(s, n) largest(s, n)
FN int largest(__local const float *s, int n) {
#endif
  const int lane = get_local_id(0) % LANES;
  float v = -INFINITY;
  int at = n;
  for (int i = lane; i < n; i += LANES)
    if (s[i] > v) {
      v = s[i];
      at = i;
    }
  const float top = lane_max(v);
  const float place = lane_max(v == top && at < n ? -(float)at : -INFINITY);
  return place == -INFINITY ? 0 : (int)-place; // nothing but NaN: any place inside
}

KERNEL(1) void route(CGLOBAL float *logits, int ld, int experts, int used, int kind, CGLOBAL float *bias, int groups, int kept,
                     float scale, int flags, GLOBAL int *ids, GLOBAL float *weight) {
  BEGIN
  LANE_LOCAL
  __local float prob[ROUTE_MAX], score[ROUTE_MAX], group[64], picked[64];
  const int lane = get_local_id(0);
  const ulong t = get_group_id(0);
  CGLOBAL float *l = logits + t * ld;
  float top = -INFINITY;
  for (int i = lane; i < experts; i += LANES) {
    prob[i] = l[i];
    top = fmax(top, l[i]);
  }
  top = lane_max(top);
  float sum = 0;
  if (kind == 1) {
    for (int i = lane; i < experts; i += LANES) {
      prob[i] = exp(prob[i] - top);
      sum += prob[i];
    }
  }
  sum = lane_sum(sum);
  for (int i = lane; i < experts; i += LANES) {
    float p = prob[i];
    if (kind == 1) p /= sum;
    if (kind == 2) p = 1.0f / (1.0f + exp(-p));
    if (kind == 4) p = sqrt(p > 20.0f ? p : log1p(exp(p)));
    prob[i] = p;
    score[i] = (flags & ROUTE_BIAS) ? p + bias[i] : p;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (groups > 1) {
    const int n = experts / groups;
    for (int g = lane; g < groups; g += LANES) {
      float a = -INFINITY, b = -INFINITY;
      for (int i = g * n; i < g * n + n; i++) {
        const float v = score[i];
        if (v > a) {
          b = a;
          a = v;
        } else if (v > b)
          b = v;
      }
      group[g] = n > 1 ? a + b : a;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < kept; k++) {
      const int g = LARGEST(group, groups);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (lane == 0) {
        group[g] = -INFINITY;
        picked[k] = (float)g;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = lane; i < experts; i += LANES) {
      int keep = 0;
      for (int k = 0; k < kept; k++) keep |= (int)picked[k] == i / n;
      if (!keep) score[i] = -INFINITY;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float total = 0, best = 0;
  for (int k = 0; k < used; k++) {
    const int e = LARGEST(score, experts);
    float w = prob[e];
    if (kind == 3) {
      if (k == 0) best = w;
      w = exp(w - best);
    }
    total += w;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
      score[e] = -INFINITY;
      ids[t * used + k] = e;
      weight[t * used + k] = w;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  float f = 1;
  if (kind == 3) f = 1.0f / total;
  if (flags & ROUTE_NORM) f = 1.0f / fmax(kind == 3 ? 1.0f : total, 0x1p-14f) * (kind == 3 ? f : 1.0f);
  f *= scale;
  for (int k = lane; k < used; k += LANES) weight[t * used + k] *= f;
}

// Slots (token*used + choice) sorted by expert: order, and start[0..experts]. In
// what order an expert's slots come is left open, as no result depends on it. One
// work-group.
#define SORT_ITEMS 256
#define SORT_EACH 8 // loads on their way
__kernel __attribute__((reqd_work_group_size(SORT_ITEMS, 1, 1))) void sort_slots(CGLOBAL int *ids, int slots, int experts, GLOBAL int *start,
                                                                                 GLOBAL int *order) {
  BEGIN
  __local int count[ROUTE_MAX + 1], sums[SORT_ITEMS];
  const int at = get_local_id(0);
  for (int e = at; e <= experts; e += SORT_ITEMS) count[e] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  int id[SORT_EACH];
  for (int base = 0; base < slots; base += SORT_ITEMS * SORT_EACH) {
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) id[k] = ids[min(base + k * SORT_ITEMS + at, slots - 1)];
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++)
      if (base + k * SORT_ITEMS + at < slots) atomic_inc(&count[id[k]]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // places where experts begin: each work-item adds up a run of them
  const int per = (experts + SORT_ITEMS - 1) / SORT_ITEMS, from = min(at * per, experts), to = min(from + per, experts);
  int mine = 0;
  for (int e = from; e < to; e++) mine += count[e];
  int upto = mine;
  sums[at] = upto;
  for (int d = 1; d < SORT_ITEMS; d *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int before = at >= d ? sums[at - d] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    upto += before;
    sums[at] = upto;
  }
  int next = upto - mine;
  for (int e = from; e < to; e++) {
    const int n = count[e];
    start[e] = next;
    count[e] = next;
    next += n;
  }
  if (at == 0) start[experts] = slots;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int base = 0; base < slots; base += SORT_ITEMS * SORT_EACH) {
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) id[k] = ids[min(base + k * SORT_ITEMS + at, slots - 1)];
#pragma unroll
    for (int k = 0; k < SORT_EACH; k++) {
      const int s = base + k * SORT_ITEMS + at;
      if (s < slots) order[atomic_inc(&count[id[k]])] = s;
    }
  }
}

// y[t] (+)= scale * sum_j weight[t,j] * s[t*used+j]: what experts gave, joined.
// Dimension 1 is the token.
__kernel void gather_slots(CGLOBAL float *s, CGLOBAL float *weight, int used, int n, float scale, int add, GLOBAL float *y) {
  BEGIN
  const int i = get_global_id(0);
  const ulong t = get_global_id(1);
  if (i >= n) return;
  float v = 0;
  for (int j = 0; j < used; j++) v += weight[t * used + j] * s[(t * used + j) * n + i];
  v *= scale;
  y[t * n + i] = add ? y[t * n + i] + v : v;
}
