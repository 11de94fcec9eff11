// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" __global__ void k(int m, int n, int k, float const *A, float const *B, float *C) {
  using namespace cute;
  auto tile = Shape<_128, _128, _8>{};
  auto operands = Layout<Shape<_128, _8>>{};
  auto copy = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_32, _8>>{},
                              Layout<Shape<_4, _1>>{});
  auto mma = make_tiled_mma(UniversalFMA<float, float, float>{}, Layout<Shape<_16, _16, _1>>{});
  gemm_device(make_shape(m, n, k), tile, A, make_stride(_1{}, m), operands, copy, B, make_stride(_1{}, n), operands,
              copy, C, make_stride(_1{}, m), Layout<Shape<_128, _128>>{}, mma, 1.0f, 0.0f);
}
