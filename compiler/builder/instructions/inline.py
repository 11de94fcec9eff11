# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text in a kernel."""

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from ....base.errors import Code, TilefoldError
from ....dialects.ptx import InlineOp
from ..scalars.dtypes import Float32, Int32, Int64, as_dtype
from ..scalars.values import Value, as_value, convert, is_scalar, wrap
from ..tensors.tensors import Address
from ..tracing.state import current, emit
from .arch import APPROXIMATIONS, approx
from .cluster_texts import cluster_operation
from .memory_texts import memory_operation

_APPROXIMATION = re.compile(rf"\s*({'|'.join(APPROXIMATIONS)})\.approx(\.ftz)?\.f32\s+\$0\s*,\s*\$1\s*;\s*")


def inline_ptx(
    text: str, constraints: str, *operands: Any, results: Any = (), sim: Callable[..., Any] | None = None
) -> Any:
    """Instructions as text: `inline_ptx("lop3.b32 $0, $1, $2, $3, 0x96;", "=r,r,r,r", a, b, c, results=cute.Int32)`.

    `$0` and so on stand for the registers of the results, then of the operands: values, numbers, and addresses of
    elements (`t.ptr(i)`). Constraints are CUDA's and are checked against the types, one for each register, `=` before
    those of results: h, r, l for 16, 32 and 64 bits, f and d for Float32 and Float64. `results` is a type, or a tuple
    of types, for which a value, or a tuple of values, is returned.

    The simulator executes `sim` in place of the text: a function of NumPy's arrays, the operands in all lanes of a
    warp, that gives such arrays of the results: `sim=lambda a, b, c: a ^ b ^ c`. It knows nothing of memory, and the
    text of the kernel (`to_cute`) lacks it. Texts that the simulator understands need none: one approximation of a
    Float32, such as `tanh.approx.f32 $0, $1;`; accesses to global memory with an order,
    `ld.global.acquire.gpu.b32 $0, [$1];`, of an address or its number; `mapa.shared::cluster.u32`; `st.async`; and
    instructions of arithmetic, of bits (`bfe`, `bfi`, `brev`, `lop3`), comparisons, `selp` and `vote.sync`, one after
    the other, on special registers and on those that the text declares:
    `{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, $1, $2, p; }`.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected PTX as text, got {type(text).__name__}")
    known = _APPROXIMATION.fullmatch(text) if sim is None and "".join(constraints.split()) == "=f,f" else None
    if known and len(operands) == 1 and results in (Float32, Float32.ir) and is_scalar(operands[0]):
        return approx(known[1], operands[0], known[2] is not None)
    if sim is not None:
        current().texts[text] = sim
    several = isinstance(results, tuple | list)
    types = [as_dtype(result) for result in (cast("Sequence[Any]", results) if several else (results,))]
    values = memory_operation(text, operands, types) if sim is None else None
    if values is None and sim is None:
        values = cluster_operation(text, operands, types)
    if values is None:
        args = [_operand(operand) for operand in operands]
        made = emit(InlineOp(text, constraints, args, [dtype.ir for dtype in types])).results
        values = tuple(wrap(ssa, dtype) for ssa, dtype in zip(made, types, strict=True))
    return values if several else values[0]


def dynamic_smem_size() -> Any:
    """The bytes of shared memory whose size the launch sets: 0 for a kernel with at most 48 KiB, which are static. The
    simulator has no other.
    """
    return inline_ptx("mov.u32 $0, %dynamic_smem_size;", "=r", results=Int32)


def _operand(x: Any) -> Any:
    if isinstance(x, Address):
        return x.ssa
    value = as_value(x) if not isinstance(x, Value) else x
    return (convert(value, Int64) if value.dtype.name == "Index" else value).ssa
