# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, and addresses of other memories, in the form of MLIR's dialect llvm."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.instructions.bits import clz
from tilefold.builder.instructions.inline import inline_ptx
from tilefold.builder.pipelines.tensor_map_manager import copy_tensormap
from tilefold.builder.primitives.barriers import raw_pointer
from tilefold.builder.primitives.tmem_addresses import TmemPointer
from tilefold.builder.scalars.dtypes import Boolean, Int32, Int64, dtype_of
from tilefold.builder.scalars.operators import Operand
from tilefold.builder.scalars.values import Bool, Int, convert
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.fragments import Vec, full
from tilefold.builder.tensors.pointers import make_ptr
from tilefold.builder.tensors.raw_pointers import RawPointer
from tilefold.builder.tensors.tma import TmaDescriptor
from tilefold.cute.jit_arguments import PointerType, StructType, StructValue

from ..ir import Value
from . import vector as vector_dialect
from .arith import bitcast, extui
from .arith import extui as zext
from .vector import Undefined

__all__ = [
    "AsmDialect", "AtomicOrdering", "PointerType", "StructType", "addrspacecast", "bitcast", "extractelement",
    "extractvalue", "fence", "inline_asm", "insertelement", "insertvalue", "intr_ctlz", "inttoptr", "mlir_undef",
    "mlir_zero", "ptrtoint", "store", "zext",
]  # fmt: skip


class AsmDialect(Enum):
    """The dialect of assembly; PTX has one."""

    AD_ATT = 0
    AD_Intel = 1


class AtomicOrdering(Enum):
    """The orders of LLVM's atomic instructions."""

    not_atomic, unordered, monotonic, acquire, release, acq_rel, seq_cst = 0, 1, 2, 4, 5, 6, 7


_SCOPES: Mapping[str | None, str] = MappingProxyType({
    None: "sys", "": "sys", "device": "gpu", "cluster": "cluster", "block": "cta",
})  # fmt: skip
"""The scopes of PTX by those of LLVM's NVPTX backend."""


def fence(ordering: AtomicOrdering, *, syncscope: str | None = None) -> None:
    """Orders memory as a fence of LLVM: `fence.sc` for `seq_cst`, `fence.acq_rel` for weaker ones (PTX ISA, fence).
    Raises TilefoldError (E5002) for an order that no fence has, and another scope.
    """
    if ordering.value < AtomicOrdering.acquire.value or syncscope not in _SCOPES:
        message = f"a fence has no order {ordering.name!r} in the scope {syncscope!r}"
        raise TilefoldError(Code.BUILD_VALUE, message, "order by acquire, release, acq_rel or seq_cst")
    order = "sc" if ordering is AtomicOrdering.seq_cst else "acq_rel"
    inline_ptx(f"fence.{order}.{_SCOPES[syncscope]};", "")


def addrspacecast(res: PointerType, arg: object) -> RawPointer:
    """An address as one of another memory; see `RawPointer.tospace`."""
    return raw_pointer(arg).tospace(res.space)


def ptrtoint(res: Any, arg: Operand) -> Operand:
    """The address of a pointer as a number of a type; in shared memory it counts from the block's first byte."""
    return raw_pointer(arg).toint(dtype_of(res))


def inttoptr(res: PointerType, arg: Operand) -> Any:
    """The pointer to words at an address that is a number, in the memory of the type `res`."""
    if res.space is AddressSpace.tmem:
        return TmemPointer(arg, Int32)
    return make_ptr(Int32, arg, res.space).raw_ptr()


def extractvalue(res: object, container: object, position: Sequence[int]) -> Operand:
    """The member of a structure at a position: a number for each structure on the way. The words of a tensor map are
    the map. Raises TilefoldError (E5002) for a member that the structure does not have.
    """
    if isinstance(container, TmaDescriptor) and list(position) == [0] and isinstance(res, StructType):
        return container
    value = container.value if isinstance(container, Value) else container
    for number in position:
        if not isinstance(value, StructValue) or not 0 <= number < len(value.members):
            problem = f"a value of type {type(value).__name__} has no member {number}"
            raise TilefoldError(Code.BUILD_VALUE, problem, "count the members of the structure from 0")
        value = value.members[number]
    return value


def mlir_undef(res: object) -> Undefined:
    """A vector or a structure of a type whose members are not known; `vector.insert` and `insertvalue` set them. Raises
    TilefoldError (E5002) for another type.
    """
    if isinstance(res, VectorType):
        (count,) = res.get_shape()
    elif isinstance(res, StructType):
        count = len(res.members)
    else:
        hint = "give a type of vectors or of structures"
        raise TilefoldError(Code.BUILD_VALUE, f"a value of type {res} has no members", hint)
    return Undefined(res, (None,) * count)


def mlir_zero(res: Any) -> Any:
    """Zero of a type: a number, or a vector of zeros."""
    if not isinstance(res, VectorType):
        return dtype_of(res)(0)
    vector = cast("VectorType[Attribute]", res)
    return full(vector.get_shape(), 0, dtype_of(vector.element_type))


def extractelement(vector: object, position: object) -> Operand:
    """The element of a vector at a place, which may be a value."""
    return vector_dialect.extractelement(vector, position=position)


def insertelement(vector: Vec | Undefined, value: object, position: object) -> Vec | Undefined:
    """A vector with a number in a place that Python knows. Raises TilefoldError (E5003) for another place."""
    return vector_dialect.insertelement(value, vector, position=position)


