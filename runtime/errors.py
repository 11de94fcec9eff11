# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches that cannot be: the error, and the sizes of grids and blocks."""

from typing import Any, TypeAlias, cast

from ..layout.errors import Code, TilefoldError

Dim3: TypeAlias = tuple[int, int, int]


class LaunchError(TilefoldError):
    """A launch that does not fit its kernel: its grid, its block or its arguments."""


def dim3(what: str, size: Any) -> Dim3:
    """One to three sizes as x, y, z. LaunchError (E3105), which says what they are of, for anything else."""
    found = tuple(cast("tuple[Any, ...]", size)) if isinstance(size, tuple | list) else (size,)
    if not 1 <= len(found) <= 3 or any(type(n) is not int or n < 1 for n in found):
        raise LaunchError(
            Code.RUN_LAUNCH, f"the {what} is {size!r}", "give one to three integers of at least 1: x, y, z"
        )
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z
