# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of tcgen05 (PTX ISA, 5th Generation Tensor Core Instructions)."""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import i1, i16, i32, i64
from xdsl.ir import SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import SHARED
from ...dialects.ptx.tcgen05.base import TENSOR
from ...layout.atoms.tcgen05_shapes import ACCESS_SHAPES, COPY_SHAPES, UNPACKED
from .accesses import address
from .moves import Rule
from .registers import Registers
from .syntax import Address, Instruction, Integer, Operand, Register, Vector

_GROUPS = {"cta_group::1": 1, "cta_group::2": 2}


def _tcgen05(r: Registers, i: Instruction) -> None:
    words = i.modifiers
    group = next((number for word, number in _GROUPS.items() if word in words), 1)
    match words[0]:
        case "alloc":
            r.add(ptx.TensorAllocOp(group, address(r, i.operands[0], 4, SHARED), r.read(i.operands[1], i32)))
        case "dealloc":
            r.add(ptx.TensorDeallocOp(group, _cell(r, i.operands[0]), r.read(i.operands[1], i32)))
        case "relinquish_alloc_permit":
            r.add(ptx.TensorRelinquishOp(group))
        case "ld":
            _load(r, i)
        case "st":
            _store(r, i)
        case "wait::ld" | "wait::st":
            r.add(ptx.TensorWaitOp(words[0].removeprefix("wait::")))
        case "fence::before_thread_sync" | "fence::after_thread_sync":
            r.add(ptx.TensorFenceOp(words[0].removeprefix("fence::")))
        case "commit":
            mask = r.read(i.operands[1], i16) if "multicast::cluster" in words else None
            r.add(ptx.TensorCommitOp(group, address(r, i.operands[0], 8, SHARED), mask))
        case "cp":
            shape = ".".join([word for word in words[2:] if word != "b8x16" and word not in UNPACKED])
            unpack = next((word for word in words if word in UNPACKED), None)
            if shape not in COPY_SHAPES:
                raise r.refuse("the form is not supported")
            place, matrix = i.operands
            r.add(ptx.TmaCopySharedOp(group, shape, _cell(r, place), r.read(matrix, i64), unpack))
        case "shift":
            r.add(ptx.TensorShiftOp(group, _cell(r, i.operands[0])))
        case "mma":
            _mma(r, i, group)
        case _:
            raise r.refuse("the form is not supported")


def _cell(r: Registers, operand: Operand) -> SSAValue:
    """The address of a cell, in brackets or not."""
    return address(r, Address(operand) if isinstance(operand, Register) else operand, 1, TENSOR)


def _form(r: Registers, i: Instruction) -> tuple[str, int]:
    shape = next((word for word in i.modifiers if word in ACCESS_SHAPES), None)
    times = next((word for word in i.modifiers if word[0] == "x" and word[1:].isdigit()), None)
    if shape is None or times is None:
        raise r.refuse("the form is not supported")
    return shape, int(times[1:])


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _distance(operands: tuple[Operand, ...]) -> int | None:
    return next((operand.value for operand in operands if isinstance(operand, Integer)), None)


def _load(r: Registers, i: Instruction) -> None:
    shape, count = _form(r, i)
    targets, *rest = i.operands
    if "red" in i.modifiers:
        words = [word for word in i.modifiers if word in ("min", "max", "abs", "NaN", "f32", "u32", "s32")]
        reduced, place, *rest = rest
        op = r.add(ptx.TensorLoadReducedOp(shape, count, ".".join(words), _cell(r, place), _distance(tuple(rest))))
        r.write(reduced, op.reduced)
    else:
        place, *rest = rest
        packed = "pack::16b" in i.modifiers
        op = r.add(
            ptx.TensorLoadRegistersOp(shape, count, _cell(r, place), packed=packed, offset=_distance(tuple(rest)))
        )
    for index, part in enumerate(_items(targets)):
        r.write(part, r.extract(op.result, index))


def _store(r: Registers, i: Instruction) -> None:
    shape, count = _form(r, i)
    place, *middle, values = i.operands
    value = r.vector([r.read(item, i32) for item in _items(values)])
    packed = "unpack::16b" in i.modifiers
    r.add(
        ptx.TensorStoreRegistersOp(shape, count, value, _cell(r, place), packed=packed, offset=_distance(tuple(middle)))
    )


def _mma(r: Registers, i: Instruction, group: int) -> None:
    words = i.modifiers
    kind = next(word for word in words if word.startswith("kind::")).removeprefix("kind::")
    collector = next((w for w in words if w.startswith("collector::")), "").removeprefix("collector::")
    d, a, b, *rest = i.operands
    first = _cell(r, a) if isinstance(a, Address) else r.read(a, i64)
    metadata = _cell(r, rest.pop(0)) if "sp" in words else None
    operands = [_cell(r, d), first, r.read(b, i64), r.read(rest.pop(0), i32)]
    scales = [_cell(r, rest.pop(0)) for _ in range(2)] if "block_scale" in words else []
    mask = [r.read(word, i32) for word in _items(rest.pop(0))] if isinstance(rest[0], Vector) else []
    flag = rest.pop(0)
    operands.append(r.constant(flag.value, i1) if isinstance(flag, Integer) else r.read(flag, i1))
    if scales:
        scale = next((word for word in words if word in ("block16", "block32") or word.startswith("scale_vec")), "")
        r.add(
            ptx.TensorMmaScaledOp(
                kind, group, operands, (scales[0], scales[1]), scale=scale, metadata=metadata, collector=collector
            )
        )
    elif "ws" in words:
        zero = r.read(rest[0], i64) if rest else None
        r.add(ptx.TensorMmaWsOp(kind, operands, metadata=metadata, zero_columns=zero, collector=collector))
    else:
        r.add(
            ptx.TensorMmaOp(
                kind, group, operands, metadata=metadata, mask=mask, scale_d=_distance(tuple(rest)),
                ashift="ashift" in words, collector=collector,
            )
        )  # fmt: skip


TCGEN05: Mapping[str, Rule] = MappingProxyType({"tcgen05": _tcgen05})
"""The rule by opcode."""
