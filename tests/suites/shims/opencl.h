// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenCL C's functions and vectors in CUDA C++.
#pragma once

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define restrict __restrict__

typedef int event_t;
#ifndef SUITE_OFFSET
#define SUITE_OFFSET 0
#endif

#define SUITE_PICK(d, v) ((d) == 0 ? v.x : (d) == 1 ? v.y : (d) == 2 ? v.z : 0)
#define SUITE_SIZE(d, v) ((d) == 0 ? v.x : (d) == 1 ? v.y : (d) == 2 ? v.z : 1)
__device__ static inline size_t get_local_id(uint d) { return SUITE_PICK(d, threadIdx); }
__device__ static inline size_t get_group_id(uint d) { return SUITE_PICK(d, blockIdx); }
__device__ static inline size_t get_local_size(uint d) { return SUITE_SIZE(d, blockDim); }
__device__ static inline size_t get_num_groups(uint d) { return SUITE_SIZE(d, gridDim); }
__device__ static inline size_t get_global_size(uint d) { return get_local_size(d) * get_num_groups(d); }
__device__ static inline size_t get_global_offset(uint) { return SUITE_OFFSET; }
__device__ static inline size_t get_global_id(uint d) {
  return SUITE_OFFSET + get_group_id(d) * get_local_size(d) + get_local_id(d);
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

// A copy by all work-items, each of elements that belong to its neighbours; a wait ends it for all of them.
template <class T, class U> __device__ event_t async_work_group_copy(T *to, U *from, size_t count, event_t event) {
  size_t all = blockDim.x * blockDim.y * blockDim.z;
  size_t self = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  for (size_t i = (self + 1) % all; i < count; i += all) to[i] = from[i];
  return event;
}
template <class E> __device__ void wait_group_events(int, E *) { __syncthreads(); }

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
