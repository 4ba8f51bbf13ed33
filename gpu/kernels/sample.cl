// The next token by engine/sampler.go's rules, so that only its number and the
// logarithm of its probability are read back: penalties (adjust), best_of and
// best_join (pick.cl), weigh, and then draw_all without filters, else collect and
// draw_best. Filters keep the best of an order by logit and number, so a list of
// the best is enough; when SAMPLE_MOST of them do not decide, the number is -1
// and the host looks at all logits. Dimension 1 is the row, u (rows) the random
// numbers of 0 <= u < 1, out (rows, 2).

#define SAMPLE_MOST 1024
#define SAMPLE_BINS 256   // of the distance from the best logit
#define SAMPLE_FINE 16.0f // bins for a factor of e
#define SAMPLE_ITEMS 256

FN int sample_bin(float best, float l) { return (int)fmin(fmax((best - l) * SAMPLE_FINE, 0.0f), (float)(SAMPLE_BINS - 1)); }

// Sums before and up to each of n = 4 * SAMPLE_ITEMS values of v, in place.
FN void sample_scan(__local float *v, __local float *sums) {
  const int at = get_local_id(0);
  float s[4], t = 0;
  for (int k = 0; k < 4; k++) {
    t += v[at * 4 + k];
    s[k] = t;
  }
  sums[at] = t;
  for (int d = 1; d < SAMPLE_ITEMS; d *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const float before = at >= d ? sums[at - d] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[at] += before;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float base = at > 0 ? sums[at - 1] : 0;
  for (int k = 0; k < 4; k++) v[at * 4 + k] = base + s[k];
  barrier(CLK_LOCAL_MEM_FENCE);
}

FN float sample_sum(__local float *sums, float v) {
  const int at = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  sums[at] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int o = SAMPLE_ITEMS / 2; o > 0; o >>= 1) {
    if (at < o) sums[at] += sums[at + o];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return sums[0];
}

// Bias and penalties for n tokens, each once: ids, what is added first, and how
// often it was among the recent ones (0: not).
__kernel void adjust(GLOBAL float *x, int vocabulary, CGLOBAL int *ids, CGLOBAL float *bias, CGLOBAL int *count, int n, float repeat, float presence,
                     float frequency) {
  BEGIN
  const int i = get_global_id(0);
  if (i >= n || ids[i] < 0 || ids[i] >= vocabulary) return;
  float l = x[ids[i]] + bias[i];
  if (count[i] > 0) {
    if (repeat > 0 && repeat != 1.0f) l = l > 0 ? l / repeat : l * repeat;
    l -= presence + (float)count[i] * frequency;
  }
  x[ids[i]] = l;
}

// Of each piece of a row: how many values are in each bin (counts, zeroes before),
// and the sums of exp(l - best) and of exp((l - best) * inv), two floats a piece.
KERNEL_N(SAMPLE_ITEMS) void weigh(CGLOBAL float *x, int n, int piece, CGLOBAL float *best, float inv, GLOBAL int *counts, GLOBAL float *mass) {
  BEGIN
  __local int bins[SAMPLE_BINS];
  __local float sums[SAMPLE_ITEMS];
  const int at = get_local_id(0), row = get_group_id(1), from = get_group_id(0) * piece, to = min(from + piece, n);
  CGLOBAL float *r = x + (ulong)row * n;
  const float top = best[row];
  bins[at] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  float a = 0, b = 0;
  for (int i = from + at; i < to; i += SAMPLE_ITEMS) {
    const float d = r[i] - top;
    a += exp(d);
    b += exp(d * inv);
    atomic_inc(&bins[sample_bin(top, r[i])]);
  }
  a = sample_sum(sums, a);
  b = sample_sum(sums, b);
  if (bins[at] > 0) atomic_add(&counts[row * SAMPLE_BINS + at], bins[at]);
  if (at == 0) {
    const int g = row * groups_x() + get_group_id(0);
    mass[2 * g] = a;
    mass[2 * g + 1] = b;
  }
}

// How many bins from the best on have no more than SAMPLE_MOST values together.
FN int sample_bins(__local int *upto, CGLOBAL int *counts) {
  const int at = get_local_id(0);
  upto[at] = counts[at];
  for (int d = 1; d < SAMPLE_BINS; d *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int before = at >= d ? upto[at - d] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    upto[at] += before;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int n = 0;
  for (int step = SAMPLE_BINS / 2; step > 0; step /= 2)
    if (upto[n + step - 1] <= SAMPLE_MOST) n += step;
  return n < SAMPLE_BINS && upto[n] <= SAMPLE_MOST ? n + 1 : n;
}

// The values of those bins, in no order: val and idx (rows, SAMPLE_MOST), found
// (rows, zeroes before).
KERNEL_N(SAMPLE_ITEMS) void collect(CGLOBAL float *x, int n, int piece, CGLOBAL float *best, CGLOBAL int *counts, GLOBAL float *val, GLOBAL int *idx,
                                    GLOBAL int *found) {
  BEGIN
  __local int upto[SAMPLE_BINS];
  const int row = get_group_id(1), from = get_group_id(0) * piece, to = min(from + piece, n);
  CGLOBAL float *r = x + (ulong)row * n;
  const int bins = sample_bins(upto, counts + row * SAMPLE_BINS);
  for (int i = from + (int)get_local_id(0); i < to; i += SAMPLE_ITEMS)
    if (sample_bin(best[row], r[i]) < bins) {
      const int k = atomic_inc(&found[row]);
      if (k < SAMPLE_MOST) {
        val[row * SAMPLE_MOST + k] = r[i];
        idx[row * SAMPLE_MOST + k] = i;
      }
    }
}

// Draws from the list: the top_k best (0: all), of those the fewest whose share
// reaches top_p (1: all) and what has min_p of the best's share; then
// temperature. place is best_join's, negative when the row is broken.
KERNEL_N(SAMPLE_ITEMS) void draw_best(CGLOBAL float *best, CGLOBAL int *place, int n, int pieces, CGLOBAL float *mass, CGLOBAL int *counts,
                                      CGLOBAL float *val, CGLOBAL int *idx, CGLOBAL int *found, int top_k, float top_p, float min_p, float inv,
                                      CGLOBAL float *u, GLOBAL int *out) {
  BEGIN
  __local float v[SAMPLE_MOST], w[SAMPLE_MOST], sums[SAMPLE_ITEMS];
  __local int p[SAMPLE_MOST], upto[SAMPLE_BINS], least[2];
  const int at = get_local_id(0), row = get_group_id(0);
  const float top = best[row];
  const int m = min(found[row], SAMPLE_MOST);
  const int bins = sample_bins(upto, counts + row * SAMPLE_BINS);
  if (place[row] < 0 || m == 0) { // the whole work-group
    if (at == 0) out[2 * row] = -1;
    return;
  }
  for (int i = at; i < SAMPLE_MOST; i += SAMPLE_ITEMS) {
    v[i] = i < m ? val[row * SAMPLE_MOST + i] : -INFINITY;
    p[i] = i < m ? idx[row * SAMPLE_MOST + i] : 0x7fffffff;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int size = 2; size <= SAMPLE_MOST; size <<= 1)
    for (int step = size >> 1; step > 0; step >>= 1) {
      for (int i = at; i < SAMPLE_MOST / 2; i += SAMPLE_ITEMS) {
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
  float all = 0;
  for (int i = at; i < pieces; i += SAMPLE_ITEMS) all += mass[2 * (row * pieces + i)];
  all = sample_sum(sums, all);
  // the list ends above what some filter would keep, unless it has everything
  const int whole = m == n || (min_p > 0 && bins > 0 && min_p >= exp(-(float)bins / SAMPLE_FINE));
  int fails = 0;
  if (at == 0) least[0] = least[1] = m;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = at; i < SAMPLE_MOST; i += SAMPLE_ITEMS) {
    w[i] = i < m ? exp(v[i] - top) : 0.0f;
    if (i < m && w[i] < min_p) atomic_min(&least[0], i);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int keep = least[0];
  const int k_best = top_k > 0 && top_k < n;
  if (k_best) {
    if (top_k <= keep)
      keep = top_k;
    else if (keep == m && !whole)
      fails = 1;
  }
  sample_scan(w, sums);
  if (top_p > 0 && top_p < 1.0f) {
    const float want = top_p * (k_best ? w[keep - 1] : all);
    for (int i = at; i < keep; i += SAMPLE_ITEMS)
      if (w[i] >= want) atomic_min(&least[1], i);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (least[1] < keep)
      keep = least[1] + 1;
    else if (!k_best && keep == m && !whole)
      fails = 1;
  } else if (!k_best && keep == m && !whole)
    fails = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at == 0) least[1] = keep - 1;
  for (int i = at; i < SAMPLE_MOST; i += SAMPLE_ITEMS) w[i] = i < keep ? exp((v[i] - top) * inv) : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  sample_scan(w, sums);
  const float draw = u[row] * w[keep - 1];
  for (int i = at; i < keep; i += SAMPLE_ITEMS)
    if (w[i] > draw) atomic_min(&least[1], i);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at == 0) {
    out[2 * row] = fails ? -1 : p[least[1]];
    ((GLOBAL float *)out)[2 * row + 1] = v[least[1]] - top - log(all);
  }
}

// Draws from all values of a row, in their order. pieces of `piece` values, at
// most 16 for each work-item.
KERNEL_N(SAMPLE_ITEMS) void draw_all(CGLOBAL float *x, int n, int piece, int pieces, CGLOBAL float *best, CGLOBAL int *place, CGLOBAL float *mass,
                                     float inv, CGLOBAL float *u, GLOBAL int *out) {
  BEGIN
  __local float sums[SAMPLE_ITEMS];
  __local int found[1];
  const int at = get_local_id(0), row = get_group_id(0);
  const float top = best[row];
  CGLOBAL float *r = x + (ulong)row * n;
  CGLOBAL float *w = mass + 2 * row * pieces;
  float all = 0, sum = 0;
  for (int i = 0; i < pieces; i++) {
    all += w[2 * i];
    sum += w[2 * i + 1];
  }
  float left = u[row] * sum;
  int k = 0;
  while (k < pieces - 1 && left >= w[2 * k + 1]) left -= w[2 * k++ + 1];
  // within the piece
  const int each = piece / SAMPLE_ITEMS, from = k * piece + at * each, to = min(from + each, n);
  float mine = 0;
  for (int i = from; i < to; i++) mine += exp((r[i] - top) * inv);
  sums[at] = mine;
  float upto = mine;
  for (int d = 1; d < SAMPLE_ITEMS; d *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const float before = at >= d ? sums[at - d] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    upto += before;
    sums[at] = upto;
  }
  if (at == 0) found[0] = min((k + 1) * piece, n) - 1; // rounding may leave it to the last
  barrier(CLK_LOCAL_MEM_FENCE);
  left -= upto - mine;
  if (left >= 0 && left < mine) {
    int i = from;
    for (; i < to - 1; i++) {
      left -= exp((r[i] - top) * inv);
      if (left < 0) break;
    }
    atomic_min(&found[0], i);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at == 0) {
    out[2 * row] = place[row] < 0 ? -1 : found[0];
    ((GLOBAL float *)out)[2 * row + 1] = r[found[0]] - top - log(all);
  }
}
