// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" __global__ void k(int m, int n, int k, cute::half_t const *A, cute::half_t const *B, cute::half_t *C) {
  using namespace cute;
  auto tile = Shape<_128, _128, _64>{};
  auto rows = composition(Swizzle<3, 3, 3>{}, Layout<Shape<_8, Shape<_8, _8>>, Stride<_8, Stride<_1, _64>>>{});
  auto operands = tile_to_shape(rows, Shape<_128, _64, _3>{});
  auto copy = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{},
                              Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
  auto mma = make_tiled_mma(SM80_16x8x16_F16F16F16F16_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
  Copy_Atom<SM75_U32x4_LDSM_N, half_t> load;
  gemm_device(make_shape(m, n, k), tile, A, make_stride(k, _1{}), operands, copy, load, B, make_stride(k, _1{}),
              operands, copy, load, C, make_stride(_1{}, m), Layout<Shape<_128, _128>>{}, mma, half_t(1.0f),
              half_t(0.0f));
}
