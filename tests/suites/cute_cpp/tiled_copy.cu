// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" __global__ void k(int m, int n, float *S, float *D) {
  using namespace cute;
  auto layout = make_layout(make_shape(m, n));
  auto tile = Shape<_128, _64>{};
  Layout<Shape<_32, _8>> threads;
  copy_kernel(tiled_divide(make_tensor(make_gmem_ptr(S), layout), tile),
              tiled_divide(make_tensor(make_gmem_ptr(D), layout), tile), threads);
}
