# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tilers must be where a tile is cut from a tensor."""

from typing import Any

from ...base.errors import Code, LayoutError
from ..algebra.core import Layout, Tiler
from ..algebra.inttuple import is_fully_static


def check_tiler(tiler: Tiler, what: str) -> None:
    """Raises `LayoutError` unless a tiler is static (E0207) and names an extent, a layout or `_` in each of its tuples
    (E0213); `what` it is called in the message.
    """
    if isinstance(tiler, tuple):
        _check_empty(tiler, what)
        for part in tiler:
            check_tiler(part, what)
    elif isinstance(tiler, Layout):
        _check_empty(tiler.shape, what)
        _check_static((tiler.shape, tiler.stride), what)
    elif tiler is not None:
        _check_static(tiler, what)


def _check_empty(part: Any, what: str) -> None:
    if part == ():
        raise LayoutError(
            Code.BAD_ARGUMENT,
            f"{what} has an empty tuple, (), which tiles nothing",
            "write _ for a whole mode",
        )


def _check_static(part: Any, what: str) -> None:
    if not is_fully_static(part):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{what} must be static")
