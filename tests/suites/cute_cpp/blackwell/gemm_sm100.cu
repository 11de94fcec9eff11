// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls the kernel of tutorial TUTORIAL, 1 to 5, with a tile of M x N in clusters of CM x CN blocks.
using Mma = decltype(make_tiled_mma(
#if TUTORIAL < 4
    SM100_MMA_F16BF16_SS<half_t, half_t, float, 128, 256, UMMA::Major::K, UMMA::Major::K>{}
#else
    SM100_MMA_F16BF16_2x1SM_SS<half_t, half_t, float, 256, 256, UMMA::Major::K, UMMA::Major::K>{}
#endif
    ));
using Tiler = decltype(make_shape(tile_size<0>(Mma{}), tile_size<1>(Mma{}), Int<64>{}));
using ClusterShape = Shape<Int<CM>, Int<CN>, _1>;
using ClusterOfTiles = decltype(tiled_divide(make_layout(ClusterShape{}), make_tile(typename Mma::AtomThrID{})));
using SA = decltype(UMMA::tile_to_mma_shape(UMMA::Layout_K_SW128_Atom<half_t>{},
                                            partition_shape_A(Mma{}, select<0, 2>(Tiler{}))));
using SB = decltype(UMMA::tile_to_mma_shape(UMMA::Layout_K_SW128_Atom<half_t>{},
                                            partition_shape_B(Mma{}, select<1, 2>(Tiler{}))));

template <class T> __device__ auto rows(T *p, int m, int n) {
  return make_tensor(make_gmem_ptr(p), make_layout(make_shape(m, n), make_stride(n, _1{})));
}
using Halves = decltype(rows((half_t const *)nullptr, 0, 0));
using Floats = decltype(rows((float *)nullptr, 0, 0));

#if TUTORIAL == 1
#define MAPS half_t const *A, half_t const *B
#define TENSORS rows(A, m, k), rows(B, n, k), rows((float const *)C, m, n), rows(D, m, n)
#define ATOMS
#define EPILOGUE
using Storage = SharedStorage<half_t, half_t, SA, SB>;
#else
#if TUTORIAL == 2
using MapA = decltype(make_tma_atom(SM90_TMA_LOAD{}, Halves{}, SA{}, select<0, 2>(Tiler{})));
using MapB = decltype(make_tma_atom(SM90_TMA_LOAD{}, Halves{}, SB{}, select<1, 2>(Tiler{})));
#else
#if TUTORIAL == 3
using Load = SM90_TMA_LOAD_MULTICAST;
#else
using Load = SM100_TMA_2SM_LOAD_MULTICAST;
#endif
// make_tma_atom_A_sm100 and make_tma_atom_B_sm100, which NVRTC does not see
template <class Modes> __device__ auto tile_of(Modes modes) {
  return make_identity_layout(make_shape(int(), int())).compose(modes);
}
using MapA = decltype(detail::make_tma_copy_atom<half_t>(
    Load{}, Halves{}, SA{}, size<2>(ClusterOfTiles{}),
    layout<1>(Mma{}.thrfrg_A(tile_of(select<0, 2>(Tiler{}))))(_, make_tuple(_, _))));
using MapB = decltype(detail::make_tma_copy_atom<half_t>(
    Load{}, Halves{}, SB{}, size<1>(ClusterOfTiles{}),
    layout<1>(Mma{}.thrfrg_B(tile_of(select<1, 2>(Tiler{}))))(_, make_tuple(_, _))));
#endif
#if TUTORIAL == 5
using Epilogue = decltype(make_tile(Int<128>{}, Int<64>{}));
using SC = decltype(group<0, 2>(tile_to_shape(UMMA::Layout_K_SW128_Atom<float>{}, Shape<_128, _64>{})));
using MapC = decltype(make_tma_atom(SM90_TMA_LOAD{}, Floats{}, SC{}, Epilogue{}));
using MapD = decltype(make_tma_atom(SM90_TMA_STORE{}, Floats{}, SC{}, Epilogue{}));
#define MAPS                                                                                                           \
  __grid_constant__ MapA const a, __grid_constant__ MapB const b, __grid_constant__ MapC const c,                      \
      __grid_constant__ MapD const d
#define RESULTS c.get_tma_tensor(make_shape(m, n)), d.get_tma_tensor(make_shape(m, n))
#define ATOMS a, b, c, d,
#define EPILOGUE Epilogue{},
using Storage = SharedStorage<half_t, half_t, float, float, SA, SB, SC, SC>;
#else
#define MAPS __grid_constant__ MapA const a, __grid_constant__ MapB const b
#define RESULTS rows((float const *)C, m, n), rows(D, m, n)
#define ATOMS a, b,
#define EPILOGUE
using Storage = SharedStorage<half_t, half_t, SA, SB>;
#endif
#define TENSORS a.get_tma_tensor(make_shape(m, k)), b.get_tma_tensor(make_shape(n, k)), RESULTS
#endif

#if TUTORIAL == 5
extern "C" __global__ void k(int m, int n, int k, MAPS) {
#else
extern "C" __global__ void k(int m, int n, int k, MAPS, float *C, float *D) {
#endif
  gemm_device<Storage>(TENSORS, Tiler{}, EPILOGUE Mma{}, ClusterShape{}, ATOMS 1.0f, 2.0f);
}
