// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GPUVerify's assertions and preconditions as checks at run time.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define SUITE_CHECK(name)                            \
  __device__ static inline bool suite_##name(bool holds) { \
    if (!holds) __assertfail(#name, "", 0, "", 1);   \
    return true;                                     \
  }
SUITE_CHECK(assertion)
SUITE_CHECK(precondition)
SUITE_CHECK(invariant)
__device__ static inline void *suite_memset(void *to, int byte, size_t count) {
  for (size_t i = 0; i < count; ++i) ((char *)to)[i] = byte;
  return to;
}
__device__ static inline void *suite_memcpy(void *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; ++i) ((char *)to)[i] = ((const char *)from)[i];
  return to;
}
#define __builtin_memset suite_memset
#define __builtin_memcpy suite_memcpy
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)

#define __assert(e) suite_assertion(!!(e))
#define __requires(e) suite_precondition(!!(e))
#define __global_requires(...)
#define __global_ensures(...)
#define __global_assert(...)
#define __assume(e) suite_precondition(!!(e))
#define __invariant(e) suite_invariant(!!(e))
#define __global_invariant(e) suite_invariant(!!(e))
#define __function_wide_invariant(...) ((void)0)
#define __function_wide_candidate_invariant(...) ((void)0)
#define __candidate_invariant(...) true
#define __candidate_global_invariant(...) true
#define __ensures(...) ((void)0)
#define __axiom(...)
#define __implies(a, b) (!(a) || (b))
#define __ite(a, b, c) ((a) ? (b) : (c))
#define __enabled() true
#define __requires_fresh_array(...) ((void)0)
#define __array_snapshot(...) ((void)0)
#define __writes_to(...) ((void)0)
#define __reads_from(...) ((void)0)
#define __mod_pow2(a, b) ((a) & ((b) - 1))
#define __barrier_invariant_1(...) ((void)0)
#define __barrier_invariant_2(...) ((void)0)
#define __barrier_invariant_binary_1(...) ((void)0)
#define __barrier_invariant_3(...) ((void)0)
#define __barrier_invariant_5(...) ((void)0)
#define __barrier_invariant_7(...) ((void)0)
#define __barrier_invariant_9(...) ((void)0)
#define __barrier_invariant_13(...) ((void)0)
#define __barrier_invariant_15(...) ((void)0)
#define __barrier_invariant_17(...) ((void)0)
#define __barrier_invariant_19(...) ((void)0)
#ifndef NULL
#define NULL 0
#endif
