# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors of values, and their elements."""

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from ...dialects.ptx.base import split_vector
from .emitter import Emitter


def join_vector(emitter: Emitter, values: Sequence[SSAValue]) -> SSAValue:
    """A vector of values of one type."""
    whole = emitter.value(vector.BroadcastOp(values[0], VectorType(values[0].type, [len(values)])))
    for index, value in enumerate(values[1:], 1):
        whole = emitter.value(vector.InsertOp(value, whole, [index]))
    return whole


def extract_elements(emitter: Emitter, value: SSAValue) -> list[SSAValue]:
    """The elements of a vector, or the scalar itself."""
    element, count = split_vector(value.type)
    return [emitter.value(vector.ExtractOp(value, [index], element)) for index in range(count)] if count else [value]
