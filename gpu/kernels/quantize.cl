// Float rows to 8-bit activations: per 32 values one scale, max/127, and whole
// numbers of -127..127, nearest, ties to even, as engine/quant has it. A block
// with a NaN or an infinity gets a NaN as scale, so that every product with it
// is NaN and the engine sees it.
//
// xq: for each row the first halves of all units, 16 bytes each, then the
// second halves. xm: for each row and unit the scale's bits, and the sums of the
// two halves as two shorts.

// Four values to a word.
FN uint round4(float4 v, float inv) {
  int4 q = convert_int4_rte(v * inv);
  return (q.x & 255) | (q.y & 255) << 8 | (q.z & 255) << 16 | (uint)q.w << 24;
}

// a/b rounded to nearest, which the built-in division need not be.
FN float ratio(float a, float b) {
  const float q = a / b;
  return q + fma(-q, b, a) / b;
}

FN int sum4(uint w) { return dot4((int)w, 0x01010101, 0); }

// Writes unit u of a row of upr units from 32 floats.
FN void quantize_unit(const float4 *v, GLOBAL uint4 *xq, GLOBAL uint2 *xm, int upr, int u) {
  float4 m = fabs(v[0]);
  int bad = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    m = fmax(m, fabs(v[i]));
    bad |= broken(v[i].x) | broken(v[i].y) | broken(v[i].z) | broken(v[i].w);
  }
  float most = fmax(fmax(m.x, m.y), fmax(m.z, m.w));
  if (bad || !(most >= 0x1p-120f)) {
    xq[u] = 0;
    xq[upr + u] = 0;
    xm[u] = (uint2)(bad ? 0x7fc00000 : 0, 0);
    return;
  }
  const float inv = ratio(127.0f, most);
  uint4 a = (uint4)(round4(v[0], inv), round4(v[1], inv), round4(v[2], inv), round4(v[3], inv));
  uint4 b = (uint4)(round4(v[4], inv), round4(v[5], inv), round4(v[6], inv), round4(v[7], inv));
  xq[u] = a;
  xq[upr + u] = b;
  int s = sum4(a.x) + sum4(a.y) + sum4(a.z) + sum4(a.w), t = sum4(b.x) + sum4(b.y) + sum4(b.z) + sum4(b.w);
  xm[u] = (uint2)(as_uint(ratio(most, 127.0f)), (s & 0xffff) | (uint)t << 16);
}

// Rows of n floats, n a multiple of 32, ldx floats apart. One work-item a unit;
// dimension 1 is the row.
__kernel void quantize(CGLOBAL float *x, int ldx, int upr, GLOBAL uint4 *xq, GLOBAL uint2 *xm) {
  BEGIN
  const int u = get_global_id(0), row = get_global_id(1);
  if (u >= upr) return;
  float4 v[8];
  CGLOBAL float4 *s = (CGLOBAL float4 *)(x + (ulong)row * ldx) + u * 8;
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = s[i];
  quantize_unit(v, xq + 2 * (ulong)row * upr, xm + (ulong)row * upr, upr, u);
}
