# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processor time that the server of the tools for agents takes for its verdict on a kernel, as it is and with a
fault (`python -m benchmarks.verdicts`): kernels of the kind and length of KernelBench's first level, at small sizes.
"""

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.record import Figure, Record, add_options, circumstances, keep_record, this_machine
from tilefold.tools.agents.server import Tools, Worker

TARGET_S = 1.0
"""The most seconds of a verdict after the first one."""


@dataclass(frozen=True)
class Kernel:
    """A kernel, the words of it that a fault replaces, and the arguments of the tool `check`."""

    name: str
    file: str
    text: str
    right: str
    wrong: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def faulty(self) -> str:
        """The kernel with the fault."""
        assert self.text.count(self.right) == 1
        return self.text.replace(self.right, self.wrong)


_MATMUL = """\
__global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K) {
  __shared__ float a[16][16], b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < K; k += 16) {
    a[y][x] = row < M && k + x < K ? A[row * K + k + x] : 0.f;
    b[y][x] = column < N && k + y < K ? B[(k + y) * N + column] : 0.f;
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += a[y][i] * b[i][x];
    __syncthreads();
  }
  if (row < M && column < N) C[row * N + column] = sum;
}
"""
_SOFTMAX = """\
__device__ float combined(float v, bool add) {
  __shared__ float parts[8];
  for (int d = 16; d; d /= 2) {
    float other = __shfl_xor_sync(~0u, v, d);
    v = add ? v + other : fmaxf(v, other);
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = parts[0];
  for (int i = 1; i < 8; i++) v = add ? v + parts[i] : fmaxf(v, parts[i]);
  __syncthreads();
  return v;
}
__global__ void softmax(const float *X, float *Y, int n) {
  const float *x = X + blockIdx.x * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) most = fmaxf(most, x[i]);
  most = combined(most, false);
  for (int i = threadIdx.x; i < n; i += 256) sum += __expf(x[i] - most);
  sum = combined(sum, true);
  for (int i = threadIdx.x; i < n; i += 256) Y[blockIdx.x * n + i] = __expf(x[i] - most) / sum;
}
"""
_CONVOLUTION = """\
__global__ void convolve(const float *X, const float *W, float *Y, int C, int H, int K) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, k = blockIdx.z, size = H - 2;
  if (x >= size || y >= size) return;
  float sum = 0;
  for (int c = 0; c < C; c++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) sum += X[(c * H + y + i) * H + x + j] * W[((k * C + c) * 3 + i) * 3 + j];
  Y[(k * size + y) * size + x] = sum;
}
"""
_PYTHON = """\
import numpy as np

from tilefold import cute


@cute.kernel
def matmul(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    x, y, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    a, b = [cute.make_smem_tensor(cute.make_layout((16, 16)), cute.Float32) for _ in range(2)]
    total = cute.Float32(0)
    for k in cute.range(A.shape[1] // 16):
        a[y, x] = A[by * 16 + y, k * 16 + x]
        b[y, x] = B[k * 16 + y, bx * 16 + x]
        cute.arch.sync_threads()
        for i in range(16):
            total = total + a[y, i] * b[i, x]
        cute.arch.sync_threads()  # before the next tiles
    C[by * 16 + y, bx * 16 + x] = total


def case():
    A, B = np.random.default_rng(0).normal(size=(2, 64, 64)).astype(np.float32)
    return matmul(A, B, np.zeros((64, 64), np.float32)), {"grid": (4, 4), "block": (16, 16)}
"""
KERNELS = (
    Kernel("matrix product, CUDA C++", "matmul.cu", _MATMUL, "    __syncthreads();\n  }", "  }", {
        "grid": "4,4", "block": "16,16", "fills": {"A": "normal(seed=0)", "B": "normal(seed=1)"},
        "arguments": {**dict.fromkeys("ABC", "f32[64,64]"), **dict.fromkeys("MNK", "64")},
    }),
    Kernel("softmax, CUDA C++", "softmax.cu", _SOFTMAX, "parts[i]);\n  __syncthreads();", "parts[i]);", {
        "grid": "16", "block": "256", "fills": {"X": "normal(seed=0)"},
        "arguments": {**dict.fromkeys("XY", "f32[16,1000]"), "n": "1000"},
    }),
    Kernel("convolution, CUDA C++", "convolve.cu", _CONVOLUTION, "x >= size", "x > size", {
        "grid": "2,4,8", "block": "16,8", "fills": {"X": "normal(seed=0)", "W": "normal(seed=1)"},
        "arguments": {"X": "f32[4,32,32]", "W": "f32[8,4,3,3]", "Y": "f32[8,30,30]", "C": "4", "H": "32", "K": "8"},
    }),
    Kernel("matrix product, Python", "matmul.py", _PYTHON, "        cute.arch.sync_threads()  # before", "        #"),
)  # fmt: skip


def measure(kernels: Sequence[Kernel] = KERNELS, repeat: int = 3, **facts: str) -> Record:
    """The median times of `repeat` verdicts each, after the first one of the server."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(Path(folder), 60, 2048)
        tools = Tools(worker)
        tools.layout("8:1")
        for kernel in kernels:
            for name, text, verdict in (("", kernel.text, "clean"), (", with a fault", kernel.faulty, "faults")):
                seconds: list[float] = []
                for _ in range(repeat):
                    before = _spent(worker)
                    answer = tools.check(kernel.file, text, **kernel.options)
                    seconds.append(_spent(worker) - before)
                    assert answer.get("report", {}).get("verdict") == verdict, answer
                figures.append(Figure(kernel.name + name, median(seconds), "s", target=TARGET_S, at_most=True))
        worker.close()
    return Record("verdicts by a warm process", circumstances(this_machine(), **facts), tuple(figures), "verdicts")


def _spent(worker: Worker) -> float:
    """The seconds of processor time of the warm process and its copies, as Linux tells them."""
    stat = Path(f"/proc/{worker.process_id}/stat").read_text()
    return sum(int(ticks) for ticks in stat.rpartition(")")[2].split()[11:15]) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints and keeps the times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    add_options(parser)
    args = parser.parse_args(arguments)
    keep_record(measure(commit=args.commit), args.out)


if __name__ == "__main__":
    main()
