# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of HeCBench that are run, with arguments and references."""

from typing import Any

import numpy as np

from .tabled_kernel import Kernel

K = Kernel
f32, f64, i32, u32, u64, i64 = np.float32, np.float64, np.int32, np.uint32, np.uint64, np.int64


def _with(array: Any, at: Any, values: Any) -> Any:
    """A copy of an array with other values at some places."""
    made = np.array(array)
    made[at] = values
    return made


def _folded(array: Any, length: int, weights: Any = 1) -> Any:
    """The sums of every `length`-th element."""
    return np.bincount(np.arange(len(array)) % length, array * weights, length)


def _lcg(seeds: Any) -> Any:
    """One step of the generator of several benchmarks."""
    return (seeds.astype(u64) * 26757677 + 1) % 2147483648


def _intrinsics(start: Any, n: int) -> Any:
    """The results of atomic operations by n threads in any order."""
    made = [int(value) for value in start]
    for t in range(n):
        made[4] &= 2 * t + 7
        made[5] |= 1 << (t & 31)
        made[6] ^= t
        made[7] = 0 if made[7] >= 17 else made[7] + 1
        made[8] = 137 if made[8] == 0 or made[8] > 137 else made[8] - 1
    made[:4] = [made[0] + 10 * n, made[1] - 10 * n, max(made[2], n - 1), min(made[3], 0)]
    return np.array(made, i64).astype(i32)


def _recurrence(x: Any, s: int) -> Any:
    """Marsaglia's lagged Fibonacci generator with four lags."""
    made = [int(value) for value in x[:256]]
    for k in range(256, s):
        made.append((made[k - 55] + made[k - 119] + made[k - 179] + made[k - 256]) % 2**32)
    return np.array(made, u64).astype(u32)


def _padded(a: Any, n: int, radius: int) -> Any:
    """Sums of windows of 2 * radius + 1 elements, zero before the first."""
    wide = np.concatenate([np.zeros(radius, a.dtype), a])
    return np.array([wide[at : at + 2 * radius + 1].sum() for at in range(n)])


def _csr(r: Any) -> list[Any]:
    begins = np.concatenate([[0], np.cumsum(r.i(5, 100))]).astype(u64)
    count = int(begins[-1])
    return [100, begins, r.i(100, count, dtype=u64), r.f(count), r.f(100), r.f(100)]


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _transpose(name: str) -> K:
    return K(
        "matrixT-cuda/main.cu", name, (3, 2), (16, 16), lambda r: [r.f(48, 32), r.f(32, 48), 48, 32],
        lambda a: {0: a[1].T},
    )  # fmt: skip


def _popcount(name: str) -> K:
    return K(
        "popcount-cuda/main.cu", name, 2, 64, lambda r: [r.i(2**63, 100, dtype=u64), r.i(1, 100), 100],
        lambda a: {1: [int(x).bit_count() for x in a[0]]},
    )  # fmt: skip


