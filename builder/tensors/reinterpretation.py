# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The methods of fragments that take their bits for something else."""

from typing import Any

from ...dialects.tile import RecastOp
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import wrap
from ..scalars.dtypes import as_dtype
from ..tracing.state import emit
from .expressions import Expression
from .tensor_base import registers


class Reinterpreted:
    """The base of fragments that gives them these methods."""

    __slots__ = ()

    def bitcast(self: Any, dtype: object) -> Any:
        """The bits of the elements as those of another type, (n,)."""
        element, held = as_dtype(dtype), registers(self.dtype, Layout(self.size, 1))
        for place in range(self.size):
            held.write(place, self[place])
        made = emit(RecastOp.inferred([held.ssa], {"element_type": element.in_memory})).results[0]
        words = type(held)(made, element)
        return type(self)(Expression(wrap(words.shape), element, tensor=words, borrowed=True))

    def ir_value(self: Any) -> Any:
        """The fragment itself, for programs that pass it to an operation of an IR."""
        return self
