# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of vectors, in the form of MLIR's dialect vector."""

from collections.abc import Sequence
from typing import Any


def extract(source: Any, dynamic_position: Sequence[Any], static_position: Sequence[int]) -> Any:
    """The element of a vector at a place: static, or a value; exactly one of the two is given."""
    (place,) = (*dynamic_position, *static_position)
    return source[place]
