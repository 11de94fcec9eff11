# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers, and the device's printf."""

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .base import PtxOp
from .types import PtrType, float_bits, scalar_bits


@irdl_op_definition
class BarSyncOp(PtxOp):
    """`ptx.bar.sync 0`: every thread of the block waits here, and sees what the others wrote before (PTX ISA,
    bar.sync).

    Preconditions: all threads of the block reach the same barrier.
    """

    name = "ptx.bar.sync"
    id = prop_def(IntegerAttr[I64])
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$id attr-dict"

    def __init__(self, id: int = 0):
        super().__init__(properties={"id": IntegerAttr(id, i64)})

    def mnemonic(self) -> str:
        return "bar.sync"

    def verify_(self) -> None:
        if not 0 <= self.id.value.data < 16:
            raise VerifyException(f"the barrier is {self.id.value.data}; a block has barriers 0 to 15")


@irdl_op_definition
class BarWarpSyncOp(PtxOp):
    """`ptx.bar.warp.sync -1`: the lanes in the mask wait for each other (PTX ISA, bar.warp.sync)."""

    name = "ptx.bar.warp.sync"
    mask = prop_def(IntegerAttr[I64])
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$mask attr-dict"

    def __init__(self, mask: int = -1):
        super().__init__(properties={"mask": IntegerAttr(mask, i64)})

    def mnemonic(self) -> str:
        return "bar.warp.sync"

    def verify_(self) -> None:
        if not -1 <= self.mask.value.data < 2**32 or self.mask.value.data == 0:
            raise VerifyException("the mask names lanes by 32 bits, at least one of them set; -1 names them all")


@irdl_op_definition
class PrintfOp(PtxOp):
    """`ptx.printf "x = %d\\n"(%x) : i32`: prints from the executing thread, as C's printf does.

    Conversions: %d %i %u %x %lld %llu %llx for integers, %f %e %g for floats, %p for pointers; %% for a percent sign.
    No widths, strings or stars, so that a format cannot read memory.
    """

    name = "ptx.printf"
    format = prop_def(StringAttr)
    args = var_operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$format `(` $args `)` attr-dict `:` type($args)"

    def __init__(self, format: str, args: Sequence[SSAValue | Operation]):
        super().__init__(operands=[args], properties={"format": StringAttr(format)})

    def mnemonic(self) -> str:
        return "call.vprintf"

    def verify_(self) -> None:
        conversions = self.conversions()
        if len(conversions) != len(self.args):
            raise VerifyException(
                f"the format has {len(conversions)} conversions, but {len(self.args)} values follow it"
            )
        for index, (conversion, arg) in enumerate(zip(conversions, self.args, strict=True)):
            if isinstance(arg.type, PtrType):
                fits = conversion == "p"
            else:
                bits = scalar_bits(arg.type)
                is_float = float_bits(arg.type) is not None
                wide = conversion.startswith("ll")
                fits = bits is not None and conversion != "p" and (conversion in ("f", "e", "g")) == is_float
                fits = fits and (is_float or wide == (bits == 64))
            if not fits:
                raise VerifyException(f"conversion %{conversion} does not fit value {index} of type {arg.type}")

    def conversions(self) -> list[str]:
        """The conversions of the format in order, without the percent sign (`lld`). VerifyException on a bad one."""
        try:
            return conversions(self.format.data)
        except ValueError as error:
            raise VerifyException(str(error)) from None


_CONVERSIONS = ("lld", "llu", "llx", "d", "i", "u", "x", "f", "e", "g", "p")


def conversions(format: str, *, strings: bool = False) -> list[str]:
    """The conversions of a printf format in order, without the percent sign (`lld`); %s only where `strings` says so.

    ValueError for another conversion, and for a NUL character.
    """
    if "\0" in format:
        raise ValueError("the format contains a NUL character")
    known = (*_CONVERSIONS, "s") if strings else _CONVERSIONS
    found: list[str] = []
    at = format.find("%")
    while at >= 0:
        rest = format[at + 1 :]
        if not rest.startswith("%"):
            conversion = next((each for each in known if rest.startswith(each)), None)
            if conversion is None:
                listed = " ".join(f"%{each}" for each in ("d", "i", "u", "x", *known[:3], *known[7:], "%"))
                raise ValueError(f"unknown conversion '%{rest[:3]}'; known: {listed}")
            found.append(conversion)
        at = format.find("%", at + 2)
    return found
