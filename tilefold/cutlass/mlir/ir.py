# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and values of an IR, as programs annotate with them."""

import re
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import LocationAttr as Location
from xdsl.ir import Attribute as IrAttribute
from xdsl.rewriter import InsertPoint as InsertionPoint

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DTYPES
from tilefold.cute.jit_arguments import StructType

__all__ = [
    "Attribute", "Context", "F32Type", "InsertionPoint", "IntegerType", "Location", "MLIRError", "Type", "Value",
    "VectorType",
]  # fmt: skip

MLIRError = TilefoldError
"""The errors of a compiler, as programs catch them."""

_NUMBERS = {str(dtype.ir): dtype.ir for dtype in DTYPES.values()}


class Value:
    """A value of a function in a class of the user's: `value` is the operand of `llvm.extractvalue` and its like."""

    def __init__(self, value: object) -> None:
        self.value: Any = value.value if isinstance(value, Value) else value


class IntegerType:
    """The types of integers, by their bits. `IntegerType(x.type)` tells the `width` of that of an integer, and raises
    TilefoldError (E5002) for another type.
    """

    def __init__(self, cast_from_type: object) -> None:
        if not isinstance(cast_from_type, builtin.IntegerType):
            hint = "pass the type of an integer"
            raise TilefoldError(Code.BUILD_VALUE, f"{cast_from_type} is not a type of integers", hint)
        self.width: int = cast_from_type.bitwidth

    @staticmethod
    def get_signless(width: int) -> IrAttribute:
        """The type of integers of a width in bits."""
        return builtin.IntegerType(width)

    @staticmethod
    def isinstance(other: object) -> bool:
        """Whether a type is one of integers."""
        return isinstance(other, builtin.IntegerType)


class Context:
    """The context of another compiler's IR, of which programs derive one that starts no threads."""

    def enable_multithreading(self, enable: bool) -> None:
        """Has no effect: nothing is compiled in this context."""


class Attribute:
    """Attributes of the IR by their texts."""

    @staticmethod
    def parse(text: str) -> str:
        """The attribute of a text, which is the text."""
        return text


class F32Type:
    """The type of floats of 32 bits."""

    @staticmethod
    def get() -> IrAttribute:
        """The type."""
        return builtin.f32


class VectorType:
    """The types of vectors. `VectorType(x.type)` tells `shape` and `element_type` of that of a vector, and raises
    TilefoldError (E5002) for another type.
    """

    def __init__(self, cast_from_type: object) -> None:
        if not isinstance(cast_from_type, builtin.VectorType):
            hint = "pass a vector type, such as the type of a fragment"
            raise TilefoldError(Code.BUILD_VALUE, f"{cast_from_type} is not a type of vectors", hint)
        given = cast("builtin.VectorType[IrAttribute]", cast_from_type)
        self.shape: list[int] = list(given.get_shape())
        self.element_type: IrAttribute = given.element_type

    @staticmethod
    def get(shape: Sequence[int], element_type: IrAttribute, *, loc: object = None) -> IrAttribute:
        """The type of vectors of a shape and elements, whatever `loc`."""
        return builtin.VectorType(element_type, shape)


class Type:
    """Types of the IR by their texts."""

    @staticmethod
    def parse(text: str) -> Any:
        """The type of a text: a number such as `f32`, `vector<4xi32>`, or a structure of numbers,
        `!llvm.struct<(i32, i32)>`, or of words, `!llvm.array<16 x i64>`. TilefoldError (E5002) for others.
        """
        plain = text.replace(" ", "")
        if words := re.fullmatch(r"!llvm\.(?:struct<\((array<(\d+)xi64>)\)>|array<(\d+)xi64>)", plain):
            array = StructType.get_literal([builtin.i64] * int(words[2] or words[3]))
            return StructType.get_literal([array]) if words[1] else array
        if plain in _NUMBERS:
            return _NUMBERS[plain]
        if (vector := re.fullmatch(r"vector<(\d+)x(\w+)>", plain)) and vector[2] in _NUMBERS:
            return builtin.VectorType(_NUMBERS[vector[2]], [int(vector[1])])
        structure = re.fullmatch(r"!llvm\.struct<\((\w+(?:,\w+)*)\)>", plain)
        if structure and all(member in _NUMBERS for member in structure[1].split(",")):
            return StructType.get_literal([_NUMBERS[member] for member in structure[1].split(",")])
        message = f"the type {text} is not one of numbers, of vectors or of structures of numbers"
        raise TilefoldError(Code.BUILD_VALUE, message, "such as f32, vector<4xi32> or !llvm.struct<(i32, i32)>")
