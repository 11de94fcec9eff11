# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, and addresses of other memories, in the form of MLIR's dialect llvm."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.instructions.bits import clz
from tilefold.builder.instructions.inline import inline_ptx
from tilefold.builder.primitives.barriers import raw_pointer
from tilefold.builder.scalars.dtypes import Boolean, Int32, dtype_of
from tilefold.builder.scalars.values import Bool, convert
from tilefold.builder.tensors.raw_pointers import RawPointer
from tilefold.cute.jit_arguments import PointerType, StructType, StructValue

from ..ir import Value
from .arith import bitcast
from .arith import extui as zext

__all__ = [
    "AsmDialect", "PointerType", "StructType", "addrspacecast", "bitcast", "extractvalue", "inline_asm", "intr_ctlz",
    "ptrtoint", "zext",
]  # fmt: skip


class AsmDialect(Enum):
    """The dialect of assembly; PTX has one."""

    AD_ATT = 0
    AD_Intel = 1


def addrspacecast(res: PointerType, arg: object) -> RawPointer:
    """An address as one of another memory; see `RawPointer.tospace`."""
    return raw_pointer(arg).tospace(res.space)


def ptrtoint(res: Any, arg: Any) -> Any:
    """The address of a pointer as a number of a type; in shared memory it counts from the block's first byte."""
    return raw_pointer(arg).toint(dtype_of(res))


def extractvalue(res: object, container: object, position: Sequence[int]) -> Any:
    """The member of a structure at a position: a number for each structure on the way. Raises TilefoldError (E5002) for
    a member that it does not have.
    """
    value = container.value if isinstance(container, Value) else container
    for number in position:
        if not isinstance(value, StructValue) or not 0 <= number < len(value.members):
            problem = f"a value of type {type(value).__name__} has no member {number}"
            raise TilefoldError(Code.BUILD_VALUE, problem, "count the members of the structure from 0")
        value = value.members[number]
    return value


def intr_ctlz(in_: object, is_zero_poison: bool = False) -> Any:
    """The zeros above the highest bit of an integer; of 0 all its bits."""
    return clz(in_)


def inline_asm(res: object, operands_: Sequence[object], asm_string: str, constraints: str, **flags: object) -> Any:
    """Instructions as text; see `cute.arch.inline_ptx`. `res` is the type of the result, None for none, a structure for
    several; a predicate is an integer of 32 bits to the text, 0 where it does not hold, and a constant by the
    constraint `i` is in a register of 32 bits.
    """
    given = [convert(x, Int32) if isinstance(x, Bool) else x for x in operands_]
    letters = ",".join("r" if letter.strip() in ("i", "n") else letter for letter in constraints.split(","))
    if isinstance(res, StructType):
        made = inline_ptx(asm_string, letters, *given, results=res.members)
        return StructValue(made)
    decides = res == Boolean.mlir_type
    made = inline_ptx(asm_string, letters, *given, results=() if res is None else Int32.mlir_type if decides else res)
    return made != 0 if decides else made
