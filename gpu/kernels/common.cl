// What every kernel shares: lanes, integer dot products, half floats.
//
// A wave is LANES work-items that work on the same rows. NVIDIA: a warp, with
// shuffles. Intel: a subgroup, whose size is INTEL. Elsewhere: LANES neighbours that meet in local
// memory. lane_sum and lane_max must be reached by the whole work-group.
//
// OpenCL C 1.2, no fp64, half only through loads and stores. Offsets into
// weights are 64-bit; inside a row they are int, as 64-bit arithmetic is
// emulated on Intel.

// Functions are for reading; arrays that pass through them must stay in registers.
#define FN static inline __attribute__((always_inline))

#ifdef NVIDIA
#define LANES 32
#elif defined(INTEL)
#define LANES INTEL // size of a subgroup: 8 where it exists, which leaves most registers to a lane
#else
#define LANES 32
#endif

#ifdef INTEL
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define WAVED __attribute__((intel_reqd_sub_group_size(LANES)))
#else
#define WAVED
#endif

// A kernel of w waves.
#define KERNEL(w) __kernel WAVED __attribute__((reqd_work_group_size((w) * LANES, 1, 1)))
// A kernel of n work-items that do not meet as waves.
#define KERNEL_N(n) __kernel __attribute__((reqd_work_group_size(n, 1, 1)))

// Number of work-groups along x. NVIDIA's OpenCL keeps it in a register that
// only its own launches fill (%envreg); the hardware has it as well, which also
// holds for CUDA launches.
#ifdef NVIDIA
FN int groups_x(void) {
  int n;
  __asm__("mov.u32 %0, %%nctaid.x;" : "=r"(n));
  return n;
}
#else
#define groups_x() ((int)get_num_groups(0))
#endif
#define items_x() ((ulong)groups_x() * get_local_size(0))

// The first line of every kernel. On NVIDIA cards of capability 9.0 a launch may
// begin while the one before it ends (programmatic dependent launch, PTX ISA
// griddepcontrol): WAIT returns when everything before is done and visible, and
// only what no kernel of a sequence writes - weights - may be read before it.
// LET_NEXT allows the next launch to come in as soon as there is room.
#if defined(NVIDIA) && NVIDIA >= 90
#define LET_NEXT __asm__ volatile("griddepcontrol.launch_dependents;")
#define WAIT __asm__ volatile("griddepcontrol.wait;" ::: "memory")
#else
#define LET_NEXT
#define WAIT
#endif
#define BEGIN \
  LET_NEXT;   \
  WAIT;

#define GLOBAL __global
#define CGLOBAL __global const

