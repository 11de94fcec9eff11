// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" __global__ void k(int m, int n, float *S, float *D) {
  using namespace cute;
  auto layout = make_layout(make_shape(m, n));
  auto tile = Shape<_128, _64>{};
  Layout<Shape<_32, _8>> threads;
  auto copy = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, threads, Layout<Shape<_4, _1>>{});
  copy_kernel_vectorized(tiled_divide(make_tensor(make_gmem_ptr(S), layout), tile),
                         tiled_divide(make_tensor(make_gmem_ptr(D), layout), tile), copy);
}
