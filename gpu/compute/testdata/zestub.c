// A Level Zero loader that computes nothing, for tests of failures: the call
// named by ZESTUB_FAIL gives the result ZESTUB_CODE, from its ZESTUB_AFTER-th
// call on. Memory is the host's; commands run at once; kernels do nothing.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t R;
typedef void *H;
static int live, calls;
static R fails(const char *name) {
  const char *f = getenv("ZESTUB_FAIL");
  if (!f || strcmp(f, name)) return 0;
  const char *a = getenv("ZESTUB_AFTER");
  if (++calls <= (a ? atoi(a) : 0)) return 0;
  return (R)strtoul(getenv("ZESTUB_CODE"), 0, 0);
}
#define FAIL(name)                    \
  do {                                \
    R r = fails(name);                \
    if (r) return r;                  \
  } while (0)
#define MAKE(name, sig)               \
  R name sig {                        \
    FAIL(#name);                      \
    live++;                           \
    *out = (H)(uintptr_t)(4096 + live); \
    return 0;                         \
  }
#define GONE(name)                    \
  R name(H h) {                       \
    live--;                           \
    return 0;                         \
  }

int zestub_live(void) { return live; }
R zeInit(uint32_t f) { FAIL("zeInit"); return 0; }
static R one(uint32_t *n, H *out) {
  *n = 1;
  if (out) out[0] = (H)1;
  return 0;
}
R zeDriverGet(uint32_t *n, H *out) { return one(n, out); }
R zeDeviceGet(H d, uint32_t *n, H *out) { return one(n, out); }
R zeDriverGetApiVersion(H d, uint32_t *v) { *v = 1 << 16 | 3; return 0; }
R zeDriverGetProperties(H d, char *p) { return 0; }
R zeDeviceGetProperties(H d, char *p) {
  FAIL("zeDeviceGetProperties");
  *(uint32_t *)(p + 16) = 1;      // type
  *(uint32_t *)(p + 20) = 0x8086; // vendor
  *(uint64_t *)(p + 40) = 1ull << 32;
  *(uint32_t *)(p + 68) = 8; // subslices of a slice
  *(uint32_t *)(p + 72) = 4; // slices
  strcpy(p + 112, "stub card");
  return 0;
}
R zeDeviceGetComputeProperties(H d, uint32_t *p) {
  p[4] = 1024;
  p[11] = 65536;
  p[12] = 2;
  p[13] = 8;
  p[14] = 16;
  return 0;
}
R zeDeviceGetMemoryProperties(H d, uint32_t *n, char *p) {
  *n = 1;
  if (p) *(uint64_t *)(p + 32) = 16ull << 30;
  return 0;
}
R zeDeviceGetCommandQueueGroupProperties(H d, uint32_t *n, char *p) {
  *n = 1;
  if (p) *(uint32_t *)(p + 16) = 1;
  return 0;
}
MAKE(zeContextCreate, (H d, H desc, H *out))
GONE(zeContextDestroy)
static R mem(const char *name, size_t n, H *out) {
  R r = fails(name);
  if (r) return r;
  live++;
  *out = getenv("ZESTUB_NULL") ? 0 : aligned_alloc(4096, (n + 4095) / 4096 * 4096);
  return 0;
}
R zeMemAllocDevice(H c, H desc, size_t n, size_t al, H d, H *out) { return mem("zeMemAllocDevice", n, out); }
R zeMemAllocHost(H c, H desc, size_t n, size_t al, H *out) { return mem("zeMemAllocHost", n, out); }
R zeMemFree(H c, H p) { live--; free(p); return 0; }
MAKE(zeCommandListCreateImmediate, (H c, H d, H desc, H *out))
MAKE(zeCommandListCreate, (H c, H d, H desc, H *out))
R zeCommandListClose(H l) { FAIL("zeCommandListClose"); return 0; }
GONE(zeCommandListDestroy)
MAKE(zeCommandQueueCreate, (H c, H d, H desc, H *out))
GONE(zeCommandQueueDestroy)
R zeCommandQueueExecuteCommandLists(H q, uint32_t n, H *l, H f) { FAIL("zeCommandQueueExecuteCommandLists"); return 0; }
R zeCommandQueueSynchronize(H q, uint64_t t) { FAIL("zeCommandQueueSynchronize"); return 0; }
MAKE(zeEventPoolCreate, (H c, H desc, uint32_t n, H *d, H *out))
GONE(zeEventPoolDestroy)
MAKE(zeEventCreate, (H p, H desc, H *out))
GONE(zeEventDestroy)
R zeEventHostSynchronize(H e, uint64_t t) { FAIL("zeEventHostSynchronize"); return 0; }
R zeEventHostReset(H e) { return 0; }
R zeCommandListAppendSignalEvent(H l, H e) { return 0; }
R zeCommandListAppendBarrier(H l, H e, uint32_t n, H *w) { return 0; }
R zeCommandListAppendLaunchKernel(H l, H k, H g, H e, uint32_t n, H *w) { FAIL("zeCommandListAppendLaunchKernel"); return 0; }
R zeCommandListAppendMemoryCopy(H l, void *d, const void *s, size_t n, H e, uint32_t k, H *w) {
  FAIL("zeCommandListAppendMemoryCopy");
  memcpy(d, s, n);
  return 0;
}
R zeCommandListAppendMemoryFill(H l, char *d, const char *p, size_t pn, size_t n, H e, uint32_t k, H *w) {
  for (size_t i = 0; i < n; i++) d[i] = p[i % pn];
  return 0;
}
R zeModuleCreate(H c, H d, H desc, H *out, H *log) {
  *log = (H)1;
  FAIL("zeModuleCreate");
  live++;
  *out = (H)2;
  return 0;
}
GONE(zeModuleDestroy)
R zeModuleBuildLogGetString(H l, size_t *n, char *s) {
  *n = 15;
  if (s) strcpy(s, "stub build log");
  return 0;
}
R zeModuleBuildLogDestroy(H l) { return 0; }
MAKE(zeKernelCreate, (H m, H desc, H *out))
GONE(zeKernelDestroy)
R zeKernelSetGroupSize(H k, uint32_t x, uint32_t y, uint32_t z) { return 0; }
R zeKernelSetArgumentValue(H k, uint32_t i, size_t n, const void *p) { FAIL("zeKernelSetArgumentValue"); return 0; }
