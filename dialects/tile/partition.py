# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread's part of a tensor under a tiled copy (CuTe's copy_atom.hpp).

`local_partition` needs only a layout of threads (CuTe's local_partition).
"""

from collections.abc import Sequence
from typing import Any

from xdsl.irdl import opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout, LayoutLike, size
from ...layout.algebra.divide import zipped_divide
from ...layout.algebra.integers import Coord
from ...layout.algebra.inttuple import product_each
from ...layout.algebra.modes import dice
from ...layout.atoms.instructions import TmemCp
from ...layout.tiling.partition import check_tiler, everything, padded, thread_coordinate
from ..cute import CoordAttr, LayoutAttr
from ..definitions import irdl_op_definition, typed_operand
from .copy_types import TiledCopyType
from .threads import ThreadViewOp
from .view_base import RESULT, VIEWED, LayoutViewOp


class _PartitionOp(ThreadViewOp):
    """A view through a tiled copy: `tile.xyz %copy, %tensor, %thread : type`."""

    tiled_copy = typed_operand(TiledCopyType)
    assembly_format = (
        f"custom<TiledCopyValue>($tiled_copy, type($tiled_copy)) `,` {VIEWED} `,` custom<Operand>($coords) "
        f"(`ragged` $ragged^)? {RESULT}"
    )

    @classmethod
    def coordinate_by(cls, given: Any, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        (thread,) = values
        return (thread, None, (None,) * given.modes_of_source if given.modes_of_source > 1 else None)


@irdl_op_definition
class PartitionSOp(_PartitionOp):
    """`tile.partition_S %copy, %tensor, %thread`: the elements that the thread reads: (CPY,CPY_M,CPY_N,...).

    The first mode holds the values of one execution of the tiled copy, split by the atom: ((AtomV,RestV),...).
    """

    name = "tile.partition_S"

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        if not isinstance(given.tiling.atom.instruction, TmemCp):  # whose tile counts each row as often as it is copied
            cls.check_tiles(given, layout, given.tiling.tiler)
        return given.tiling.tidfrg_S(layout)


@irdl_op_definition
class PartitionDOp(_PartitionOp):
    """`tile.partition_D %copy, %tensor, %thread`: the elements that the thread writes: (CPY,CPY_M,CPY_N,...)."""

    name = "tile.partition_D"

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        cls.check_tiles(given, layout, given.tiling.tiler)
        return given.tiling.tidfrg_D(layout)


class _RetileOp(LayoutViewOp):
    """A view of a fragment in the profile of a tiled copy: `tile.xyz %copy, %fragment : type`."""

    tiled_copy = typed_operand(TiledCopyType)
    assembly_format = f"custom<TiledCopyValue>($tiled_copy, type($tiled_copy)) `,` {VIEWED} {RESULT}"

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        tiled = given.tiling.retile(layout)
        if size(tiled) != size(layout):
            raise LayoutError(
                Code.TILE_NOT_DIVIDING,
                f"a fragment {layout} is not a whole number of tiles of the tiled copy",
                "the tiles of the tiled copy and of the fragment's partition must divide each other",
            )
        return tiled


@irdl_op_definition
class RetileSOp(_RetileOp):
    """`tile.retile_S %copy, %fragment`: a thread's fragment (V,M,N,...) of another tiling of the same tile, such as an
    accumulator, in the profile that `%copy` reads: ((AtomV,RestV),M,N,...). The registers are the same.
    """

    name = "tile.retile_S"


@irdl_op_definition
class RetileDOp(_RetileOp):
    """`tile.retile_D %copy, %fragment`: like `tile.retile_S`, in the profile that `%copy` writes."""

    name = "tile.retile_D"


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
