# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scalars of tensors in a pass: SSA values of type `index` for the `?` of their types."""

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects.cute.values import integers, unknowns, with_scalars
from ...dialects.tile import CoordTensorType, GetScalarsOp, TensorType, ViewOp
from ...layout.algebra.core import LayoutLike, plain_layout
from ...layout.algebra.integers import Unknown
from .emitter import Emitter, SsaInt, insert_behind


class Scalars:
    """Finds the scalars of tensors: those of views stand in them, those of arguments are asked for once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, list[SSAValue]] = {}

    def note(self, tensor: SSAValue, scalars: Sequence[SSAValue]) -> None:
        """Records the scalars of a coordinate tensor."""
        self._known[tensor] = list(scalars)

    def of(self, tensor: SSAValue) -> list[SSAValue]:
        """The scalars of a tensor, in their order."""
        owner = tensor.owner
        if isinstance(owner, ViewOp):
            return list(owner.scalars)
        if tensor not in self._known:
            self._known[tensor] = self._asked(tensor) if unknowns(layout_of(tensor)) else []
        return self._known[tensor]

    def layout(self, emitter: Emitter, tensor: SSAValue) -> LayoutLike:
        """The layout of a tensor, with integers of the algebra for its scalars."""
        return substitute_scalars(emitter, layout_of(tensor), self.of(tensor))

    def _asked(self, tensor: SSAValue) -> list[SSAValue]:
        question = GetScalarsOp(tensor)
        insert_behind(tensor, question)
        for result, kind in zip(question.scalars, _names(layout_of(tensor)), strict=True):
            result.name_hint = None if tensor.name_hint is None else f"{tensor.name_hint}_{kind}"
        return list(question.scalars)


def layout_of(tensor: SSAValue) -> LayoutLike:
    """The layout in the type of a tensor or a coordinate tensor."""
    assert isinstance(tensor.type, TensorType | CoordTensorType)
    return tensor.type.layout.data


def substitute_scalars(emitter: Emitter, layout: LayoutLike, scalars: Sequence[SSAValue]) -> LayoutLike:
    """`layout` with integers of the algebra, which write operations, in place of its `?`."""
    known = zip(scalars, unknowns(layout), strict=True)
    return with_scalars(layout, [SsaInt(emitter, value, unknown) for value, unknown in known])


def scalars_for(emitter: Emitter, type: LayoutLike, layout: LayoutLike) -> list[SSAValue]:
    """The scalars of a tensor whose type has the layout `type` and whose layout was computed as `layout`."""
    pairs = zip(integers(plain_layout(type)), integers(plain_layout(layout)), strict=True)
    return [_value(emitter, x) for leaf, x in pairs if isinstance(leaf, Unknown)]


def _value(emitter: Emitter, x: SsaInt | int) -> SSAValue:
    return x.value if isinstance(x, SsaInt) else emitter.index(x)


def _names(layout: LayoutLike) -> list[str]:
    """Names for the scalars: `dim0` for the first extent, `stride1` for the second stride."""
    plain = plain_layout(layout)
    return [
        f"{kind}{index}"
        for kind, t in (("dim", plain.shape), ("stride", plain.stride))
        for index, x in enumerate(integers(t))
        if isinstance(x, Unknown)
    ]
