// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenCL C's functions and vectors in CUDA C++.
#pragma once

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define restrict __restrict__

#ifndef SUITE_OFFSETS
#define SUITE_OFFSETS 0, 0, 0
#endif

#define SUITE_PICK(d, v) ((d) == 0 ? v.x : (d) == 1 ? v.y : (d) == 2 ? v.z : 0)
#define SUITE_SIZE(d, v) ((d) == 0 ? v.x : (d) == 1 ? v.y : (d) == 2 ? v.z : 1)
__device__ static inline size_t get_local_id(uint d) { return SUITE_PICK(d, threadIdx); }
__device__ static inline size_t get_group_id(uint d) { return SUITE_PICK(d, blockIdx); }
__device__ static inline size_t get_local_size(uint d) { return SUITE_SIZE(d, blockDim); }
__device__ static inline size_t get_num_groups(uint d) { return SUITE_SIZE(d, gridDim); }
__device__ static inline size_t get_global_size(uint d) { return get_local_size(d) * get_num_groups(d); }
__device__ static inline size_t get_global_offset(uint d) {
  const size_t offsets[] = {SUITE_OFFSETS};
  return d < sizeof offsets / sizeof offsets[0] ? offsets[d] : 0;
}
__device__ static inline size_t get_global_id(uint d) {
  return get_global_offset(d) + get_group_id(d) * get_local_size(d) + get_local_id(d);
}
__device__ static inline uint get_work_dim() { return gridDim.z * blockDim.z > 1 ? 3 : gridDim.y * blockDim.y > 1 ? 2 : 1; }

#define barrier(flags) __syncthreads()
#define mem_fence(flags) __threadfence_block()
#define read_mem_fence(flags) __threadfence_block()
#define write_mem_fence(flags) __threadfence_block()

#define SUITE_ATOMIC(prefix)                                                                     \
  template <class T, class V> __device__ T prefix##_add(T *p, V v) { return atomicAdd(p, (T)v); } \
  template <class T, class V> __device__ T prefix##_sub(T *p, V v) { return atomicSub(p, (T)v); } \
  template <class T, class V> __device__ T prefix##_xchg(T *p, V v) { return atomicExch(p, (T)v); } \
  template <class T, class V> __device__ T prefix##_min(T *p, V v) { return atomicMin(p, (T)v); } \
  template <class T, class V> __device__ T prefix##_max(T *p, V v) { return atomicMax(p, (T)v); } \
  template <class T, class V> __device__ T prefix##_and(T *p, V v) { return atomicAnd(p, (T)v); } \
  template <class T, class V> __device__ T prefix##_or(T *p, V v) { return atomicOr(p, (T)v); }   \
  template <class T, class V> __device__ T prefix##_xor(T *p, V v) { return atomicXor(p, (T)v); } \
  template <class T> __device__ T prefix##_inc(T *p) { return atomicAdd(p, (T)1); }               \
  template <class T> __device__ T prefix##_dec(T *p) { return atomicAdd(p, (T)-1); }              \
  template <class T, class U, class V> __device__ T prefix##_cmpxchg(T *p, U u, V v) {            \
    return atomicCAS(p, (T)u, (T)v);                                                              \
  }
SUITE_ATOMIC(atomic)
SUITE_ATOMIC(atom)

// All work-items of a warp are here, with the same value.
__device__ static inline void suite_uniform(unsigned long long value) {
  uint all = blockDim.x * blockDim.y * blockDim.z;
  uint first = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & ~31u;
  int equal;
  __match_all_sync(all - first >= 32 ? 0xffffffffu : (1u << (all - first)) - 1, value, &equal);
  suite_assertion(equal);
}

