# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches that cannot be: the error, and the sizes of grids and blocks."""

import operator
from typing import Any, TypeAlias, cast

from ..base.errors import Code, TilefoldError
from ..base.printable import shown
from ..base.target import MAX_BLOCK, MAX_GRID, MAX_THREADS

Dim3: TypeAlias = tuple[int, int, int]


class LaunchError(TilefoldError):
    """A launch that does not fit its kernel: its grid, its block or its arguments."""


class MisfitError(LaunchError, ValueError):
    """An argument of other extents, strides or elements than a function is compiled for: a ValueError in Python."""


class ArgumentTypeError(LaunchError, TypeError):
    """An argument that is a number where the function takes a tensor, or the reverse: a TypeError in Python."""


def argument_error(name: str, problem: str, hint: str = "", kind: type[LaunchError] = LaunchError) -> LaunchError:
    """The error (E3106), of a kind, for an argument; the problem goes on from "argument 'A' "."""
    return kind(Code.RUN_ARGUMENT, f"argument '{name}' {problem}", hint)


def dim3(subject: str, size: Any) -> Dim3:
    """One to three sizes as x, y, z. LaunchError (E3105), which names the `subject`, for anything else, and for a grid
    or a block that is larger than any GPU has it.
    """
    text = shown(cast(object, size))
    given = tuple(cast("tuple[Any, ...]", size)) if isinstance(size, tuple | list) else (size,)
    if not given:
        raise LaunchError(Code.RUN_LAUNCH, f"the launch has no {subject}", f"write .launch(..., {subject}=(x, y, z))")
    sizes = tuple(n if type(n) is int else _index(n) for n in given)
    if not 1 <= len(sizes) <= 3 or any(n < 1 for n in sizes):
        raise LaunchError(
            Code.RUN_LAUNCH, f"the {subject} is {text}", "give one to three integers of at least 1: x, y, z"
        )
    x, y, z = (*sizes, 1, 1)[:3]
    if subject == "block" and x * y * z > MAX_THREADS:
        message = f"the block {text} has {x * y * z} threads; at most {MAX_THREADS} are possible"
        raise LaunchError(Code.RUN_LAUNCH, message, f"launch more blocks of {MAX_THREADS} threads or fewer")
    most = MAX_BLOCK if subject == "block" else MAX_GRID
    if any(n > limit for n, limit in zip((x, y, z), most, strict=True)):
        message = f"the {subject} is {text}; x, y, z can be at most {most}"
        raise LaunchError(Code.RUN_LAUNCH, message, "x has the greatest limit: give the largest size to it")
    return x, y, z


def _index(n: Any) -> int:
    """A size that is an integer of NumPy or the like; 0 for anything else."""
    try:
        return 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        return 0