def insertvalue(container: Undefined | StructValue, value: object, position: Sequence[int]) -> Operand:
    """A structure with a member at a position of one number. Raises TilefoldError (E5002) for a member that it does not
    have, and for a longer position.
    """
    if len(position) != 1:
        raise TilefoldError(Code.BUILD_VALUE, "a member is selected by a single position", "set the inner one first")
    given = container if isinstance(container, Undefined) else Undefined(None, container.members)
    changed = given.with_member(position[0], value)
    return StructValue(changed.members) if changed.is_complete else changed


def store(value: object, addr: object, *, alignment: int | None = None) -> None:
    """Writes a number, or the tensor map of an atom, to memory. Raises TilefoldError (E5002) for a structure."""
    if isinstance(value, TmaDescriptor):
        copy_tensormap(value.atom, addr)
        return
    if isinstance(value, StructValue | Undefined):
        raise TilefoldError(Code.BUILD_VALUE, "structures cannot be placed in memory", "store each member")
    raw_pointer(addr).store(value, alignment)


def intr_ctlz(in_: object, is_zero_poison: bool = False) -> Operand:
    """The zeros above the highest bit of an integer; of 0 all its bits."""
    return clz(in_)


def inline_asm(res: object, operands_: Sequence[object], asm_string: str, constraints: str, **flags: object) -> Any:
    """Instructions as text; see `cute.arch.inline_ptx`. `res` is the type of the result, None for none, a structure for
    several; a predicate is an integer of 32 bits to the text, 0 where it does not hold, or a predicate by the
    constraint `b`, and a constant by the constraint `i` is in a register of 32 bits. As LLVM has it, an operand by the
    number of a result begins in the result's register, a register of 32 bits holds the lower half of an integer of 64,
    one of 64 bits an integer of 32, here below zeros, and an operand for which there is no constraint, and which the
    text cannot name, is left out; results need not come first.
    """
    each = [letter.strip() for letter in constraints.split(",") if letter.strip()]
    results = [letter.replace("&", "") for letter in each if letter.startswith("=")]
    reads = [letter for letter in each if not letter.startswith(("=", "~"))]
    text = _tied(_results_first(asm_string, each), results, reads)
    of_operands = ["r" if x in ("i", "n") else results[int(x)].lstrip("=") if x.isdigit() else x for x in reads]
    given = [_in_register(x, letter) for x, letter in zip(operands_, of_operands, strict=False)]
    text = _with_predicates(text, [*results, *of_operands])
    every = [*(letter.replace("b", "r") for letter in (*results, *of_operands)), *each[len(results) + len(reads) :]]
    letters = ",".join(every)
    if isinstance(res, StructType):
        made = inline_ptx(text, letters, *given, results=res.members)
        return StructValue(made)
    decides = res == Boolean.mlir_type
    made = inline_ptx(text, letters, *given, results=() if res is None else Int32.mlir_type if decides else res)
    return made != 0 if decides else made


def _results_first(text: str, letters: Sequence[str]) -> str:
    """A text with registers by the numbers that they have where the results come first."""
    order = sorted(range(len(letters)), key=lambda place: not letters[place].startswith("="))
    numbers = {place: number for number, place in enumerate(order)}
    return re.sub(r"(?<!\$)\$(\d+)\b", lambda x: f"${numbers.get(int(x[1]), x[1])}", text)


def _tied(text: str, results: Sequence[str], reads: Sequence[str]) -> str:
    """A text that first moves each operand which is tied to a result into the result's register, and then names that.
    TilefoldError (E5002) for the number of a result that there is not.
    """
    for number, tie in [(len(results) + at, int(letter)) for at, letter in enumerate(reads) if letter.isdigit()]:
        if tie >= len(results):
            message = f"the constraint {tie} names no result: there are {len(results)}"
            raise TilefoldError(Code.BUILD_VALUE, message, "results come first, with = before their letter")
        bits = 64 if results[tie][-1] in "ld" else 16 if results[tie][-1] == "h" else 32
        text = re.sub(rf"(?<!\$)\${number}\b", f"${tie}", text)
        text = f"mov.b{bits} ${tie}, ${number};{text}"
    return text


def _with_predicates(text: str, letters: Sequence[str]) -> str:
    """A text with predicates that it declares in place of registers by the constraint `b`, which hold 0 or 1."""
    before, after = list[str](), list[str]()
    for place, letter in enumerate(letters):
        if letter in ("b", "=b"):
            name = f"holds{place}"
            text = re.sub(rf"(?<!\$)\${place}\b", name, text)
            before.append(f".reg .pred {name};" + (f" setp.ne.b32 {name}, ${place}, 0;" if letter == "b" else ""))
            after += [f"selp.b32 ${place}, 1, 0, {name};"] if letter == "=b" else []
    return f"{{{' '.join([*before, text.rstrip().rstrip(';') + ';', *after])}}}" if before else text


def _in_register(x: Any, letter: str) -> Any:
    """An operand as the register of its constraint holds it."""
    if letter == "l" and isinstance(x, Int) and x.dtype.bits == 32:
        return extui(Int64, x)  # LLVM leaves the upper half undefined
    is_narrowed = letter == "r" and isinstance(x, Int) and x.dtype.bits == 64
    return convert(x, Int32) if isinstance(x, Bool) or is_narrowed else x
