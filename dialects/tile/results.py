# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Result types that operands and properties determine: builder, passes, parser and verifier infer them in one way."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import is_
from types import MappingProxyType
from typing import Any, Self

from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..definitions import refusing
from .directives import TileOp


class InferringOp(TileOp, ABC):
    """An operation whose operands and properties determine the types of its results. The text may leave out that of a
    tensor, a tiled copy or a tiled MMA."""

    @classmethod
    @abstractmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        """The types of the results. Raises `LayoutError` if there are none."""

    @classmethod
    def inferred(
        cls,
        operands: Sequence[SSAValue | Sequence[SSAValue] | None],
        properties: Mapping[str, Attribute | None] = MappingProxyType({}),
    ) -> Self:
        """The operation with these operands and properties. Raises `LayoutError` as `infer` does."""
        given = {name: value for name, value in properties.items() if value is not None}
        flat = [value for group in operands for value in ((group,) if isinstance(group, SSAValue) else group or ())]
        types = cls.inferred_types([value.type for value in flat], given)
        single = len(cls.get_irdl_definition().results) == len(types)
        results = types if single else [types]
        return cls.build(operands=operands, result_types=results, properties=given)

    @classmethod
    def inferred_types(
        cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]
    ) -> tuple[Attribute, ...]:
        """The result of `infer`; kept, since first a parser, pass or builder asks for it and then the verifier."""
        flat = [part for item in properties.items() for part in item]
        return _inferred_types(cls, _Same(operand_types), _Same(flat))

    def verify_(self) -> None:
        with refusing():
            expected = self.inferred_types(self.operand_types, self.properties)
        if tuple(self.result_types) != expected:
            should, written = (", ".join(map(str, types)) for types in (expected, self.result_types))
            raise VerifyException(f"the result is {should}, but the text says {written}")


class _Same(tuple[Any, ...]):
    """Objects that are equal if they are the same ones: the hash of a type takes as long as inferring another."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and len(self) == len(other) and all(map(is_, self, other))


@lru_cache(maxsize=256)
def _inferred_types(op: type[InferringOp], operand_types: _Same, properties: _Same) -> tuple[Attribute, ...]:
    return tuple(op.infer(operand_types, dict(zip(properties[::2], properties[1::2], strict=True))))
