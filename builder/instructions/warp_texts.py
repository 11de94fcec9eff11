# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchange between lanes as text, `redux.sync.max.f32 $0, $1, 0xffffffff;`, `shfl.sync.idx.b32` and `movmatrix`, as the
operations that they are (PTX ISA, redux.sync, shfl.sync, movmatrix).
"""

import re
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...base.target import WARP
from ...dialects import ptx
from ..scalars.dtypes import DType, Float32, Int32, Uint32, of_sign
from ..scalars.operators import Operand
from ..scalars.values import as_value, convert, wrap
from ..tracing.state import emit

_REDUX = re.compile(
    r"\s*redux\.sync\.(?P<kind>add|min|max|and|or|xor)(?P<of_floats>(?:\.abs)?(?:\.NaN)?)\.(?P<type>[sub]32|f32)"
    r"\s+\$0\s*,\s*\$1\s*,\s*(?P<mask>[\w$-]+)\s*;?\s*"
)
_SHFL = re.compile(
    r"\s*shfl\.sync\.(?P<kind>idx|bfly|up|down)\.b32\s+\$0\s*,\s*\$1\s*,\s*(?P<lane>[\w$]+)\s*,\s*(?P<clamp>\w+)"
    r"\s*,\s*(?P<mask>[\w$-]+)\s*;?\s*"
)
_MOVMATRIX = re.compile(r"\s*movmatrix\.sync\.aligned\.m8n8\.trans\.b16\s+\$0\s*,\s*\$1\s*;?\s*")
_TYPES = {"s32": Int32, "u32": Uint32, "b32": Int32, "f32": Float32}
_CLAMP, _SEGMENT_BITS = WARP - 1, 0x1F00
_ALL = 0xFFFFFFFF


def warp_operation(text: str, operands: Sequence[Operand], results: Sequence[DType]) -> tuple[Operand, ...] | None:
    """The result of an exchange of 32 bits that is written as text; None for any other text, and for values of other
    types than the text says.
    """
    redux, shfl, transposes = _REDUX.fullmatch(text), _SHFL.fullmatch(text), _MOVMATRIX.fullmatch(text)
    if not (redux or shfl or transposes) or len(results) != 1 or not operands or results[0].bits != 32:
        return None
    value = as_value(operands[0])
    if value.dtype.bits != 32:
        return None
    if transposes is not None:
        if len(operands) != 1 or value.dtype.kind != "int" or results[0].kind != "int":
            return None
        return (convert(wrap(emit(ptx.MovMatrixOp(convert(value, Int32).ssa)).results[0], Int32), results[0]),)
    if shfl is not None:
        clamp, kind = int(shfl["clamp"], 0), shfl["kind"]
        width = WARP - (clamp >> 8)
        fits = not clamp & ~(_SEGMENT_BITS | _CLAMP) and clamp & _CLAMP == (0 if kind == "up" else _CLAMP)
        if not fits or width & width - 1 or value.dtype != results[0]:
            return None
        lane, mask = _operand(shfl["lane"], operands), _mask(shfl["mask"], operands)
        moved = ptx.ShflSyncOp(kind, value.ssa, convert(lane, Int32).ssa, None if width == WARP else width, mask)
        return (wrap(emit(moved).results[0], value.dtype),)
    assert redux is not None
    dtype = _TYPES[redux["type"]]
    of_floats = dtype is Float32
    if any((x.kind == "float") != of_floats for x in (value.dtype, results[0])) or (
        redux["of_floats"] and not of_floats
    ):
        return None
    given = value if of_floats else convert(value, dtype)
    kind = redux["kind"] + redux["of_floats"] if of_floats else of_sign(redux["kind"], dtype)
    made = emit(ptx.ReduxSyncOp(kind, given.ssa, _mask(redux["mask"], operands)))
    return (convert(wrap(made.results[0], dtype), results[0]),)


def _operand(text: str, operands: Sequence[object]) -> Operand:
    """A number of the text, or the operand of a register; the first one is that of the result."""
    return operands[int(text[1:]) - 1] if text.startswith("$") else int(text, 0)


def _mask(text: str, operands: Sequence[object]) -> SSAValue | None:
    """A mask of lanes; None for the whole warp."""
    mask = _operand(text, operands)
    return None if mask in (-1, _ALL) else convert(mask, Int32).ssa
