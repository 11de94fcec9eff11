# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of clusters and bulk copies as text, `mapa.shared::cluster.u32 $0, $1, $2;`, `st.async`,
`cp.async.bulk`, `cp.reduce.async.bulk` and `tensormap.replace`, as the operations that they are (PTX ISA, sections of
these names). Addresses in shared memory are numbers of 32 bits, as `pointer.toint()` gives them.

They decide which targets have the kernel. The simulator reads all other instructions of a text when it executes it.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import SSAValue

from ...base.spaces import GMEM
from ...dialects import ptx
from ...dialects.ptx.bulk import BULK_REDUCTIONS
from ..scalars.casts import in_vector
from ..scalars.dtypes import DType, Int32, Int64
from ..scalars.operators import Operand
from ..scalars.values import Int, as_value, convert, wrap
from ..tensors.raw_pointers import Address, RawPointer
from ..tensors.tensors import Pointer, address_of
from ..tracing.state import emit
from .memory_texts import TYPES

_MAPA = re.compile(r"\s*mapa\.shared::cluster\.u32\s+\$0\s*,\s*\$1\s*,\s*\$2\s*;?\s*")
_STORE = re.compile(
    r"\s*st\.async(?:\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes(?:\.v[24])?\.(?P<type>\w+)"
    r"\s+\[\$(?P<at>\d+)\]\s*,\s*(?P<values>\$\d+|\{[^{}]*\})\s*,\s*\[\$(?P<bar>\d+)\]\s*;?\s*"
)
_VECTOR = re.compile(
    r"\s*\{\s*\.reg\s+\.v[24]\s+\.\w+\s+(?P<name>\w+)\s*;"
    r"(?P<moves>(?:\s*mov\.\w+\s+(?P=name)\.[xyzw]\s*,\s*\$\d+\s*;)+)"
    r"(?P<then>[^;]*;)\s*\}\s*"
)
_MOVE = re.compile(r"\.([xyzw])\s*,\s*(\$\d+)\s*;")
_BULK = re.compile(
    r"\s*(?P<word>cp\.(?:reduce\.)?async\.bulk\.[\w.:]+)\s+\[\$(?P<dst>\d+)\]\s*,\s*\[\$(?P<src>\d+)\]\s*,\s*"
    r"\$(?P<bytes>\d+)(?:\s*,\s*\[\$(?P<bar>\d+)\])?(?:\s*,\s*\$(?P<policy>\d+))?\s*;?\s*"
)
_REPLACE = re.compile(
    r"\s*(?:\{\s*\.reg\s+\.b64\s+(?P<wide>\w+)\s*;\s*cvt\.u64\.u32\s+(?P=wide)\s*,\s*\$(?P<narrow>\d+)\s*;\s*)?"
    r"tensormap\.replace\.tile\.(?P<field>\w+)\.(?P<space>global|shared::cta)\.b1024\.b(?P<bits>32|64)"
    r"\s+\[(?:\$(?P<at>\d+)|(?P=wide))\]\s*,(?:\s*(?P<of>\d+)\s*,)?\s*\$(?P<value>\d+)\s*;\s*(?(wide)\}\s*|)"
)
_HINT = ".L2::cache_hint"
_LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
_STORED = "async.bulk.global.shared::cta.bulk_group"
_MBARRIER_BYTES, _BULK_ALIGN = 8, 16


def cluster_operation(text: str, operands: Sequence[Operand], results: Sequence[DType]) -> tuple[Operand, ...] | None:
    """The results of an instruction of clusters that is written as text; None for any other text, and for values of
    other types than the text says.
    """
    if _MAPA.fullmatch(text):
        return _map(operands, results[0]) if len(operands) == 2 and len(results) == 1 else None
    if (bulk := _BULK.fullmatch(text)) is not None:
        return None if results else _bulk_copy(bulk, operands)
    if (replaced := _REPLACE.fullmatch(text)) is not None:
        return None if results else _replace(replaced, operands)
    stored = _STORE.fullmatch(_in_place(text))
    dtype = TYPES.get(stored["type"]) if stored else None
    if stored is None or dtype is None or results:
        return None
    at, bar = operands[int(stored["at"])], operands[int(stored["bar"])]
    values = [as_value(operands[int(number)]) for number in re.findall(r"\$(\d+)", stored["values"])]
    fits = all((value.dtype.kind, value.dtype.bits) == (dtype.kind, dtype.bits) for value in values)
    if not fits or len(operands) != 2 + len(values) or not (_is_number(at) and _is_number(bar)):
        return None
    each = [value.ssa for value in values]
    stored_value, size = each[0] if len(each) == 1 else in_vector(each), len(each) * dtype.bits // 8
    places = _place(at, size, ptx.SHARED_CLUSTER), _place(bar, _MBARRIER_BYTES, ptx.SHARED_CLUSTER)
    emit(ptx.StAsyncOp(stored_value, *places))
    return ()


