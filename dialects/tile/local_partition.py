# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread's part of a tensor, given only a layout of threads (CuTe's local_partition)."""

from collections.abc import Sequence
from typing import Any

from xdsl.irdl import opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.divide import zipped_divide
from ...layout.algebra.integers import Coord
from ...layout.algebra.inttuple import product_each
from ...layout.algebra.modes import dice
from ...layout.tiling.partition import check_tiler, everything, padded, thread_coordinate
from ..cute import CoordAttr, LayoutAttr
from ..definitions import irdl_op_definition
from .threads import ThreadViewOp
from .view_base import RESULT, VIEWED


@irdl_op_definition
class LocalPartitionOp(ThreadViewOp):
    """`tile.local_partition %t, "(8,4):(1,8)", %thread`: the elements at the thread's coordinate in every tile of the
    threads' shape (CuTe's local_partition): (RestM,RestN,...).

    The layout maps coordinates to thread indices. With `proj "(1,_)"` only the modes marked 1 of it are used. Tiles
    must cover the tensor exactly, unless `ragged` follows.
    """

    name = "tile.local_partition"
    threads = prop_def(LayoutAttr)
    proj = opt_prop_def(CoordAttr)

    assembly_format = (
        f"{VIEWED} `,` custom<Marked>() custom<Plain>($threads) `,` custom<Operand>($coords) "
        f"(`proj` custom<Quoted>($proj)^)? (`ragged` $ragged^)? {RESULT}"
    )

    @classmethod
    def layout_by(cls, given: object, layout: LayoutLike) -> LayoutLike:
        threads = _project(given)
        check_tiler(threads, "the layout of threads")
        sizes = product_each(threads.shape)
        cls.check_tiles(given, layout, sizes)
        return zipped_divide(layout, sizes)

    @classmethod
    def coordinate_by(cls, given: object, layout: LayoutLike, values: Sequence[object]) -> Coord:
        (thread,) = values
        return padded(thread_coordinate(_project(given), thread), layout[0].shape), everything(layout[1].shape)

    def verify_(self) -> None:
        if not isinstance(self.threads.data, Layout):
            raise VerifyException("the layout of threads is a plain one, without a swizzle")
        super().verify_()


def _project(given: Any) -> Layout:
    """The threads' layout, as projected."""
    return given.threads if given.proj is None else dice(given.proj, given.threads)
