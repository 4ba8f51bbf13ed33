// Halves for matrix units: pairs of them in a word, copies to local memory that
// go on by themselves, and the units (PTX ISA: cp.async, ldmatrix, mma; compute capability 8.0).

// Two floats to two halves of a word.
#ifdef NVIDIA
FN uint two_halves(float lo, float hi) {
  uint r;
  __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
// Half by half: a - b, a * b, a * b + c.
FN uint sub_halves(uint a, uint b) {
  uint r;
  __asm__("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
FN uint mul_halves(uint a, uint b) {
  uint r;
  __asm__("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
FN uint fma_halves(uint a, uint b, uint c) {
  uint r;
  __asm__("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
// Bytes 0 and 1, and bytes 2 and 3 of q as halves of 1024 more.
FN void spread_bytes(uint q, uint *lo, uint *hi) {
  __asm__("prmt.b32 %0, %1, %2, 0x4140;" : "=r"(*lo) : "r"(q), "r"(0x64646464));
  __asm__("prmt.b32 %0, %1, %2, 0x4342;" : "=r"(*hi) : "r"(q), "r"(0x64646464));
}
#else
FN void spread_bytes(uint q, uint *lo, uint *hi) {
  *lo = (q & 255) | (q >> 8 & 255) << 16 | 0x64006400;
  *hi = (q >> 16 & 255) | (q >> 24) << 16 | 0x64006400;
}
#ifdef INTEL
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
FN uint two_halves(float lo, float hi) { return as_uint((half2)(convert_half_rte(lo), convert_half_rte(hi))); }
FN uint sub_halves(uint a, uint b) { return as_uint(as_half2(a) - as_half2(b)); }
FN uint mul_halves(uint a, uint b) { return as_uint(as_half2(a) * as_half2(b)); }
FN uint fma_halves(uint a, uint b, uint c) { return as_uint(fma(as_half2(a), as_half2(b), as_half2(c))); }
#else
FN ushort half_of(float v) {
  ushort h;
  vstore_half_rte(v, 0, (half *)&h);
  return h;
}
FN uint two_halves(float lo, float hi) { return half_of(lo) | (uint)half_of(hi) << 16; }
FN float low_half(uint a) { return half_bits((ushort)a); }
FN float high_half(uint a) { return half_bits((ushort)(a >> 16)); }
FN uint sub_halves(uint a, uint b) { return two_halves(low_half(a) - low_half(b), high_half(a) - high_half(b)); }
FN uint mul_halves(uint a, uint b) { return two_halves(low_half(a) * low_half(b), high_half(a) * high_half(b)); }
FN uint fma_halves(uint a, uint b, uint c) {
  return two_halves(low_half(a) * low_half(b) + low_half(c), high_half(a) * high_half(b) + high_half(c));
}
#endif
#endif
#ifdef NVIDIA
#define SHARED(p) ((uint)(ulong)(p))
// Four 8 x 8 matrices of halves: lane l gives the address of row l%8 of matrix
// l/8 and gets of each the halves 2*(l%4) and 2*(l%4)+1 of row l/4; with
// matrix4t rows and columns change places.
FN void matrix4(uint *r, uint address) {
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                   : "r"(address)
                   : "memory");
}
FN void matrix4t(uint *r, uint address) {
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                   : "r"(address)
                   : "memory");
}
// c += a.b, 16 x 8 of 16.
FN void multiply(float *c, const uint *a, uint b0, uint b1) {
  __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// BRING copies 16 bytes to local memory, or zeroes. ARRIVED(n) waits for all but
// the last n groups, which BROUGHT ends.
#define BRING_IF(is, to, from) \
  __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SHARED(to)), "l"((ulong)(from)), "r"((is) ? 16 : 0) : "memory")
#define BRING(to, from) __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SHARED(to)), "l"((ulong)(from)) : "memory")
#define BROUGHT __asm__ volatile("cp.async.commit_group;" ::: "memory")
#define ARRIVED(n) __asm__ volatile("cp.async.wait_group " #n ";" ::: "memory")
#else
#define BRING(to, from) *(to) = *(from)
#define BRING_IF(is, to, from) *(to) = (is) ? *(from) : (uint4)(0, 0, 0, 0)
#define BROUGHT
#define ARRIVED(n)
#endif
