# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of clusters as text, `mapa.shared::cluster.u32 $0, $1, $2;` and `st.async`, as the operations that they
are (PTX ISA, mapa, st.async). Addresses are numbers of 32 bits, as `pointer.toint()` gives them.
"""

import re
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from ...dialects import ptx
from ..scalars.casts import in_vector
from ..scalars.dtypes import DType, Int32
from ..scalars.values import Int, as_value, convert, wrap
from ..tensors.raw_pointers import Address
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
_MBARRIER_BYTES = 8


def cluster_operation(text: str, operands: Sequence[Any], results: Sequence[DType]) -> tuple[Any, ...] | None:
    """The results of an instruction of clusters that is written as text; None for any other text, and for values of
    other types than the text says.
    """
    if _MAPA.fullmatch(text):
        return _map(operands, results[0]) if len(operands) == 2 and len(results) == 1 else None
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
    """A text with the members of a vector, to which instructions move them before, in the place of its name."""
    found = _VECTOR.fullmatch(text)
    if found is None:
        return text
    members = [
        register for _, register in sorted(_MOVE.findall(found["moves"]), key=lambda move: "xyzw".index(move[0]))
    ]
    return re.sub(rf"\b{found['name']}\b", "{" + ", ".join(members) + "}", found["then"])


def _map(operands: Sequence[Any], result: DType) -> tuple[Any, ...] | None:
    at, rank = operands
    is_own = isinstance(at, Address) and at.ssa.type == ptx.SHARED
    if not (is_own or _is_number(at)) or result.kind != "int" or result.bits != 32:
        return None
    own = at.ssa if is_own else _place(at, 1, ptx.SHARED)
    peer = emit(ptx.MapaOp(own, convert(rank, Int32).ssa)).results[0]
    return (convert(wrap(emit(ptx.PtrToIntOp(peer)).results[0]), result),)


def _is_number(at: object) -> bool:
    return isinstance(at, Int) and at.dtype.bits == 32


def _place(at: Any, align: int, type: ptx.PtrType) -> SSAValue:
    return emit(ptx.IntToPtrOp(convert(at, Int32).ssa, align, type)).results[0]