def _shuffled(name: str, width: int, is_sum: bool) -> K:
    if is_sum:
        sums = K("shuffle-cuda/main.cu", name, 2, 64, lambda r: [r.i(1, 128)], lambda a: {0: width * (width - 1) // 2})
        return sums
    return K("shuffle-cuda/main.cu", name, 2, 64, lambda r: [7, r.i(1, 128)], lambda a: {1: 7})


KERNELS: tuple[K, ...] = (
    K("aligned-types-cuda/main.cu", "testKernel", 2, 64, lambda r: [r.i(9, 100), r.i(9, 100), 100],
      lambda a: {0: a[1]}, "template __global__ void testKernel<int>(int*, const int*, int);"),
    K("allreduce-cuda/collectives.cu", "kernel_add", 2, 32, lambda r: [r.f(100), r.f(100), 100, r.f(100)],
      lambda a: {3: a[0] + a[1]}),
    K("amgmk-cuda/main.cu", "relax", 2, 32,
      lambda r: [r.d(120) + 5, 3 * np.arange(41, dtype=i32), r.i(40, 120) + 40, r.d(80), r.d(40), 40],
      lambda a: {3: _with(a[3], slice(40), (a[4] - (a[0] * a[3][a[2]]).reshape(40, 3)[:, 1:].sum(1)) / a[0][::3])},
      tolerance=1e-9),
    K("aop-cuda/main.cu", "compute_partial_sums_kernel", 2, 64, lambda r: [100, r.d(100), r.d(2)],
      lambda a: {2: [a[1][:64].sum(), a[1][64:].sum()]},
      "template __global__ void compute_partial_sums_kernel<64>(int, const double*, double*);", 1e-9),
    K("aop-cuda/main.cu", "compute_final_sum_kernel", 1, 64, lambda r: [100, 70, 0.5, r.d(70)],
      lambda a: {3: _with(a[3], 0, 0.5 * a[3].sum() / 100)},
      "template __global__ void compute_final_sum_kernel<64>(int, int, double, double*);", 1e-9),
    K("asmooth-cuda/main.cu", "normalizeFilter", (3, 2), (8, 8),
      lambda r: [20, 10, r.f(200), r.i(3, 200).astype(f32)], lambda a: {2: np.where(a[3] == 0, a[2], a[2] / a[3])}),
    K("atomicCost-cuda/main.cu", "woAtomicOnGlobalMem", 1, 32, lambda r: [r.i(1, 32), 6], lambda a: {0: 3},
      "template __global__ void woAtomicOnGlobalMem<int>(int*, int);"),
    K("atomicCost-cuda/main.cu", "wiAtomicOnGlobalMem", 1, 32, lambda r: [r.i(1, 32), 6], lambda a: {0: 3},
      "template __global__ void wiAtomicOnGlobalMem<int>(int*, int);"),
    K("atomicIntrinsics-cuda/kernel.h", "testKernel", 2, 32,
      lambda r: [np.array([5, 5, 0, 9, 255, 0, 255, 3, 20], i32), 50], lambda a: {0: _intrinsics(a[0], 50)},
      "template __global__ void testKernel<int>(int*, size_t);"),
    K("atomicPerf-cuda/main.cu", "BlockRangeAtomicOnGlobalMem", 2, 32, lambda r: [r.i(1, 32), 200],
      lambda a: {0: _folded(np.ones(200), 32)},
      "template __global__ void BlockRangeAtomicOnGlobalMem<int>(int*, int);"),
    K("atomicPerf-cuda/main.cu", "WarpRangeAtomicOnGlobalMem", 2, 32, lambda r: [r.i(1, 32), 200],
      lambda a: {0: _folded(np.ones(200), 32)},
      "template __global__ void WarpRangeAtomicOnGlobalMem<int>(int*, int);"),
    K("atomicReduction-cuda/kernels.h", "atomic_reduction", 2, 32, lambda r: [r.i(99, 200), r.i(1, 1), 200],
      lambda a: {1: a[0].sum()}),
    K("atomicReduction-cuda/kernels.h", "atomic_reduction_v2", 2, 32, lambda r: [r.i(99, 200), r.i(1, 1), 200],
      lambda a: {1: a[0].sum()}),
    K("attention-cuda/kernels.h", "attention_kernel1", 2, 32,
      lambda r: [r.f(50, 8), r.f(8), r.f(50), np.zeros(1, f32), 50, 8],
      lambda a: {2: a[0] @ a[1], 3: np.exp(a[0] @ a[1]).sum()}, tolerance=1e-4),
    K("attention-cuda/kernels.h", "attention_kernel2", 2, 32, lambda r: [r.f(1) + 9, r.f(50), r.f(50), 50],
      lambda a: {2: np.exp(a[1]) / a[0][0]}, tolerance=1e-4),
    K("babelstream-cuda/main.cu", "copy_kernel", 2, 64, lambda r: [r.f(128), r.f(128)], lambda a: {1: a[0]},
      "template __global__ void copy_kernel<float>(const float*, float*);"),
    K("babelstream-cuda/main.cu", "add_kernel", 2, 64, lambda r: [r.f(128), r.f(128), r.f(128)],
      lambda a: {2: a[0] + a[1]}, "template __global__ void add_kernel<float>(const float*, const float*, float*);"),
    K("background-subtract-cuda/main.cu", "findMovingPixels", 2, 64,
      lambda r: [100, *(r.i(50, 100, dtype=np.uint8) for _ in range(5))],
      lambda a: {5: 255 * ((abs(a[1].astype(i32) - a[2]) > a[4]) | (abs(a[1].astype(i32) - a[3]) > a[4]))}),
    K("background-subtract-cuda/main.cu", "updateBackground", 2, 64,
      lambda r: [100, r.i(256, 100, dtype=np.uint8), r.i(2, 100, dtype=np.uint8), r.i(256, 100, dtype=np.uint8)],
      lambda a: {3: np.where(a[2] == 0, (0.92 * a[3].astype(f64) + 0.08 * a[1]).astype(np.uint8), a[3])}),
    K("bfs-cuda/bfs.cu", "Kernel2", 2, 64,
      lambda r: [*(r.i(2, 100, dtype=np.int8) for _ in range(3)), r.i(1, 1, dtype=np.int8), 100],
      lambda a: {0: np.where(a[1], 1, a[0]), 1: 0, 2: np.where(a[1], 1, a[2]), 3: 1}),
    K("bh-cuda/main.cu", "ClearKernel1", 2, 32, lambda r: [20, 5, r.i(9, 160)],
      lambda a: {2: _with(a[2], slice(40, None), -1)}),
    K("blas-gemm-cuda/main.cu", "matrix_mul", (2, 2), (16, 16),
      lambda r: [r.f(20, 12), r.f(12, 30), r.f(20, 30), 20, 12, 30, 0.5, 2.0],
      lambda a: {2: 0.5 * (a[0] @ a[1]) + 2 * a[2]},
      "template __global__ void matrix_mul<float>(float*, float*, float*, int, int, int, float, float);"),
    K("blockAccess-cuda/main.cu", "reference", 2, 32, lambda r: [abs(r.f(200)) * 50, r.i(9, 200, dtype=np.uint8), 200],
      lambda a: {1: a[0].astype(np.uint8)}),
    K("bwt-cuda/bwt.cu", "generate_table", 2, 32, lambda r: [r.i(9, 128), 128, 100],
      lambda a: {0: _with(np.arange(128), slice(100, None), -1)}),
    K("cfd-cuda/euler3d.cu", "initialize_buffer", 2, 64, lambda r: [r.f(100), 1.5, 100], lambda a: {0: 1.5}),
    K("channelShuffle-cuda/main.cu", "ChannelShuffleNHWCKernel", 3, 32, lambda r: [4, 12, r.f(3, 48), r.f(3, 48)],
      lambda a: {3: a[2].reshape(3, 4, 12).transpose(0, 2, 1).reshape(3, 48)},
      "template __global__ void ChannelShuffleNHWCKernel<float, 48>(int, int, const float*, float*);"),
    K("columnarSolver-cuda/kernels.cu", "setupKernel", 1, 8, lambda r: [r.i(1, 8, dtype=u32)],
      lambda a: {0: [_steps(t, t) for t in range(8)]}),
    K("conversion-cuda/main.cu", "cvt", 2, 64, lambda r: [r.i(1, 100), r.f(100) * 100, 100],
      lambda a: {0: np.trunc(a[1])}, "template __global__ void cvt<int, float>(int*, const float*, int);"),
    K("ddbp-cuda/main.cu", "pad_projections_kernel", 1, 32, lambda r: [r.d(3, 4, 5), 4, 5, 4, 1],
      lambda a: {0: _with(a[0], (1, slice(None), 0), 0)}),
    K("ddbp-cuda/main.cu", "map_boudaries_kernel", 1, 32, lambda r: [r.d(20), 20, 3.5, 0.25, 1.0],
      lambda a: {0: (np.arange(20) - 3.5) * 0.25 + 1}),
    K("dense-embedding-cuda/main.cu", "dense_esuhm2", 3, 32,
      lambda r: [r.f(96), r.f(3, 8), r.f(96), 8, np.array([0, 16, 40, 96], i32)],
      lambda a: {2: a[0] + np.concatenate([np.tile(a[1][b], n) for b, n in enumerate((2, 3, 7))])},
      "template __global__ void dense_esuhm2<float>(const float*, const float*, float*, int, const int*);"),
    K("expdist-cuda/kernel.h", "reduce_cross_term", 1, 256, lambda r: [r.f(1), r.f(300), 1, 1, 300],
      lambda a: {0: a[1].sum()},
      "template __global__ void reduce_cross_term<float>(float*, const float*, int, int, int);", 1e-4),
    K("floydwarshall-cuda/main.cu", "floydWarshallPass", (2, 2), (8, 8),
      lambda r: [_with(r.i(99, 16, 16, dtype=u32), np.diag_indices(16), 0), r.i(1, 16, 16, dtype=u32), 16, 5],
      lambda a: {0: np.minimum(a[0], a[0][:, 5:6] + a[0][5]),
                 1: np.where(a[0][:, 5:6] + a[0][5] < a[0], 5, a[1])}),
    K("floydwarshall2-cuda/main.cu", "init1", 4, 64, lambda r: [12, r.i(9, 16, 16), 16],
      lambda a: {1: _with(np.full((16, 16), 2**31 // 2 - 1), (range(12), range(12)), 0)}),
    K("fwt-cuda/kernels.cu", "modulateKernel", 2, 32, lambda r: [r.f(100), r.f(100), 100, 0.01],
      lambda a: {0: a[0] * a[1] * f32(0.01)}),
    K("gaussian-cuda/gaussianElim.cu", "fan1", 1, 32, lambda r: [r.f(16, 16), r.f(16, 16), 16, 3],
      lambda a: {1: _with(a[1], (slice(4, None), 3), a[0][4:, 3] / a[0][3, 3])}),
    K("gaussian-cuda/gaussianElim.cu", "fan2", (2, 2), (8, 8), lambda r: [r.f(16, 16), r.f(16), r.f(16, 16), 16, 3],
      lambda a: {0: _with(a[0], (slice(4, None), slice(3, None)), a[0][4:, 3:] - np.outer(a[2][4:, 3], a[0][3, 3:])),
                 1: _with(a[1], slice(4, None), a[1][4:] - a[2][4:, 3] * a[1][3])}),
    K("heat-cuda/heat.cu", "initial_value", 2, 64, lambda r: [10, 0.1, 1.1, r.d(100)],
      lambda a: {3: np.outer(*[np.sin(np.pi * 0.1 * np.arange(1, 11) / 1.1)] * 2).reshape(-1)}, tolerance=1e-9),
    K("heat2d-cuda/main.cu", "dev_lapl_iter", 2, 64, lambda r: [r.f(8, 16), r.f(8, 16), 0.2, 0.3, 16, 8],
      lambda a: {0: f32(0.3) * a[1] + f32(0.2) * sum(np.roll(a[1], s, x) for s in (1, -1) for x in (0, 1))}),
    K("histogram-cuda/histogram_smem_atomics.h", "histogram_smem_accum", 1, 128,
      lambda r: [r.i(9, 3, 100, dtype=u32), 3, r.i(1, 96, dtype=u32)], lambda a: {}, fault="E3202", instance=
      "template __global__ void histogram_smem_accum<100, 3, 32>(const unsigned*, int, "
      "unsigned*);"),
    K("hogbom-cuda/kernels.cu", "k_subtractPSF", (2, 2), (8, 8),
      lambda r: [r.f(20, 20), 20, r.f(20, 20), 20, 4, 5, 12, 14, 2, 3, 1.5, 0.5],
      lambda a: {2: _with(a[2], (slice(5, 15), slice(4, 13)), a[2][5:15, 4:13] - f32(0.75) * a[0][2:12, 2:11])}),
    K("hybridsort-cuda/mergesort.cu", "sortElement", 1, 64, lambda r: [r.f(50, 4), r.f(50, 4), 50],
      lambda a: {0: np.sort(a[1], 1)}),
    K("is-cuda/kernels.h", "full_verify_gpu_kernel_1", 2, 32, lambda r: [r.i(9, 64), r.i(9, 64), 2, 32],
      lambda a: {1: a[0]}),
    K("is-cuda/kernels.h", "full_verify_gpu_kernel_2", 2, 32,
      lambda r: [(x := r.i(8, 64)), np.cumsum(np.bincount(x, minlength=8)).astype(i32), r.i(1, 64), 2, 32],
      lambda a: {2: np.sort(a[0]), 1: np.cumsum(np.bincount(a[0], minlength=8)) - np.bincount(a[0], minlength=8)}),
    K("jaccard-cuda/main.cu", "jaccard_jw", 2, 32,
      lambda r: [100, r.f(100), 0.5, abs(r.f(100)), abs(r.f(100)) + 9, r.f(100)],
      lambda a: {5: f32(0.5) * a[1] * (a[3] / (a[4] - a[3]))}, tolerance=1e-4,
      instance="template __global__ void jaccard_jw<true, float>(int, const float*, float, const float*, const float*, "
      "float*);"),
    K("kmeans-cuda/cluster.cu", "feature_transpose", 2, 32, lambda r: [r.f(7, 50), r.f(50, 7), 7, 50],
      lambda a: {0: a[1].T}),
    K("knn-cuda/main.cu", "cuParallelSqrt", (2, 1), (16, 4), lambda r: [abs(r.f(4, 20)), 20, 3],
      lambda a: {0: _with(a[0], slice(3), np.sqrt(a[0][:3]))}),
    K("lanczos-cuda/lanczos.cu", "multiply_inplace_kernel", 2, 64, lambda r: [100, r.f(100), 1.5],
      lambda a: {1: a[1] * f32(1.5)}, "template __global__ void multiply_inplace_kernel<float>(int, float*, float);"),
    K("lanczos-cuda/lanczos.cu", "saxpy_inplace_kernel", 2, 64, lambda r: [100, r.f(100), r.f(100), 1.5],
      lambda a: {1: a[1] + f32(1.5) * a[2]},
      "template __global__ void saxpy_inplace_kernel<float>(int, float*, const float*, float);"),
    K("langevin-cuda/main.cu", "k0", 2, 32, lambda r: [abs(r.f(64)) + 1, r.f(64)],
      lambda a: {1: np.cosh(a[0]) / np.sinh(a[0]) - 1 / a[0]}),
    K("langevin-cuda/main.cu", "k1", 2, 32, lambda r: [abs(r.f(64)) + 1, r.f(64)],
      lambda a: {1: 1 / np.tanh(a[0]) - 1 / a[0]}),
    K("layout-cuda/main.cu", "AoSKernel", 1, 4, lambda r: [r.i(9, 4, 4096), r.i(1, 4)],
      lambda a: {1: a[0][:, :8].sum(1)}, "template __global__ void AoSKernel<8>(const AppleTree*, int*);"),
    K("layout-cuda/main.cu", "SoAKernel", 1, 32, lambda r: [r.i(9, 8, 4096), r.i(1, 32)],
      lambda a: {1: a[0][:, :32].sum(0)}, "template __global__ void SoAKernel<8>(const ApplesOnTrees*, int*);"),
    K("lfib4-cuda/main.cu", "firstColGPU", 1, 256, lambda r: [r.i(2**32, 512, dtype=u32), 512],
      lambda a: {0: _recurrence(a[0], 512)}),
    K("matrix-rotate-cuda/main.cu", "rotate_matrix_parallel", 1, 32, lambda r: [r.f(10, 10), 10],
      lambda a: {0: np.rot90(a[0], -1)}),
    K("matrixT-cuda/main.cu", "copy", (3, 2), (16, 16), lambda r: [r.f(32, 48), r.f(32, 48), 48, 32],
      lambda a: {0: a[1]}),
    *map(_transpose, ("transposeNaive", "transposeCoalesced", "transposeNoBankConflicts", "transposeDiagonal")),
    K("metropolis-cuda/kernel_metropolis.h", "kernel_reset", 2, 64, lambda r: [r.i(9, 100), 100, 7], lambda a: {0: 7},
      "template __global__ void kernel_reset<int>(int*, int, int);"),
    K("miniWeather-cuda/kernels.h", "compute_tend_x", (2, 1, 4), (8, 8),
      lambda r: [r.d(4, 9, 13), r.d(4, 8, 12), 12, 8, 2],
      lambda a: {1: -(a[0][:, :8, 1:] - a[0][:, :8, :-1]) / 2}),
    K("moe-sum-cuda/kernels.h", "moe_sum_kernel", 3, 32, lambda r: [r.f(3, 40), r.f(3, 2, 40), 40],
      lambda a: {0: a[1].sum(1)}, "template __global__ void moe_sum_kernel<float, 2>(float*, const float*, int);"),
    *(
        K("mrc-cuda/main.cu", name, 2, 64,
          lambda r: [100, r.i(2, 100) * 2 - 1, *(r.f(100) for _ in range(3)), 0.25, r.f(100), r.f(100)],
          lambda a: {6: np.where(-a[1] * (a[2] - a[3]) + 0.25 < 0, 0, -a[1] * a[4]),
                     7: np.where(-a[1] * (a[2] - a[3]) + 0.25 < 0, 0, a[1] * a[4])})
        for name in ("MRCGradient", "MRCGradient2")
    ),
    K("mriQ-cuda/computeQ.cu", "ComputePhiMag_GPU", 1, 256, lambda r: [r.f(200), r.f(200), r.f(200), 200],
      lambda a: {2: a[0] ** 2 + a[1] ** 2}),
    K("multimaterial-cuda/compact.cu", "ccc_loop2_2", 2, 32,
      lambda r: [r.i(5, 50), r.d(50), r.d(50), r.d(50) + 9, r.d(5), r.d(50), r.i(9, 50), 50],
      lambda a: {5: a[4][a[0]] * a[1] * a[2] / a[3]}),
    K("nn-cuda/nearestNeighbor.cu", "nn", 2, 32, lambda r: [50, 1.5, 2.5, r.f(50, 2), r.f(50)],
      lambda a: {4: np.sqrt((1.5 - a[3][:, 0]) ** 2 + (2.5 - a[3][:, 1]) ** 2)}),
    K("openmp-cuda/main.cu", "addConstant", 2, 32, lambda r: [r.i(9, 64), 3, 10],
      lambda a: {0: a[0] + sum(i % 3 for i in range(10))}),
    K("opticalFlow-cuda/addKernel.cuh", "AddKernel", 2, 64, lambda r: [r.f(100), r.f(100), 100, r.f(100)],
      lambda a: {3: a[0] + a[1]}),
    K("overlap-cuda/main.cu", "incKernel", 2, 64, lambda r: [r.i(9, 100), r.i(9, 100), 100, 5],
      lambda a: {0: a[1] + 5}),
    K("p2p-cuda/main.cu", "SimpleKernel", 2, 64, lambda r: [r.f(128), r.f(128)], lambda a: {1: a[0] * 2}),
    K("page-rank-cuda/main.cu", "map", 1, 32, lambda r: [r.i(2, 20, 20), r.f(20), r.f(20, 20), r.i(9, 20) + 1, 20],
      lambda a: {2: a[0] * (a[1] / a[3])[:, None]}),
    K("pcc-cuda/device.cu", "ker", 3, 64, lambda r: [r.f(12, 12), r.f(66), 12],
      lambda a: {1: a[0].T[np.triu_indices(12, 1)]}),
    K("pitch-cuda/main.cu", "parallelSimple2DAccess", (2, 2), (8, 8), lambda r: [r.f(10, 12), 12, 10],
      lambda a: {0: 1 / (1 + np.exp(-a[0]))}),
    K("pitch-cuda/main.cu", "parallelPitched2DAccess", (2, 2), (8, 8), lambda r: [r.f(10, 16), 64, 12, 10],
      lambda a: {0: _with(a[0], (slice(None), slice(12)), 1 / (1 + np.exp(-a[0][:, :12])))}),
    *map(_popcount, ("pc1", "pc2", "pc3", "pc4", "pc6")),
    K("prefetch-cuda/main.cu", "add", 2, 32, lambda r: [100, r.f(100), r.f(100)], lambda a: {2: a[1] + a[2]}),
    K("qkv-cuda/main.cu", "matmul_forward_kernel1", (2, 2), (8, 8),
      lambda r: [r.f(12, 10), r.f(12, 6), r.f(10, 6), r.f(10), 12, 6, 10], lambda a: {0: a[1] @ a[2].T + a[3]}),
    K("qkv-cuda/main.cu", "add_bias", 2, 32, lambda r: [r.f(2, 5, 10), r.f(10), 2, 5, 10],
      lambda a: {0: a[0] + a[1]}),
    K("qtclustering-cuda/kernels_common.h", "reduce_card_device", 1, 1, lambda r: [r.i(99, 20, 2), 20],
      lambda a: {0: _with(a[0], 0, a[0][np.argmax(a[0][:, 0])])}),
    K("randomAccess-cuda/main.cu", "initTable", 2, 64, lambda r: [r.i(9, 100, dtype=u64), 100],
      lambda a: {0: np.arange(100)}),
    K("reaction-cuda/kernels.cu", "reaction_gray_scott", 2, 32,
      lambda r: [*(r.f(100) for _ in range(4)), 100, 0.25, 0.5],
      lambda a: {2: 0.25 * (1 - a[0]) - a[0] * a[1] ** 2, 3: a[0] * a[1] ** 2 - 0.75 * a[1]}),
    K("reaction-cuda/kernels.cu", "construct_laplacian", 2, 32, lambda r: [*(r.f(100) for _ in range(4)), 100, 0.25],
      lambda a: {0: 0.25 * (a[1] + a[2] + a[3])}, tolerance=1e-4),
    *(
        K("relu-cuda/main.cu", name, 2, 64, lambda r: [100, r.i(2**32, 100, dtype=u32).view(i32), r.i(1, 100)],
          lambda a: {2: np.maximum(a[1].view(np.int8), 0).view(i32)})
        for name in ("Relu_impl1", "Relu_impl2")
    ),
    K("reverse-cuda/main.cu", "reverse", 1, 256, lambda r: [r.i(99, 256), 256], lambda a: {0: a[0][::-1]}),
    K("sa-cuda/kernels.h", "Init_d_s12", 2, 32, lambda r: [r.i(9, 50), 50],
      lambda a: {0: np.arange(50) + np.arange(50) // 2 + 1}),
    K("sad-cuda/main.cu", "get_num_of_occurrences", 2, 64, lambda r: [128, r.i(4, 128), r.i(1, 1) + 2, r.i(1, 1)],
      lambda a: {3: (a[1] == 2).sum()}),
    K("scan2-cuda/main.cu", "blockAddition", 3, 32, lambda r: [r.f(3), r.f(3, 32)],
      lambda a: {1: a[1] + a[0][:, None]}),
    K("seam-carving-cuda/kernels.h", "compute_M_kernel_iterate0", 1, 128,
      lambda r: [*(r.i(999, 100, dtype=np.int16) for _ in range(3)), r.i(1, 100), 100, 90],
      lambda a: {3: _with(a[3], slice(90), np.minimum(np.minimum(a[0], a[1]), a[2])[:90])}),
    *(_shuffled(f"bcast_shfl_sg{n}", n, False) for n in (32,)),
    *(_shuffled(f"bcast_shfl_xor_sg{n}", n, True) for n in (8, 16, 32)),
    K("silu-cuda/main.cu", "silu_forward_kernel", 2, 64, lambda r: [r.f(100), r.f(100), 100],
      lambda a: {1: a[0] / (1 + np.exp(-a[0]))}),
    K("simpleMultiDevice-cuda/main.cu", "reduceKernel", 2, 32, lambda r: [r.f(64), r.f(200), 200],
      lambda a: {0: _folded(a[1], 64)}),
    K("simpleSpmv-cuda/kernels.cu", "mv_csr", 2, 64, _csr,
      lambda a: {5: np.bincount(np.repeat(np.arange(100), np.diff(a[1].astype(i64))), a[3] * a[4][a[2]], 100)}),
    K("simpleSpmv-cuda/kernels.cu", "mv_dense", 1, 32, lambda r: [20, r.f(20, 20), r.f(20), r.f(20)],
      lambda a: {3: a[1] @ a[2]}),
    K("softmax-cuda/main.cu", "softMax", 1, 32, lambda r: [20, 30, r.f(20, 30), r.f(20, 30)],
      lambda a: {3: _softmax(a[2])}),
    K("stddev-cuda/main.cu", "sampleKernel", 1, 64, lambda r: [abs(r.f(50)), 50, 7],
      lambda a: {0: np.sqrt(a[0] / 7)}, "template __global__ void sampleKernel<float, int>(float*, int, int);"),
    K("stencil1d-cuda/stencil_1d.cu", "stencil_1d", 2, 256, lambda r: [r.i(9, 519), r.i(1, 512)],
      lambda a: {1: _padded(a[0], 512, 7)}),
    K("streamOrderedAllocation-cuda/main.cu", "vectorAddGPU", 2, 64, lambda r: [r.f(100), r.f(100), r.f(100), 100],
      lambda a: {2: a[0] + a[1]}),
    K("triad-cuda/triad.cu", "triad", 2, 64, lambda r: [r.f(128), r.f(128), r.f(128), 1.75],
      lambda a: {2: a[0] + f32(1.75) * a[1]}),
    K("upsample-cuda/main.cu", "upsample_forward_kernel2", (1, 1, 6), (8, 8),
      lambda r: [r.f(2, 3, 5, 6), r.f(2, 3, 10, 12), 2, 3, 5, 6], lambda a: {1: a[0].repeat(2, 2).repeat(2, 3)}),
    K("vote-cuda/kernels.h", "VoteAnyKernel1", 1, 64,
      lambda r: [_with(r.i(1, 64, dtype=u32), 40, 1), r.i(9, 64, dtype=u32), 2], lambda a: {1: np.arange(64) >= 32}),
    K("word2vec-cuda/cbow.cu", "device_memset", 2, 64, lambda r: [r.f(100), 100], lambda a: {0: 0}),
    K("zerocopy-cuda/main.cu", "vectorAddGPU", 2, 64, lambda r: [r.f(100), r.f(100), r.f(100), 100],
      lambda a: {2: a[0] + a[1]}),
)  # fmt: skip


def _steps(seed: int, count: int) -> int:
    made = np.array([seed], u64)
    for _ in range(count):
        made = _lcg(made)
    return int(made[0])
