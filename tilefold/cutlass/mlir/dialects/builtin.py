# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts between types of dialects, in the form of MLIR's dialect builtin."""

from collections.abc import Sequence

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.tensors.tma import TmaDescriptor

__all__ = ["unrealized_conversion_cast"]


def unrealized_conversion_cast(outputs: Sequence[object], inputs: Sequence[object]) -> TmaDescriptor:
    """A tensor map as a structure of words, which `llvm.store` writes. Raises TilefoldError (E5002) for another
    value.
    """
    if len(outputs) != 1 or len(inputs) != 1 or not isinstance(inputs[0], TmaDescriptor):
        message = "an unrealized conversion supports only tensor maps"
        raise TilefoldError(Code.BUILD_VALUE, message, "cute.arch.bitcast converts numbers, t.load().bitcast vectors")
    return inputs[0]
