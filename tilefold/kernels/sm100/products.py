# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on sm_100a: those of whole tiles by the tensor core of a block, all others by that of a warp."""

from typing import Any

from ..arguments import Array
from ..replay import Launches
from ..sm80 import gemm as by_warps
from .gemm import chosen_config, launch_of


def product(
    d: Array, a: Array, b: Array, by_rows: bool, blocks: int, bias: Any, activation: Any, scale_m: Any,
    scale_n: Any, gate: Any, residual: Any, autotune: bool = False, accurate: bool = False,
) -> Launches:  # fmt: skip
    """D, by a block or a pair for each tile. The errors of the kernel for sm_80, which takes all but plain products
    of whole tiles. There is one configuration, so nothing to measure. Sums in
    tensor memory are as accurate as f32 in any case.
    """
    more = bias, activation, scale_m, scale_n, gate, residual
    is_plain = by_rows and all(part is None for part in more)
    config = chosen_config(d.shape[0], d.shape[1], a.shape[1], 8 * a.itemsize) if is_plain else None
    if config is None:
        yield from by_warps.product(d, a, b, by_rows, blocks, *more, autotune, accurate)
    else:
        yield launch_of(a, b, d, config)