// Integer dot product of four signed bytes: c + a.b
#ifdef NVIDIA
FN int dot4(int a, int b, int c) {
  int r;
  __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
#elif defined(DOT_SWAR)
FN int dot4(int a, int b, int c) {
  c = mad24((a << 24) >> 24, (b << 24) >> 24, c);
  c = mad24((a << 16) >> 24, (b << 16) >> 24, c);
  c = mad24((a << 8) >> 24, (b << 8) >> 24, c);
  return mad24(a >> 24, b >> 24, c);
}
#else
// Compilers that know dp4a find it in this form. Intel's does so in others too, of
// single bytes, but then moves every byte of both operands first.
FN int dot4(int a, int b, int c) {
  const int4 p = convert_int4(as_char4(a)) * convert_int4(as_char4(b));
  return c + p.x + p.y + p.z + p.w;
}
#endif

// Half to float from bits.
FN float half_bits(ushort h) {
#ifdef NVIDIA
  float f;
  __asm__("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
#else
  return vload_half(0, (const half *)&h);
#endif
}

FN float half_at(CGLOBAL uchar *p, int i) { return half_bits(((CGLOBAL ushort *)p)[i]); }

// Meeting of the lanes of a wave. WAVE_SYNC makes what lanes wrote to local
// memory visible to the others of the wave.
#ifdef NVIDIA
#define WAVE_SYNC __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#else
#define WAVE_SYNC barrier(CLK_LOCAL_MEM_FENCE)
#endif
#ifdef NVIDIA
#define LANE_LOCAL
FN float lane_swap(float v, int m) {
  float r;
  __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(r) : "f"(v), "r"(m));
  return r;
}
FN float lane_sum_(float v) {
  for (int m = 16; m > 0; m >>= 1) v += lane_swap(v, m);
  return v;
}
FN float lane_max_(float v) {
  for (int m = 16; m > 0; m >>= 1) v = fmax(v, lane_swap(v, m));
  return v;
}
// Sums of n values over the wave, n a power of two up to LANES, in the order of
// lane_sum: each step halves the values that a lane has left. Value i comes to lanes
// i * LANES / n and following.
FN void halve_sums(float *v, int n, int m) {
  const uint upper = get_local_id(0) & m ? 0xffffffff : 0;
#pragma unroll
  for (int i = 0; i < n; i++) {
    // no choice between addresses, which would leave v in memory
    const uint a = as_uint(v[i]), b = as_uint(v[i + n]);
    v[i] = as_float((a & ~upper) | (b & upper)) + lane_swap(as_float((a & upper) | (b & ~upper)), m);
  }
}
FN float lane_sums(float *v, int n) { // without a loop over n: compilers would not keep v in registers
  int m = LANES / 2;
#define HALVE_SUMS(k)       \
  if (n > k) {              \
    halve_sums(v, k, m); \
    m >>= 1;                \
  }
  HALVE_SUMS(16)
  HALVE_SUMS(8)
  HALVE_SUMS(4)
  HALVE_SUMS(2)
  HALVE_SUMS(1)
#undef HALVE_SUMS
  float sum = v[0];
  for (; m > 0; m >>= 1) sum += lane_swap(sum, m);
  return sum;
}
#define LANE_SUMS
#define lane_sum(v) lane_sum_(v)
#define lane_max(v) lane_max_(v)
#define lane_xor(v, m) lane_swap(v, m) // v of lane (this ^ m)
#elif defined(INTEL)
#define LANE_LOCAL
#define lane_xor(v, m) intel_sub_group_shuffle_xor(v, m)
#define lane_sum(v) sub_group_reduce_add(v)
#define lane_max(v) sub_group_reduce_max(v)
#else
// One float per work-item of the largest work-group.
#define LANE_LOCAL __local float lane_mem[512];
FN float lane_sum_(__local float *m, float v) {
  const int i = get_local_id(0), at = i % LANES;
  m[i] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int o = LANES / 2; o > 0; o >>= 1) {
    if (at < o) m[i] += m[i + o];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  v = m[i - at];
  barrier(CLK_LOCAL_MEM_FENCE);
  return v;
}
FN float lane_max_(__local float *m, float v) {
  const int i = get_local_id(0), at = i % LANES;
  m[i] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int o = LANES / 2; o > 0; o >>= 1) {
    if (at < o) m[i] = fmax(m[i], m[i + o]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  v = m[i - at];
  barrier(CLK_LOCAL_MEM_FENCE);
  return v;
}
#define lane_sum(v) lane_sum_(lane_mem, v)
#define lane_max(v) lane_max_(lane_mem, v)
#define lane_xor(v, m) lane_xor_(lane_mem, v, m)
FN float lane_xor_(__local float *mem, float v, int m) {
  const int i = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  mem[i] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  return mem[i ^ m];
}
#endif

// Sum or maximum over a work-group of w waves, through w floats of local
// memory. Ends and begins with a barrier.
#define GROUP_LOCAL(w) __local float group_mem[w];
#define group_sum(w, v) group_sum_(w, group_mem, lane_sum(v))
#define group_max(w, v) group_max_(w, group_mem, lane_max(v))
FN float group_sum_(int w, __local float *m, float v) {
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) % LANES == 0) m[get_local_id(0) / LANES] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  v = 0;
  for (int i = 0; i < w; i++) v += m[i];
  return v;
}
FN float group_max_(int w, __local float *m, float v) {
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) % LANES == 0) m[get_local_id(0) / LANES] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  v = m[0];
  for (int i = 1; i < w; i++) v = fmax(v, m[i]);
  return v;
}

// NaN or infinity, from the bits: compilers may assume there are none.
FN int broken(float v) { return (as_uint(v) & 0x7f800000) == 0x7f800000; }
