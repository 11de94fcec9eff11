// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" __global__ void k(int m, int n, int k, cute::half_t const *A, cute::half_t const *B, cute::half_t *C) {
  using namespace cute;
  auto tile = Shape<_128, _128, _64>{};
  auto operands = tile_to_shape(GMMA::Layout_MN_SW128_Atom<half_t>{}, Shape<_128, _64, _3>{});
  auto copy = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{}, Layout<Shape<_16, _8>>{},
                              Layout<Shape<_8, _1>>{});
  auto mma = make_tiled_mma(SM90_64x64x16_F16F16F16_SS<GMMA::Major::MN, GMMA::Major::MN>{});
  gemm_device(make_shape(m, n, k), tile, A, make_stride(_1{}, m), operands, copy, B, make_stride(_1{}, n), operands,
              copy, C, make_stride(_1{}, m), mma, half_t(1.0f), half_t(0.0f));
}
