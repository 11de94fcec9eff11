# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of a launch against the tiles of its tensors: a coordinate of tiles that is a block's counts all tiles only
if there are as many blocks.
"""

from collections.abc import Iterator

from xdsl.dialects import arith, gpu
from xdsl.ir import SSAValue

from ...base.spaces import GMEM
from ...dialects.kernel import KernelOp
from ...dialects.tile import LocalTileOp, TensorType
from ...layout.algebra.coordinates import fixed_modes
from ...layout.algebra.core import plain_layout
from ..engine import LaunchConfig
from .faults import Site, site_of
from .memory.provenance import name_of

_AXES = "xyz"


def find_uncovered(kernel: KernelOp, config: LaunchConfig) -> Iterator[tuple[Site, str, str]]:
    """The views of tiles of which the grid leaves some out: the site of each, the problem in words, and a hint."""
    for op in kernel.walk():
        if not isinstance(op, LocalTileOp) or not isinstance(op.source.type, TensorType):
            continue
        if op.source.type.space.data is not GMEM:
            continue
        whole = op.relayout(op.source.type.layout.data)
        shape = plain_layout(whole).shape
        for value, tiles in fixed_modes(op.coordinate(whole, list(op.coords)), shape):
            axis = _axis(value)
            if axis is None or type(tiles) is not int or config.grid[axis] >= tiles:
                continue
            blocks, name = config.grid[axis], name_of(op.source) or "a tensor"
            text = f"{op.name}: the grid has {blocks} blocks in {_AXES[axis]} for {tiles} tiles of {name}"
            yield site_of(op), text, f"launch {tiles} blocks in {_AXES[axis]}, or let a block loop over several tiles"


def _axis(value: object) -> int | None:
    """The axis of the grid whose coordinate a value is; None for another value."""
    if not isinstance(value, SSAValue):
        return None
    while isinstance(owner := value.owner, arith.IndexCastOp):
        value = owner.input
    return _AXES.index(str(owner.dimension.data)) if isinstance(owner, gpu.BlockIdOp) else None
