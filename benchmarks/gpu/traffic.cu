// A kernel that occupies SMs as a collective does: each block moves 64 KiB tiles of its region of the
// buffers until the host sets `stop`, or for `limit_ns` at most.
//
// kind: 0 waits without memory traffic; 1 copies (1 read, 1 write per byte); 2 reduces (2 reads, 1
// write), as a reduce-scatter step over NVLink does; 3 reduces and stores twice (2 reads, 2 writes).

#ifndef THREADS
#define THREADS 512
#define UNROLLED 8
#endif
constexpr int TILE = THREADS * UNROLLED;  // in elements of 16 bytes
constexpr int POLLED = 64;                // tiles between polls of the host's flag, which take 2 us

__device__ inline unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ inline unsigned add(unsigned left, unsigned right) {
  unsigned result;
  asm("{add.rn.bf16x2 %0, %1, %2;}" : "=r"(result) : "r"(left), "r"(right));
  return result;
}

__device__ inline uint4 sum(uint4 a, uint4 b) {
  return make_uint4(add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    traffic(const uint4* first, const uint4* second, uint4* result, uint4* stored,
            unsigned long long tiles, int kind, volatile int* stop, unsigned long long limit_ns,
            unsigned long long* moved, unsigned long long* spans, unsigned* processors) {
  __shared__ int stopped;
  const unsigned long long base = blockIdx.x * tiles * TILE;
  const unsigned long long start = now();
  unsigned long long count = 0;
  for (;;) {
    if (count % POLLED == 0) {
      __syncthreads();
      if (threadIdx.x == 0) stopped = *stop || now() - start > limit_ns;
      __syncthreads();
      if (stopped) break;
    }
    if (kind == 0) {
      __nanosleep(200);
    } else {
      const unsigned long long at = base + (count % tiles) * TILE + threadIdx.x;
      uint4 a[UNROLLED], b[UNROLLED];
#pragma unroll
      for (int i = 0; i < UNROLLED; ++i) a[i] = __ldcs(first + at + i * THREADS);
      if (kind > 1) {
#pragma unroll
        for (int i = 0; i < UNROLLED; ++i) b[i] = __ldcs(second + at + i * THREADS);
#pragma unroll
        for (int i = 0; i < UNROLLED; ++i) a[i] = sum(a[i], b[i]);
      }
#pragma unroll
      for (int i = 0; i < UNROLLED; ++i) __stcs(result + at + i * THREADS, a[i]);
      if (kind > 2) {
#pragma unroll
        for (int i = 0; i < UNROLLED; ++i) __stcs(stored + at + i * THREADS, a[i]);
      }
    }
    ++count;
  }
  if (threadIdx.x == 0) {
    asm volatile("mov.u32 %0, %%smid;" : "=r"(processors[blockIdx.x]));
    moved[blockIdx.x] = count;
    spans[2 * blockIdx.x] = start;
    spans[2 * blockIdx.x + 1] = now();
  }
}
