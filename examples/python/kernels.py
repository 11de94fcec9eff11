# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One entry for each problem that several examples solve: it takes the kernel for the GPU at hand.

from kernels import gemm

gemm(A, B, D)  # by gemm_sm90.py on Hopper, by gemm.py on other GPUs
"""

from functools import cache

import attention as attention_sm80
import attention_sm90
import gemm as gemm_sm80
import gemm_sm90
from attention_decode import decode_attention
from attention_parts import is_decode
from common import Array, chosen
from tilefold.base.target import Target

from tilefold.cute import utils

HOPPER = "sm_90a"


@cache
def multiprocessors() -> tuple[str, int]:
    """The target of the GPU, and how many multiprocessors it has."""
    from tilefold.driver.devices import gpu_engine

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


def attention(
    Q: Array, K: Array, V: Array, Out: Array, causal: bool = False, device: str = "auto", target: str | None = None
) -> None:
    """O = softmax(Q K^T / sqrt(D)) V for each head of each batch, for arrays of (batch, rows, heads, D).

    Hopper takes D of 64, 96, 128 and 256, rows of any number, and fewer heads of K and V; other GPUs D of 64 and 128,
    as many heads and rows of all, and a multiple of 128 rows. `target` and errors are those of `gemm`.
    """
    gpu, count = at_hand(device, target)
    depths = (64, 96, 128, 256) if gpu.arch == HOPPER else (64, 128)
    if Q.shape[3] not in depths:
        raise SystemExit(f"D = {Q.shape[3]} is none of {', '.join(map(str, depths))}")
    if gpu.arch == HOPPER and is_decode(Q, K):
        return decode_attention(Q, K, V, Out, None, device, count, causal=causal)
    if gpu.arch == HOPPER:
        config = attention_sm90.chosen_config(Q.shape[3], causal)
        return attention_sm90.attention(Q, K, V, Out, config, device, count)
    config = attention_sm80.Config(causal=causal)
    if Q.shape != K.shape or Q.shape[1] % config.rows:
        raise SystemExit(f"all arrays have the same shape, with a multiple of {config.rows} rows")
    for tensors in zip(Q, K, V, Out, strict=True):
        attention_sm80.attention(*tensors, config, device)
    return None
