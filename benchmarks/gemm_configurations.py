# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The configurations of the GEMM kernels that come into question for a problem; the fastest is measured."""

from collections.abc import Sequence

Configuration = dict[str, int | str]

SMALL_TILES: Sequence[Configuration] = (
    {"TILE_N": 128},
    {"TILE_N": 64, "WARPS_N": 2, "STAGES": 4},
    {"TILE_M": 64, "TILE_N": 128, "STAGES": 4},
)
"""For problems that have fewer tiles of 128 x 256 than the GPU has multiprocessors."""


def configurations(
    type: str, m: int, n: int, multiprocessors: int, *, narrow: bool = False, scaled: bool = False
) -> list[Configuration]:
    """Of a product D = A * B^T of (m,n): of ordinary arithmetic for f32, else of tensor cores.

    `narrow` is for operands that cannot be copied 16 bytes at a time, `scaled` for results of s8 in f16.
    """
    match type:
        case "f16" | "bf16" if narrow:
            return [{}, {"TILE_N": 128}]
        case "f16" | "bf16":
            if -(-m // 128) * -(-n // 256) < multiprocessors:
                return [{}, *SMALL_TILES]
            persistent: Configuration = {"BLOCKS": multiprocessors, "GROUP": 16}
            return [persistent, {"BLOCKS": multiprocessors}, {"STAGES": 3}]
        case "tf32":
            return [{"TILE_N": 256}, {"TILE_N": 256, "STAGES": 4}]
        case "s8":
            early: Configuration = {"TILE_N": 256, "LOAD_A": 0, "LOAD_B": 1}
            return [early, {**early, "BLOCKS": multiprocessors} if scaled else {"LOAD_A": 0, "LOAD_B": 1}]
        case "f64":
            return [{"ATOM_M": 16, "ATOM_K": 8}, {"ATOM_M": 16, "ATOM_K": 4}]
        case "f32":
            large: Configuration = {"TILE_M": 256, "WARPS_M": 4, "WARPS_N": 2, "LANES_M": 4, "MIN_BLOCKS": 1}
            return [{}, large]
        case _:
            return [{}]
