# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of tilers that cut a tile from a tensor."""

from typing import Any

from ...base.errors import Code, LayoutError
from ..algebra.core import Layout, Tiler
from ..algebra.inttuple import is_fully_static


def check_tiler(tiler: Tiler, subject: str) -> None:
    """Raises `LayoutError` unless a tiler is static (E0207) and names an extent, a layout or `_` in each of its tuples
    (E0213); `subject` names it in the message.
    """
    if isinstance(tiler, tuple):
        _check_empty(tiler, subject)
        for part in tiler:
            check_tiler(part, subject)
    elif isinstance(tiler, Layout):
        _check_empty(tiler.shape, subject)
        _check_static((tiler.shape, tiler.stride), subject)
    elif tiler is not None:
        _check_static(tiler, subject)


def _check_empty(part: Any, subject: str) -> None:
    if part == ():
        raise LayoutError(
            Code.BAD_ARGUMENT, f"{subject} has an empty tuple, (), which tiles nothing", "write _ for a whole mode"
        )


def _check_static(part: Any, subject: str) -> None:
    if not is_fully_static(part):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{subject} must be static")
