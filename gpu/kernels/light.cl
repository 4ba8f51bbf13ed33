// First light: kernels whose answer is known before they run.

// The word that belongs at place i.
FN uint light_word(ulong i, uint seed) {
  uint x = (uint)i * 2654435761u ^ (uint)(i >> 32) * 2246822519u ^ seed;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return x;
}

// Writes words base .. base+n-1 of a pattern to b[0..n-1].
__kernel void light_write(GLOBAL uint *b, ulong n, ulong base, uint seed) {
  BEGIN
  for (ulong i = get_global_id(0); i < n; i += items_x()) b[i] = light_word(base + i, seed);
}

// Adds the number of words that differ from the pattern to bad[0], and keeps
// the lowest wrong place (below 2^32 words) in bad[1].
__kernel void light_check(CGLOBAL uint *b, ulong n, ulong base, uint seed, volatile GLOBAL uint *bad) {
  BEGIN
  for (ulong i = get_global_id(0); i < n; i += items_x()) {
    if (b[i] != light_word(base + i, seed)) {
      atomic_inc(bad);
      atomic_min(bad + 1, (uint)i);
    }
  }
}

// Does as good as nothing: what a launch costs.
__kernel void light_touch(GLOBAL uint *b, uint v) {
  BEGIN
  if (get_global_id(0) == 0) b[0] = v;
}

// Adds v to n words.
__kernel void light_add(GLOBAL uint *b, int n, uint v) {
  BEGIN
  int i = get_global_id(0);
  if (i < n) b[i] += v;
}

// Copies n 16-byte pieces: the bandwidth that kernels can reach.
__kernel void light_copy(CGLOBAL uint4 *a, GLOBAL uint4 *b, ulong n) {
  BEGIN
  for (ulong i = get_global_id(0); i < n; i += items_x()) b[i] = a[i];
}

// Reads n 16-byte pieces and folds them to one word per work-item.
__kernel void light_read(CGLOBAL uint4 *a, ulong n, GLOBAL uint *out) {
  BEGIN
  uint4 s = 0;
  for (ulong i = get_global_id(0); i < n; i += items_x()) s ^= a[i];
  out[get_global_id(0)] = s.x ^ s.y ^ s.z ^ s.w;
}
