# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, and addresses of other memories, in the form of MLIR's dialect llvm."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.builder.instructions.inline import inline_ptx
from tilefold.compiler.builder.primitives.barriers import raw_pointer
from tilefold.compiler.builder.scalars.dtypes import Boolean, Int32
from tilefold.compiler.builder.scalars.values import Bool, convert
from tilefold.compiler.builder.tensors.address_space import AddressSpace
from tilefold.compiler.builder.tensors.raw_pointers import RawPointer


class AsmDialect(Enum):
    """The dialect of assembly; PTX has one."""

    AD_ATT = 0
    AD_Intel = 1


@dataclass(frozen=True)
class PointerType:
    """The type of addresses in a memory, by its number (`AddressSpace`)."""

    space: AddressSpace

    @staticmethod
    def get(address_space: int = 0) -> "PointerType":
        """The type of addresses in the memory of a number. Raises TilefoldError (E5002) for an unknown one."""
        known = {space.value: space for space in AddressSpace}
        if address_space not in known:
            hint = f"known are {', '.join(map(str, known))}"
            raise TilefoldError(Code.BUILD_VALUE, f"there is no memory of the number {address_space}", hint)
        return PointerType(known[address_space])


def addrspacecast(res: PointerType, arg: Any) -> RawPointer:
    """An address as one of another memory; see `RawPointer.tospace`."""
    return raw_pointer(arg).tospace(res.space)


def inline_asm(res: Any, operands_: Sequence[Any], asm_string: str, constraints: str, **flags: Any) -> Any:
    """Instructions as text; see `cute.arch.inline_ptx`. `res` is the type of the result, None for none; a predicate is
    an integer of 32 bits to the text, 0 where it does not hold, and a constant by the constraint `i` is in a register
    of 32 bits.
    """
    given = [convert(x, Int32) if isinstance(x, Bool) else x for x in operands_]
    letters = ",".join("r" if letter.strip() in ("i", "n") else letter for letter in constraints.split(","))
    decides = res == Boolean.mlir_type
    made = inline_ptx(asm_string, letters, *given, results=() if res is None else Int32.mlir_type if decides else res)
    return made != 0 if decides else made
