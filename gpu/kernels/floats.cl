// F32, F16 and BF16 weights as unit.cl has the others: units of 8 values,
// multiplied with float activations. Rows lie as in the file.

#if FORMAT == 0 || FORMAT == 1 || FORMAT == 30
#define UNIT 8
typedef CGLOBAL float4 xvalues;

typedef struct {
  float4 a, b;
} funit;
#define unit funit
#define xunit funit

#if FORMAT == 0
#define VALUE_BYTES 4
RAW2(float4 a, float4 b)
FETCH {
  o->a = ((CGLOBAL float4 *)p.a)[2 * u];
  o->b = ((CGLOBAL float4 *)p.a)[2 * u + 1];
}
UNPACK {
  o->a = r->a;
  o->b = r->b;
}
#else
#define VALUE_BYTES 2
FN float wide(uint h) {
#if FORMAT == 1
  return half_bits((ushort)h);
#else
  return as_float(h << 16);
#endif
}
typedef struct { uint4 a; } raw;
FETCH {
  o->a = four_at(p.a, u);
}
UNPACK {
  o->a = (float4)(wide(r->a.x & 0xffff), wide(r->a.x >> 16), wide(r->a.y & 0xffff), wide(r->a.y >> 16));
  o->b = (float4)(wide(r->a.z & 0xffff), wide(r->a.z >> 16), wide(r->a.w & 0xffff), wide(r->a.w >> 16));
}
#endif

#define PLANE_A (8 * UNIT * VALUE_BYTES) // as dot.cl has it, for eight units
#define PLANE_B 0
#define PLANE_C 0

FN planes planes_at(CGLOBAL uchar *w, ulong n, ulong u) {
  planes p;
  p.a = w + u * (UNIT * VALUE_BYTES);
  p.b = p.a;
  p.c = p.a;
  return p;
}

FN xunit x_at(CGLOBAL float4 *x, CGLOBAL uint2 *none, int upr, int col, int u) {
  xunit v;
  v.a = as_float4(act4(x + 2 * (col * upr + u)));
  v.b = as_float4(act4(x + 2 * (col * upr + u) + 1));
  return v;
}

FN float dot_unit(const unit *w, const xunit *x, float sum) {
  return sum + dot(w->a, x->a) + dot(w->b, x->b);
}
#endif
