# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single accesses to memory as text, `ld.global.acquire.gpu.b32 $0, [$1];`, as the operations that they are.

So the simulator executes them, and knows their order (PTX ISA, ld, st, atom, red). The words after the instruction may
be in any order.
"""

import re
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from ...dialects import ptx
from ...layout.atoms.cache_hints import LOAD_HINTS, STORE_HINTS
from ..scalars.casts import from_vector, in_vector
from ..scalars.dtypes import DTYPES, DType, Int64, of_sign
from ..scalars.operators import Operand
from ..scalars.values import Int, as_value, convert, wrap
from ..tensors.raw_pointers import Address
from ..tracing.state import emit

_ACCESS = re.compile(
    r"\s*(?P<word>(?:ld|st|atom|red)(?:\.\w+)+)\s+(?:(?P<to>\$0|\{[^{}]*\})\s*,\s*)?(?P<at>\[\$\d\])"
    r"(?:\s*,\s*(?P<value>\$\d|\{[^{}]*\}))?\s*;?\s*"
)
_WEAK = re.compile(
    r"\s*(?P<name>ld|st)(?:\.weak)?\.global(?P<hint>(?:\.(?!v[248]\b)[\w:]+)*?)(?:\.v(?P<count>[248]))?\.(?P<type>\w+)\s+"
    r"(?P<first>\$0|\[\$0\]|\{[^{}]*\})\s*,\s*(?P<second>\$1|\[\$\d+\]|\{[^{}]*\})\s*;?\s*"
)
_ORDERS = {
    "ld": ("acquire", "relaxed"),
    "st": ("release", "relaxed"),
    "atom": ("relaxed", "acquire", "release", "acq_rel"),
    "red": ("relaxed", "release"),
}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_VECTORS = {"v2": 2, "v4": 4}
_CHANGES = ("add", "min", "max", "and", "or", "xor", "exch")
TYPES = {
    **{f"{letter}{bits}": DTYPES[f"{name}{bits}"] for letter, name in (("s", "Int"), ("u", "Uint"), ("f", "Float"))
       for bits in (32, 64)},
    "b32": DTYPES["Uint32"], "b64": DTYPES["Uint64"],
}  # fmt: skip
"""The types of values by the ends of instructions."""
_NARROW = {"b8": DTYPES["Uint8"], "b16": DTYPES["Uint16"]}
"""Those of stores that no other instruction here has."""


def memory_operation(text: str, operands: Sequence[Operand], results: Sequence[DType]) -> tuple[Operand, ...] | None:
    """The results of an access to global memory with an order that is written as text; None for any other text, and for
    values of other types than the text says.
    """
    weak = _WEAK.fullmatch(text)
    made = None if weak is None else _weak_access(weak, operands, results)
    known = _ACCESS.fullmatch(text)
    if known is None or made is not None:
        return made
    name, *words = known["word"].split(".")
    order, scope, change, vector, type = (
        _only(words, names) for names in (_ORDERS[name], _SCOPES, _CHANGES, _VECTORS, TYPES)
    )
    changes, reads = name in ("atom", "red"), name in ("ld", "atom")
    if set(words) - {order, scope, change, vector, type, "global"} or type is None:
        return None
    count = _VECTORS.get(vector or "", 1)
    if count > 1 and (changes or TYPES[type].bits != 32 or not _has_registers(known, name == "ld", count)):
        return None
    if (change is None) is changes or (order is None and not changes):
        return None
    dtype, (at, *given) = TYPES[type], operands or (0,)
    values = [as_value(value) for value in given]
    if len(values) != count * (name != "ld") or len(results) != count * reads or not _is_global(at):
        return None
    if any((x.kind, x.bits) != (dtype.kind, dtype.bits) for x in (*results, *(value.dtype for value in values))):
        return None
    place = _address(at, dtype, count * dtype.bits // 8)
    if name == "ld":
        whole = dtype.ir if count == 1 else VectorType(dtype.ir, [count])
        return _parts(emit(ptx.LoadAcquireOp(place, whole, scope, order == "relaxed")).results[0], dtype, results)
    each = [convert(value, dtype).ssa for value in values]
    value = each[0] if count == 1 else in_vector(each)
    if change is None:
        emit(ptx.StoreReleaseOp(value, place, scope=scope, relaxed=order == "relaxed"))
        return ()
    made = emit(
        (ptx.AtomOp if reads else ptx.RedOp)(of_sign(change, dtype), place, value, order=order, scope=scope)
    ).results
    return tuple(convert(wrap(ssa, dtype), result) for ssa, result in zip(made, results, strict=True))


def _weak_access(
    text: re.Match[str], operands: Sequence[Operand], results: Sequence[DType]
) -> tuple[Operand, ...] | None:
    """The results of a load or store without an order; None for operands that are not those of the text."""
    loads, hint, count = text["name"] == "ld", text["hint"].removeprefix("."), int(text["count"] or 1)
    dtype = TYPES.get(text["type"]) or (None if loads else _NARROW.get(text["type"]))
    value, at = _registers(loads, count)
    value = value if text["count"] else value.strip("{}")
    if dtype is None or hint not in ("", *(LOAD_HINTS if loads else STORE_HINTS)) or count * dtype.bits > 128:
        return None
    if [_tight(text["first"]), _tight(text["second"])] != ([value, at] if loads else [at, value]):
        return None
    place, *given = operands or (0,)
    values = [as_value(each) for each in given]
    types = [*results, *(each.dtype for each in values)]
    if len(types) != count or len(values) != (0 if loads else count) or not _is_global(place):
        return None
    if any((x.kind, x.bits) != (dtype.kind, dtype.bits) for x in types):
        return None
    size = count * dtype.bits // 8
    to = _address(place, dtype, size)
    if not loads:
        each = [convert(value, dtype).ssa for value in values]
        emit(ptx.StoreOp(each[0] if count == 1 else in_vector(each), to, size, hint))
        return ()
    type = dtype.ir if count == 1 else VectorType(dtype.ir, [count])
    return _parts(emit(ptx.LoadOp(to, type, size, hint)).results[0], dtype, results)


def _parts(loaded: SSAValue, dtype: DType, results: Sequence[DType]) -> tuple[Operand, ...]:
    """A value, or the elements of a vector, in the types of the results."""
    parts = [loaded] if len(results) == 1 else from_vector(loaded, len(results))
    return tuple(convert(wrap(part, dtype), result) for part, result in zip(parts, results, strict=True))


def _has_registers(text: re.Match[str], loads: bool, count: int) -> bool:
    """Whether an access to a vector with an order names its registers and its address by their places."""
    value, at = _registers(loads, count)
    given = [_tight(text[name] or "") for name in ("to", "at", "value")]
    return given == ([value, at, ""] if loads else ["", at, value])


def _registers(loads: bool, count: int) -> tuple[str, str]:
    """The registers of an access in braces, and its address, as text without spaces."""
    registers = ",".join(f"${number + (not loads)}" for number in range(count))
    return f"{{{registers}}}", f"[${count if loads else 0}]"


def _tight(text: str) -> str:
    return "".join(text.split())


def _only(words: Sequence[str], names: Iterable[str]) -> str | None:
    return next((word for word in words if word in names), None)


def _is_global(at: object) -> bool:
    """Whether this is an address in global memory, or a number of 64 bits, which may be one."""
    if isinstance(at, Address):
        return at.ssa.type == ptx.GLOBAL
    return isinstance(at, Int) and at.dtype.bits == 64


def _address(at: Operand, dtype: DType, align: int = 0) -> SSAValue:
    if isinstance(at, Address):
        return at.ssa
    return emit(ptx.IntToPtrOp(convert(at, Int64).ssa, align or dtype.bits // 8, ptx.GLOBAL)).results[0]
