# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One entry for each problem that several examples solve: it takes the kernel for the GPU at hand.

from kernels import gemm

gemm(A, B, D)  # by gemm_sm90.py on Hopper, by gemm.py on other GPUs
"""

from functools import cache

import gemm as gemm_sm80
import gemm_sm90
from common import Array, chosen
from tilefold.base.target import Target

from tilefold.cute import utils

HOPPER = "sm_90a"


@cache
def multiprocessors() -> tuple[str, int]:
    """The target of the GPU, and how many multiprocessors it has."""
    from tilefold.running.devices import gpu_engine

    return gpu_engine(0).driver.target.arch, utils.HardwareInfo().get_device_multiprocessor_count()


def at_hand(device: str, target: str | None) -> tuple[Target, int]:
    """The GPU that a kernel is chosen for, and its multiprocessors: the first one, or what the simulator stands for."""
    arch, count = multiprocessors() if chosen(device) == "cuda" else (HOPPER, 132)
    return Target(target or arch), count


def gemm(
    A: Array,
    B: Array,
    D: Array,
    bias: Array | None = None,
    activation: gemm_sm90.Activation | None = None,
    device: str = "auto",
    target: str | None = None,
) -> None:
    """D = activation(A @ B^T + bias) for A (M x K), B (N x K), D (M x N) and a bias of N elements.

    Hopper takes the types, orders and sizes of gemm_sm90.py; other GPUs f16 with the last index contiguous, and M, N
    and K that are multiples of the tile of gemm.py. `target` chooses as for another GPU; the simulator's is sm_90a.
    Raises SystemExit for sizes that the kernel does not take, TilefoldError where there is no GPU or it is too old.
    """
    gpu, count = at_hand(device, target)
    if gpu.arch == HOPPER:
        return gemm_sm90.gemm(A, B, D, device=device, blocks=count, bias=bias, activation=activation)
    config = gemm_sm80.DEFAULT
    if gpu.max_shared_bytes < 2 * (config.m + config.n) * config.k * config.stages:
        config = gemm_sm80.Config(stages=2)
    return gemm_sm80.gemm(A, B, D, bias, activation, config, device)
