# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The errors of launches that cannot be."""

from typing import TypeAlias

from ..base.errors import Code, TilefoldError

Dim3: TypeAlias = tuple[int, int, int]
"""The sizes of a grid, a block or a cluster: x, y, z."""


class LaunchError(TilefoldError):
    """A launch that does not fit its kernel: its grid, its block or its arguments."""


class MisfitError(LaunchError, ValueError):
    """An argument of other extents, strides or elements than a function is compiled for: a ValueError in Python."""


class ArgumentTypeError(LaunchError, TypeError):
    """An argument that is a number where the function takes a tensor, or the reverse: a TypeError in Python."""


def argument_error(name: str, problem: str, hint: str = "", kind: type[LaunchError] = LaunchError) -> LaunchError:
    """The error (E3106) for an argument, as an exception of `kind`; the problem goes on from "argument 'A' "."""
    return kind(Code.RUN_ARGUMENT, f"argument '{name}' {problem}", hint)
