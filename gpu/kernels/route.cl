// Which experts a token gets (models.md 1.4): one wave a token.
//
// kind 1 softmax, 2 sigmoid, 3 softmax over the picked logits, 4 square root of
// softplus. bias counts for the choice only. With groups > 1 a group's score is
// the sum of its two best, and the kept best groups stay. Equal scores: the lower number wins.

#define ROUTE_BIAS 1
#define ROUTE_NORM 2
#define ROUTE_MAX 1024 // experts

// The place of the largest v of a wave's lanes, `at` being a lane's place or n when
// it has none; of equal ones the first. Nothing but NaN: any place inside.
#if defined(NVIDIA) && NVIDIA >= 80 // both in one instruction each
#define PLACE_OF_BEST(v, at, n) place_of_best(v, at, n)
FN int place_of_best(float v, int at, int n) {
  const uint bits = as_uint(v), key = bits >> 31 ? ~bits : bits | 0x80000000; // in the order of floats
  uint top, place;
  __asm__ volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(top) : "r"(key));
  const uint own = key == top && at < n ? (uint)at : 0xffffffff;
  __asm__ volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(place) : "r"(own));
  return place == 0xffffffff ? 0 : (int)place;
}
#else
#if !defined(NVIDIA) && !defined(INTEL)
#define PLACE_OF_BEST(v, at, n) place_of_best(v, at, n, lane_mem)
FN int place_of_best(float v, int at, int n, __local float *lane_mem) {
#else
#define PLACE_OF_BEST(v, at, n) place_of_best(v, at, n)
FN int place_of_best(float v, int at, int n) {
#endif
  const float top = lane_max(v);
  const float place = lane_max(v == top && at < n ? -(float)at : -INFINITY);
  return place == -INFINITY ? 0 : (int)-place;
}
#endif

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
      float v = -INFINITY;
      int at = groups;
      for (int i = lane; i < groups; i += LANES)
        if (group[i] > v) {
          v = group[i];
          at = i;
        }
      const int g = PLACE_OF_BEST(v, at, groups);
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
  // a lane keeps the best of its own experts, and looks again when it was taken
  float total = 0, best = 0, mine;
  int at;
#define OWN_BEST                                       \
  mine = -INFINITY;                                    \
  at = experts;                                        \
  for (int i = lane; i < experts; i += LANES)          \
    if (score[i] > mine) {                             \
      mine = score[i];                                 \
      at = i;                                          \
    }
  OWN_BEST
  for (int k = 0; k < used; k++) {
    const int e = PLACE_OF_BEST(mine, at, experts);
    float w = prob[e];
    if (kind == 3) {
      if (k == 0) best = w;
      w = exp(w - best);
    }
    total += w;
    if (lane == 0) {
      ids[t * used + k] = e;
      picked[k] = w;
    }
    if (e % LANES == lane) {
      score[e] = -INFINITY;
      OWN_BEST
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float f = 1;
  if (kind == 3) f = 1.0f / total;
  if (flags & ROUTE_NORM) f = 1.0f / fmax(kind == 3 ? 1.0f : total, 0x1p-14f) * (kind == 3 ? f : 1.0f);
  f *= scale;
  for (int k = lane; k < used; k += LANES) weight[t * used + k] = picked[k] * f;
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
