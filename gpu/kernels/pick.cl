// The end of a step: the best of the logits, and sampling.

// Largest value of each piece of `piece` values of a row: (value, place) pairs.
// A NaN or an infinity anywhere makes place -1. Dimension 1 is the row.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void best_of(CGLOBAL float *x, int n, int piece, GLOBAL float *val, GLOBAL int *idx) {
  BEGIN
  __local float v[256];
  __local int p[256];
  const int at = get_local_id(0), from = get_group_id(0) * piece, to = min(from + piece, n);
  CGLOBAL float *r = x + (ulong)get_group_id(1) * n;
  float top = -INFINITY;
  int place = from;
  for (int i = from + at; i < to; i += 256) {
    if (place >= 0 && r[i] > top) {
      top = r[i];
      place = i;
    }
    if (broken(r[i])) place = -1;
  }
  v[at] = top;
  p[at] = place;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int o = 128; o > 0; o >>= 1) {
    if (at < o) {
      const int a = p[at], b = p[at + o];
      if (a < 0 || b < 0)
        p[at] = -1;
      else if (v[at + o] > v[at] || (v[at + o] == v[at] && b < a)) {
        v[at] = v[at + o];
        p[at] = b;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (at == 0) {
    const ulong g = (ulong)get_group_id(1) * groups_x() + get_group_id(0);
    val[g] = v[0];
    idx[g] = p[0];
  }
}

// The best of `pieces` pairs a row. One work-item a row.
__kernel void best_join(CGLOBAL float *val, CGLOBAL int *idx, int pieces, int rows, GLOBAL float *v, GLOBAL int *p) {
  BEGIN
  const int r = get_global_id(0);
  if (r >= rows) return;
  float top = val[r * pieces];
  int place = idx[r * pieces];
  for (int i = 1; i < pieces; i++) {
    const int q = idx[r * pieces + i];
    if (q < 0 || place < 0)
      place = -1;
    else if (val[r * pieces + i] > top || (val[r * pieces + i] == top && q < place)) {
      top = val[r * pieces + i];
      place = q;
    }
  }
  v[r] = top;
  p[r] = place;
}

// Sorts pieces of 1024 (value, place) pairs and keeps the k best of each, best
// first, equal values in order of place. `first`: places are those in x.
#define SORT 1024
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void top_of(CGLOBAL float *x, CGLOBAL int *place, int first, int n, int k,
                                                                      GLOBAL float *val, GLOBAL int *idx) {
  BEGIN
  __local float v[SORT];
  __local int p[SORT];
  const int at = get_local_id(0), base = get_group_id(0) * SORT;
  for (int i = at; i < SORT; i += 256) {
    const int j = base + i;
    v[i] = j < n ? x[j] : -INFINITY;
    p[i] = j < n ? (first ? j : place[j]) : 0x7fffffff;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int size = 2; size <= SORT; size <<= 1)
    for (int step = size >> 1; step > 0; step >>= 1) {
      for (int i = at; i < SORT / 2; i += 256) {
        const int a = (i / step) * 2 * step + i % step, b = a + step;
        const int down = (a & size) == 0;
        const int before = v[b] > v[a] || (v[b] == v[a] && p[b] < p[a]);
        if (before == down) {
          const float tv = v[a];
          v[a] = v[b];
          v[b] = tv;
          const int tp = p[a];
          p[a] = p[b];
          p[b] = tp;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  for (int i = at; i < k; i += 256) {
    val[get_group_id(0) * k + i] = v[i];
    idx[get_group_id(0) * k + i] = p[i];
  }
}

// Draws one of k sorted candidates: temperature, top-p, min-p, and a number of
// 0 <= u < 1. One work-item; k is small.
__kernel void draw(CGLOBAL float *val, CGLOBAL int *idx, int k, float temperature, float top_p, float min_p, float u, GLOBAL int *out) {
  BEGIN
  const float top = val[0];
  float sum = 0;
  for (int i = 0; i < k; i++) sum += exp((val[i] - top) / temperature);
  float kept = 0;
  int n = 0;
  while (n < k) {
    const float e = exp((val[n] - top) / temperature);
    if (n > 0 && (e < min_p || (top_p < 1.0f && kept >= top_p * sum))) break;
    kept += e;
    n++;
  }
  float at = u * kept;
  int i = 0;
  for (; i < n - 1; i++) {
    at -= exp((val[i] - top) / temperature);
    if (at < 0) break;
  }
  out[0] = idx[i];
}