// A copy by all work-items, each of elements that belong to others: it begins at the call, and ends at the wait, which
// orders nothing for other work-items.
struct event_t {
  char *to;
  const char *from;
  size_t count;
  uint unit, number;
  event_t() = default;
  __device__ event_t(int number) : to(0), from(0), count(0), unit(0), number(number) {}
  __device__ event_t operator+(int more) const {
    event_t made = *this;
    made.number += more;
    return made;
  }
  __device__ void copy() const {
    size_t all = blockDim.x * blockDim.y * blockDim.z;
    size_t self = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    size_t shift = 1 + (size_t)from / sizeof(int) % 5;
    for (size_t i = (self + shift) % all; i < count; i += all)
      for (uint byte = 0; byte < unit; byte += 4) *(int *)(to + i * unit + byte) = *(const int *)(from + i * unit + byte);
  }
};
template <class T, class U> __device__ event_t async_work_group_copy(T *to, U *from, size_t count, event_t event) {
  suite_uniform((unsigned long long)to);
  suite_uniform((unsigned long long)from);
  suite_uniform(count);
  suite_uniform((unsigned long long)event.to + event.number);
  event_t made(event.number ? event.number : 1);
  made.to = (char *)to;
  made.from = (const char *)from;
  made.count = count;
  made.unit = sizeof(T);
  made.copy();
  return made;
}
__device__ inline void wait_group_events(int count, event_t *events) {
  suite_uniform(count);
  for (int i = 0; i < count; ++i) {
    suite_uniform((unsigned long long)events[i].to + events[i].number);
    events[i].copy();
  }
}

// Local memory that a kernel takes as an argument has some values.
template <class T, int N> __device__ void suite_fill(T (&array)[N]) {
  size_t all = blockDim.x * blockDim.y * blockDim.z;
  for (size_t i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); i < N; i += all) array[i] = T();
  __syncthreads();
}

#define SUITE_VECTOR(T, make2, make3, make4, V2, V3, V4)                                           \
  __device__ inline V2 make2(T a) { return make2(a, a); }                                          \
  __device__ inline V3 make3(T a) { return make3(a, a, a); }                                       \
  __device__ inline V4 make4(T a) { return make4(a, a, a, a); }                                    \
  SUITE_OPERATOR(T, make2, make3, make4, V2, V3, V4, +)                                            \
  SUITE_OPERATOR(T, make2, make3, make4, V2, V3, V4, -)                                            \
  SUITE_OPERATOR(T, make2, make3, make4, V2, V3, V4, *)                                            \
  SUITE_OPERATOR(T, make2, make3, make4, V2, V3, V4, /)
#define SUITE_OPERATOR(T, make2, make3, make4, V2, V3, V4, op)                                     \
  __device__ inline V2 operator op(V2 a, V2 b) { return make2(a.x op b.x, a.y op b.y); }            \
  __device__ inline V3 operator op(V3 a, V3 b) { return make3(a.x op b.x, a.y op b.y, a.z op b.z); } \
  __device__ inline V4 operator op(V4 a, V4 b) {                                                   \
    return make4(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w);                                   \
  }                                                                                                \
  __device__ inline V2 operator op(V2 a, T b) { return make2(a.x op b, a.y op b); }                 \
  __device__ inline V3 operator op(V3 a, T b) { return make3(a.x op b, a.y op b, a.z op b); }        \
  __device__ inline V4 operator op(V4 a, T b) { return make4(a.x op b, a.y op b, a.z op b, a.w op b); } \
  __device__ inline V2 operator op(T a, V2 b) { return make2(a) op b; }                             \
  __device__ inline V3 operator op(T a, V3 b) { return make3(a) op b; }                             \
  __device__ inline V4 operator op(T a, V4 b) { return make4(a) op b; }                             \
  __device__ inline V2 &operator op##=(V2 &a, V2 b) { return a = a op b; }                          \
  __device__ inline V3 &operator op##=(V3 &a, V3 b) { return a = a op b; }                          \
  __device__ inline V4 &operator op##=(V4 &a, V4 b) { return a = a op b; }
SUITE_VECTOR(int, make_int2, make_int3, make_int4, int2, int3, int4)
SUITE_VECTOR(uint, make_uint2, make_uint3, make_uint4, uint2, uint3, uint4)
SUITE_VECTOR(float, make_float2, make_float3, make_float4, float2, float3, float4)
SUITE_VECTOR(double, make_double2, make_double3, make_double4, double2, double3, double4)
