// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// D = A * B^T of f16 with sums in f32, by kernels of CUTLASS for sm_90a: built by benchmarks/cutlass_peer.py against
// the headers of a checkout of CUTLASS, which tilefold does not contain. A, B and D have contiguous rows.

#include <cuda_runtime.h>

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using namespace cute;
using Half = cutlass::half_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;

template <class Tile, class Cluster, class Mainloop, class Epilogue>
struct HalfGemm {
    using Store = typename cutlass::epilogue::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
        cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, 8, Half, Rows, 8,
        Epilogue>::CollectiveOp;
    using Multiply = typename cutlass::gemm::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Rows, 8, Half, Columns, 8, float, Tile, Cluster,
        cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Store::SharedStorage))>,
        Mainloop>::CollectiveOp;
    using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Multiply, Store>;
    using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

    static int run(void *a, void *b, void *d, int m, int n, int k, int blocks, cudaStream_t stream) {
        auto rows = [](int64_t columns) { return make_stride(columns, _1{}, int64_t(0)); };
        cutlass::KernelHardwareInfo gpu;
        gpu.sm_count = blocks;
        typename Gemm::Arguments arguments{
            cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1},
            {static_cast<Half *>(a), rows(k), static_cast<Half *>(b), rows(k)},
            {{1.0f, 0.0f}, nullptr, {}, static_cast<Half *>(d), rows(n)}, gpu};
        Gemm gemm;
        auto status = gemm.initialize(arguments, nullptr, stream);
        if (status == cutlass::Status::kSuccess)
            status = gemm.run(stream);
        return static_cast<int>(status);
    }
};

namespace gemm = cutlass::gemm;
namespace epilogue = cutlass::epilogue;
using InTurns = HalfGemm<Shape<_128, _128, _64>, Shape<_2, _1, _1>, gemm::KernelTmaWarpSpecializedPingpong,
                        epilogue::TmaWarpSpecialized>;
using Together = HalfGemm<Shape<_128, _256, _64>, Shape<_2, _1, _1>, gemm::KernelTmaWarpSpecializedCooperative,
                         epilogue::TmaWarpSpecializedCooperative>;

// Queues a product on a stream: 0, or the status of CUTLASS. `together`: two warpgroups share a tile.
extern "C" int cutlass_gemm(void *a, void *b, void *d, int m, int n, int k, int blocks, int together, void *stream) {
    auto on = static_cast<cudaStream_t>(stream);
    return together ? Together::run(a, b, d, m, n, k, blocks, on) : InTurns::run(a, b, d, m, n, k, blocks, on);
}
