# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text in a kernel; instructions without operands become the operations that they name (PTX ISA, fence, membar,
cp.async, griddepcontrol, barrier.cluster, tcgen05.fence, tcgen05.wait).

Text that computes and stores its result in global memory, `{ .reg .b32 x; add.u32 x, $0, $1; st.global.b32 [$2], x; }`,
becomes text that computes and a store, so that the simulator sees the access (PTX ISA, st).

Special registers of the multiprocessor that executes a thread are read so (PTX ISA, Special Registers). The simulator
has one multiprocessor, and no time passes there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from xdsl.ir import Attribute, Operation

from ...base.errors import Code, TilefoldError
from ...base.spaces import GMEM, SMEM
from ...dialects import ptx
from ...dialects.ptx import InlineOp
from ...dialects.ptx.base import make_constraint
from ..scalars.dtypes import DTYPES, DType, Float32, Int32, Int64, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import Int, Value, as_value, convert, is_scalar, wrap
from ..tensors.raw_pointers import RawPointer
from ..tensors.tensors import Address, Pointer, address_of
from ..tracing.state import current, emit
from .arch import APPROXIMATIONS, approx
from .cluster_texts import cluster_operation
from .memory_texts import memory_operation
from .register_texts import register_text

_TEXT = re.compile(
    r"\s*\{(?P<body>.*;)\s*st(?:\.weak)?\.global(?:\.v(?P<count>[24]))?\.(?P<type>[bu]\d+)\s+\[\$(?P<at>\d+)\]\s*,"
    r"\s*(?P<values>\w+|\{[^{}]*\})\s*;?\s*\}\s*",
    re.DOTALL,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARATION = re.compile(r"\.reg\s+(\.\w+)\s+([\w\s,]+);")
_REGISTERS: Mapping[int, str] = MappingProxyType({8: "Uint16", 16: "Uint16", 32: "Uint32", 64: "Uint64"})
"""The types of registers by the bits that are stored of them: none has 8."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text without its store: `text` writes the `results`, which `store` takes after the address, number `address` of
    the operands.
    """

    text: str
    results: tuple[DType, ...]
    stored: DType
    store: str
    address: int


def stored_text(text: str, operands: int) -> StoredText | None:
    """The parts of a text with this many operands, and no results, that ends with a store; None for another."""
    found = _TEXT.fullmatch(_COMMENT.sub(" ", text))
    if found is None or f"Uint{found['type'][1:]}" not in DTYPES:
        return None
    names = [name.strip() for name in found["values"].strip("{}").split(",")]
    body, at, bits = found["body"], int(found["at"]), int(found["type"][1:])
    declared = {name.strip() for each in _DECLARATION.finditer(body) for name in each[2].split(",")}
    is_used = re.search(rf"\$\s*{at}\b", body) is not None
    if len(names) != int(found["count"] or 1) or len(set(names)) != len(names) or not declared.issuperset(names):
        return None
    if is_used or "@" in body or not 0 <= at < operands:
        return None
    body = _DECLARATION.sub(lambda each: _without(each, names), body)
    body = re.sub(r"\$(\d+)", lambda each: f"${int(each[1]) - (int(each[1]) > at) + len(names)}", body)
    for number, name in enumerate(names):
        body = re.sub(rf"(?<![\w.$%]){name}(?!\w)", f"${number}", body)
    registers = ", ".join(f"${number + 1}" for number in range(len(names)))
    value = f"{{{registers}}}" if found["count"] else registers
    vector = f".v{len(names)}" if found["count"] else ""
    store = f"st.global{vector}.b{bits} [$0], {value};"
    return StoredText(f"{{{body}}}", (DTYPES[_REGISTERS[bits]],) * len(names), DTYPES[f"Uint{bits}"], store, at)


def _without(declaration: re.Match[str], names: Sequence[str]) -> str:
    """A declaration of registers without some of them."""
    left = [name.strip() for name in declaration[2].split(",") if name.strip() not in names]
    return f".reg {declaration[1]} {', '.join(left)};" if left else ""


_NAMED = re.compile(r"\{\$([wr])(\d+)\}")
"""A register by its access and its number, as the dialect nvvm of MLIR names it."""
_APPROXIMATION = re.compile(rf"\s*({'|'.join(APPROXIMATIONS)})\.approx(\.ftz)?\.f32\s+\$0\s*,\s*\$1\s*;\s*")


def inline_ptx(
    text: str,
    constraints: str | None = None,
    *operands: object,
    results: object = (),
    sim: Callable[..., object] | None = None,
    write_only_types: Sequence[object] | None = None,
    read_only_args: Sequence[object] = (),
    read_write_args: Sequence[object] = (),
    predicate: object = None,
    force_register_args: Sequence[int] = (),
) -> Operand:
    """Instructions as text: `inline_ptx("lop3.b32 $0, $1, $2, $3, 0x96;", "=r,r,r,r", a, b, c, results=cute.Int32)`, or
    `inline_ptx("max.s32 {$w0}, {$r0}, {$r1};", write_only_types=[cute.Int32], read_only_args=[a, b])`, where types
    decide the constraints: `{$w0}` is the register of the first result, `{$r0}` that of the first operand. This form
    returns a value, several as a tuple, or None; with a `predicate`, which the text of one instruction without results
    may have, it does nothing where that is not true. Operands are always in registers (`force_register_args`); none is
    both read and written (`read_write_args`, E5002).

    `$0` and so on stand for the registers of the results, then of the operands: values, numbers, and addresses of
    elements (`t.ptr(i)`). Constraints are CUDA's and are checked against the types, one for each register, `=` before
    those of results: h, r, l for 16, 32 and 64 bits, f and d for Float32 and Float64. `results` is a type, or a tuple
    of types, for which a value, or a tuple of values, is returned.

    The simulator executes `sim` in place of the text: a function of NumPy's arrays, the operands in all lanes of a
    warp, that gives such arrays of the results: `sim=lambda a, b, c: a ^ b ^ c`. It knows nothing of memory. The
    text of the kernel lacks it, and `to_cute` warns. Without a function the simulator executes the instructions of the
    text one after the other, also under a predicate (`@p`), on special registers and on those that the text declares:
    `{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, $1, $2, p; }`. So a text needs a function only if it has
    branches, or an instruction that tilefold does not read from PTX. Texts with `tcgen05.mma` may wait for an
    mbarrier in a loop; a text without braces declares registers that later texts use.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected PTX as text, got {type(text).__name__}")
    if constraints is None:
        types = [as_dtype(given) for given in write_only_types or ()]
        text, args = _by_access(text, types, list(read_only_args), read_write_args, predicate)
        letters = [*(f"={_letter(dtype.ir)}" for dtype in types), *(_letter(_operand(x).type) for x in args)]
        given_types = types[0] if len(types) == 1 else tuple(types)
        made = inline_ptx(text, ",".join(letters), *args, results=given_types, sim=sim)
        return made if types else None
    known = _APPROXIMATION.fullmatch(text) if sim is None and "".join(constraints.split()) == "=f,f" else None
    if known and len(operands) == 1 and results in (Float32, Float32.ir) and is_scalar(operands[0]):
        return approx(known[1], operands[0], known[2] is not None)
    if sim is not None:
        current().texts[text] = sim
    plain = plain_operation(text) if sim is None and not operands and results == () else None
    if plain is not None:
        emit(plain)
        return ()
    several = isinstance(results, tuple | list)
    types = [as_dtype(result) for result in (cast("Sequence[Any]", results) if several else (results,))]
    values = memory_operation(text, operands, types) if sim is None else None
    if values is None and sim is None:
        values = cluster_operation(text, operands, types)
    if values is None and sim is None and not types:
        values = _stored(text, constraints, operands)
        if values is None and _letters(operands) == [letter.strip() for letter in constraints.split(",") if letter]:
            values = register_text(text, operands)
    if values is None:
        args = [_operand(operand) for operand in operands]
        made = emit(InlineOp(text, constraints, args, [dtype.ir for dtype in types])).results
        values = tuple(wrap(ssa, dtype) for ssa, dtype in zip(made, types, strict=True))
    return values if several else values[0]


def _stored(text: str, constraints: str, operands: Sequence[object]) -> tuple[Operand, ...] | None:
    """Emits the operation of a text that ends with a store, and returns no values; None for another text."""
    parts, letters = stored_text(text, len(operands)), [letter.strip() for letter in constraints.split(",")]
    if parts is None or len(letters) != len(operands):
        return None
    given, letters = [*operands], [*letters]
    address, _ = given.pop(parts.address), letters.pop(parts.address)
    letters = [f"={_letter(dtype.ir)}" for dtype in parts.results] + letters
    made = inline_ptx(parts.text, ",".join(letters), *given, results=parts.results)
    return memory_operation(parts.store, [address, *(convert(x, parts.stored) for x in made)], [])


def dynamic_smem_size() -> Operand:
    """The bytes of shared memory that the launch gives by `smem`: 0 where it does not. Without the memory that the
    kernel allocates, which the compiler places and counts.
    """
    return as_value(current().smem or 0)


def _by_access(
    text: str, types: Sequence[object], reads: list[Operand], changes: Sequence[object], predicate: Operand
) -> tuple[str, list[Operand]]:
    """A text with the numbers of its registers, and its operands."""
    if changes:
        hint = "read the old value by read_only_args, and give the type of the new one in write_only_types"
        raise TilefoldError(
            Code.BUILD_VALUE, "inline_ptx does not support operands that are both read and written", hint
        )
    first = {"w": 0, "r": len(types)}
    text = _NAMED.sub(lambda name: f"${first[name[1]] + int(name[2])}", text)
    if predicate is None or predicate is True:
        return text, reads
    if types or text.strip().rstrip(";").count(";"):
        message = "a predicate can guard only one instruction without results"
        raise TilefoldError(Code.BUILD_VALUE, message, "write the text in a branch: if predicate: ...")
    decides = f"setp.ne.s32 decides, ${len(reads)}, 0;"
    return f"{{ .reg .pred decides; {decides} @decides {text.strip()} }}", [*reads, convert(predicate, Int32)]


def _letter(type: Attribute) -> str:
    """The constraint of a register that holds a type; a type that none holds is refused with the text."""
    return make_constraint(type) or "r"


def _letters(operands: Sequence[object]) -> list[str]:
    """The constraints of operands."""
    return [_letter(_operand(operand).type) for operand in operands]


def _operand(x: Operand) -> Operand:
    if isinstance(x, Address | Pointer | RawPointer):
        return address_of(x).ssa
    value = as_value(x) if not isinstance(x, Value) else x
    return (convert(value, Int64) if value.dtype.name == "Index" else value).ssa


_SCOPES = ("cta", "cluster", "gpu", "sys")
_OPERATIONS: Mapping[str, Callable[[], Operation]] = {
    **{f"fence.{order}.{scope}": partial(ptx.FenceOp, order, scope=scope)
       for order in ("acq_rel", "sc") for scope in _SCOPES},
    **{f"membar.{level}": partial(ptx.FenceOp, "sc", scope=scope)
       for level, scope in (("cta", "cta"), ("gl", "gpu"), ("sys", "sys"))},
    **{f"fence.proxy.async{suffix}": partial(ptx.FenceProxyAsyncOp, space)
       for suffix, space in (("", None), (".global", GMEM.ptx), (".shared::cta", SMEM.ptx))},
    "fence.mbarrier_init.release.cluster": ptx.FenceMbarrierInitOp,
    "cp.async.commit_group": ptx.CpAsyncCommitGroupOp,
    "cp.async.wait_all": ptx.CpAsyncWaitAllOp,
    "cp.async.bulk.commit_group": ptx.BulkCommitGroupOp,
    "griddepcontrol.wait": ptx.GridDependencyWaitOp,
    "griddepcontrol.launch_dependents": ptx.LaunchDependentsOp,
    **{f"barrier.cluster.arrive{order}{aligned}":
       partial(ptx.ClusterArriveOp, relaxed=order == ".relaxed", aligned=bool(aligned))
       for order in ("", ".release", ".relaxed") for aligned in ("", ".aligned")},
    **{f"barrier.cluster.wait{order}{aligned}": partial(ptx.ClusterWaitOp, aligned=bool(aligned))
       for order in ("", ".acquire") for aligned in ("", ".aligned")},
    **{f"tcgen05.fence::{when}": partial(ptx.TensorFenceOp, when)
       for when in ("before_thread_sync", "after_thread_sync")},
    **{f"tcgen05.wait::{kind}.sync.aligned": partial(ptx.TensorWaitOp, kind) for kind in ("ld", "st")},
}  # fmt: skip


def plain_operation(text: str) -> Operation | None:
    """The operation that a text without operands is; None for any other text."""
    make = _OPERATIONS.get("".join(text.split()).removesuffix(";"))
    return None if make is None else make()


def _register(name: str) -> Int:
    return inline_ptx(f"mov.u32 $0, %{name};", "=r", results=Int32)


def _time(name: str) -> Int:
    return inline_ptx(f"mov.u64 $0, %{name};", "=l", results=Int64)


def smid() -> Int:
    """The number of the multiprocessor, 0 on the simulator: an Int32."""
    return _register("smid")


def nsmid() -> Int:
    """The least number that is above those of all multiprocessors, 1 on the simulator: an Int32."""
    return _register("nsmid")


def physical_warp_id() -> Int:
    """The place of the warp in its multiprocessor, that in its block on the simulator: an Int32."""
    return _register("warpid")


def nwarpid() -> Int:
    """The number of places of warps in a multiprocessor: an Int32."""
    return _register("nwarpid")


def clock() -> Int:
    """The lower 32 bits of the multiprocessor's cycles, 0 on the simulator: an Int32."""
    return _register("clock")


def clock64() -> Int:
    """The multiprocessor's cycles, 0 on the simulator: an Int64."""
    return _time("clock64")


def globaltimer() -> Int:
    """The GPU's time in nanoseconds, 0 on the simulator: an Int64."""
    return _time("globaltimer")


def globaltimer_lo() -> Int:
    """The lower 32 bits of `globaltimer`: an Int32."""
    return _register("globaltimer_lo")