def _in_place(text: str) -> str:
    """A text with a vector's name replaced by its members, which instructions have filled before."""
    found = _VECTOR.fullmatch(text)
    if found is None:
        return text
    members = [
        register for _, register in sorted(_MOVE.findall(found["moves"]), key=lambda move: "xyzw".index(move[0]))
    ]
    return re.sub(rf"\b{found['name']}\b", "{" + ", ".join(members) + "}", found["then"])


def _map(operands: Sequence[Operand], result: DType) -> tuple[Operand, ...] | None:
    at, rank = operands
    is_own = isinstance(at, Address) and at.ssa.type == ptx.SHARED
    if not (is_own or _is_number(at)) or result.kind != "int" or result.bits != 32:
        return None
    own = at.ssa if is_own else _place(at, 1, ptx.SHARED)
    peer = emit(ptx.MapaOp(own, convert(rank, Int32).ssa)).results[0]
    return (convert(wrap(emit(ptx.PtrToIntOp(peer)).results[0]), result),)


def _bulk_copy(text: re.Match[str], operands: Sequence[Operand]) -> tuple[()] | None:
    """Emits a copy between the block's own shared memory and global memory, or a reduction to the latter."""
    numbers = {name: int(number) for name, number in text.groupdict().items() if name != "word" and number is not None}
    word = text["word"].replace(_HINT, "", 1)
    if sorted(numbers.values()) != list(range(len(operands))) or (word != text["word"]) is not ("policy" in numbers):
        return None
    given = {name: operands[number] for name, number in numbers.items()}
    loads = word == _LOAD
    kind = word.removeprefix(f"cp.reduce.{_STORED}.").replace(".noftz", "")
    spaces = (ptx.SHARED, ptx.GLOBAL) if loads else (ptx.GLOBAL, ptx.SHARED)
    dst, src = (_in_space(given[name], space) for name, space in zip(("dst", "src"), spaces, strict=True))
    bar = _in_space(given["bar"], ptx.SHARED, _MBARRIER_BYTES) if "bar" in given else None
    if dst is None or src is None or loads is (bar is None):
        return None
    policy = convert(given["policy"], Int64).ssa if "policy" in given else None
    if loads and bar is not None:
        emit(ptx.BulkLoadOp(dst(), src(), convert(given["bytes"], Int32).ssa, bar(), policy=policy))
    elif word == f"cp.{_STORED}":
        emit(ptx.BulkStoreOp(dst(), src(), convert(given["bytes"], Int32).ssa, policy=policy))
    elif kind in BULK_REDUCTIONS:
        emit(ptx.BulkReduceOp(kind, dst(), src(), convert(given["bytes"], Int32).ssa, policy))
    else:
        return None
    return ()


def _replace(text: re.Match[str], operands: Sequence[Operand]) -> tuple[()] | None:
    """Emits the change of a field of a tensor map that has a number, in global memory or the block's shared memory."""
    place, value, field = int(text["at"] or text["narrow"]), int(text["value"]), ptx.MAP_FIELDS.get(text["field"])
    if field is None or field.words or sorted((place, value)) != [0, 1] or len(operands) != 2:
        return None
    is_global, dtype, number = text["space"] == GMEM.ptx, Int64 if text["bits"] == "64" else Int32, operands[value]
    at = _in_space(operands[place], ptx.GLOBAL if is_global else ptx.SHARED, ptx.MAP_BYTES)
    fits = isinstance(number, Int) and number.dtype.bits == dtype.bits == field.bits
    if at is None or not fits or (is_global and text["wide"]) or (text["of"] is None) is not (field.dimensions == 0):
        return None
    ordinal = None if text["of"] is None else int(text["of"])
    emit(ptx.TensorMapReplaceOp(text["field"], at(), convert(number, dtype).ssa, ordinal))
    return ()


def _in_space(at: object, space: ptx.PtrType, align: int = _BULK_ALIGN) -> Callable[[], SSAValue] | None:
    """What makes an address in a memory of an operand, a pointer or a number; None for another operand."""
    if isinstance(at, Address | Pointer | RawPointer):
        held = address_of(at).ssa
        return partial(_same, held) if held.type == space else None
    bits = 64 if space == ptx.GLOBAL else 32
    return partial(_place, at, align, space) if isinstance(at, Int) and at.dtype.bits == bits else None


def _same(ssa: SSAValue) -> SSAValue:
    return ssa


def _is_number(at: object) -> bool:
    return isinstance(at, Int) and at.dtype.bits == 32


def _place(at: Operand, align: int, type: ptx.PtrType) -> SSAValue:
    width = Int64 if type == ptx.GLOBAL else Int32
    return emit(ptx.IntToPtrOp(convert(at, width).ssa, align, type)).results[0]
