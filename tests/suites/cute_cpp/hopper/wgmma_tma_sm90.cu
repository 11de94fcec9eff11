// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
using namespace cute;

using Operands = decltype(tile_to_shape(GMMA::Layout_MN_SW128_Atom<half_t>{}, Shape<_128, _64, _3>{}));
using Global = decltype(make_tensor((half_t const *)nullptr, make_shape(int(), int()), make_stride(_1{}, int())));
using Map = decltype(make_tma_atom(SM90_TMA_LOAD{}, Global{}, Operands{}(_, _, 0), Shape<_128, _64>{}));

extern "C" __global__ void k(int m, int n, int k, __grid_constant__ Map const tma_a, __grid_constant__ Map const tma_b,
                             half_t *C) {
  auto mma = make_tiled_mma(SM90_64x64x16_F16F16F16_SS<GMMA::Major::MN, GMMA::Major::MN>{});
  using MapOf = Map;
  gemm_device<decltype(make_shape(m, n, k)), Shape<_128, _128, _64>, half_t, Operands, MapOf, half_t, Operands, MapOf>(
      make_shape(m, n, k), Shape<_128, _128, _64>{}, nullptr, tma_a, nullptr, tma_b, C, make_stride(_1{}, m), mma,
      half_t(1.0f), half_t(0.0f));
}
