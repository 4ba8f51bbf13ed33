// What stands before the text of a module that clang makes PTX of ahead of time. The
// library that goes with clang works these functions out in dozens of instructions;
// the hardware has them within the bounds of OpenCL C (exp 3 ulp, rsqrt 2 ulp), and
// NVIDIA's own compiler uses it. Division is seen to in built.go.

#define AHEAD_OF_TIME static inline __attribute__((overloadable))

// 2^t, at most 2 ulp off
AHEAD_OF_TIME float ahead_exp2(float t) {
  float y;
  __asm__("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(t));
  return y;
}

// e^x as 2^t; what t = x log2(e) lost by rounding is made good where the result is
// neither 0, infinite nor not a number.
AHEAD_OF_TIME float ahead_exp(float x) {
  float t = x * 1.44269504f;
  float y = ahead_exp2(t);
  float lost = fma(x, 1.44269504f, -t) + x * 1.92596299e-8f;
  return y > 0 && y < INFINITY ? fma(y, lost * 0.693147182f, y) : y;
}

AHEAD_OF_TIME float4 ahead_exp(float4 v) { return (float4)(ahead_exp(v.x), ahead_exp(v.y), ahead_exp(v.z), ahead_exp(v.w)); }

AHEAD_OF_TIME float ahead_rsqrt(float x) {
  float y;
  __asm__("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#define exp(x) ahead_exp(x)
#define exp2(x) ahead_exp2(x)
#define rsqrt(x) ahead_rsqrt(x)
#undef AHEAD_OF_TIME
