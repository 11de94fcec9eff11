# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PTX text of the instructions of atoms: for inline assembly, counters and the reference."""

from typing import assert_never

from ...base.element_types import BY_PTX
from .contract import Major
from .instructions import (
    AutoMove,
    BulkCopy,
    CopyInstruction,
    CpAsync,
    Dp4a,
    Fma,
    LdMatrix,
    MmaSync,
    Move,
    MovMatrix,
    StMatrix,
    TensorCopy,
    WgMma,
)
from .mma_atom import MmaAtom

_WIDTHS = {8: "b8", 16: "b16", 32: "b32", 64: "b64", 128: "v4.b32"}


def mnemonic(instruction: CopyInstruction) -> str:
    """The instruction with its modifiers, `ldmatrix.sync.aligned.m8n8.x4.shared.b16`; of a move load and store.

    A tensor copy has N dimensions: those of its map.
    """
    match instruction:
        case Move(bits):
            return f"ld.{_WIDTHS[bits]} / st.{_WIDTHS[bits]}"
        case AutoMove():
            return "ld / st"
        case CpAsync(cache):
            return f"cp.async.{cache}.shared.global"
        case LdMatrix(num, trans, shape, element):
            return f"ldmatrix.sync.aligned.{shape}.x{num}{'.trans' if trans else ''}.shared.{element}"
        case StMatrix(num, trans, shape, element):
            return f"stmatrix.sync.aligned.{shape}.x{num}{'.trans' if trans else ''}.shared.{element}"
        case MovMatrix():
            return "movmatrix.sync.aligned.m8n8.trans.b16"
        case TensorCopy(to_shared=True, multicast=multicast):
            modifiers = ".multicast::cluster" if multicast else ""
            return f"cp.async.bulk.tensor.Nd.shared::cluster.global.mbarrier::complete_tx::bytes{modifiers}"
        case TensorCopy(reduction=""):
            return "cp.async.bulk.tensor.Nd.global.shared::cta.bulk_group"
        case TensorCopy(reduction=reduction):
            return f"cp.reduce.async.bulk.tensor.Nd.global.shared::cta.{reduction}.bulk_group"
        case BulkCopy(to_shared=True):
            return "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        case BulkCopy(to_shared=False):
            return "cp.async.bulk.global.shared::cta.bulk_group"
        case BulkCopy():
            return "cp.async.bulk"
        case _:
            assert_never(instruction)


def mma_mnemonic(atom: MmaAtom) -> str:
    """The instruction of a multiplication with its modifiers."""
    (m, n, k), types, (a, b), operation = atom.shape, atom.types, atom.majors, atom.products.operation.value
    match atom.instruction:
        case MmaSync():
            order = f"{'col' if a is Major.MN else 'row'}.{'row' if b is Major.MN else 'col'}"
            return f"mma.sync.aligned.m{m}n{n}k{k}.{order}{operation}.{'.'.join(types)}"
        case WgMma():
            return f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}{operation}.{'.'.join(types[:3])}"
        case Dp4a():
            return dp4a_mnemonic(dp4a_form(atom))
        case Fma():
            element = BY_PTX[types[0]]
            return f"mad.lo.s{max(16, element.bits)}" if element.kind == "int" else f"fma.rn.{types[0]}"
        case _:
            raise AssertionError(f"{atom.name} is a copy")


def dp4a_form(atom: MmaAtom) -> str:
    """The types of the words of A and B, `s32.u32`, which say whether their bytes are signed."""
    return ".".join([f"{name[0]}32" for name in atom.types[1:3]])


def dp4a_mnemonic(form: str) -> str:
    """The instruction on words of these types."""
    return f"dp4a.{form}"


def copy_text(instruction: CopyInstruction, sign: str = "%") -> str:
    """A copy with its operands by number, after `sign`: `movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;`.

    A move has no operands here, since each of its two instructions has its own, nor has a tensor copy or a bulk copy,
    whose map or size decides them.
    """
    name = mnemonic(instruction)
    match instruction:
        case Move() | AutoMove() | TensorCopy() | BulkCopy():
            return name
        case CpAsync(bytes=bytes, zfill=zfill):
            return f"{name} [{sign}0], [{sign}1], {bytes}{f', {sign}2' if zfill else ''};"
        case LdMatrix(registers=count):
            return f"{name} {_registers(count, 0, sign)}, [{sign}{count}];"
        case StMatrix(num=count):
            return f"{name} [{sign}0], {_registers(count, 1, sign)};"
        case MovMatrix():
            return f"{name} {sign}0, {sign}1;"
        case _:
            assert_never(instruction)


def write_wgmma(
    atom: MmaAtom, d: int, first: int, a: int, scale_d: str, signs: tuple[int, int] = (1, 1), sign: str = "$"
) -> str:
    """A wgmma.mma_async with its operands by number: `d` registers from 0 on, and from number `first` on `a` registers,
    or a descriptor where `a` is 0, and the descriptor of B. `scale_d` is a predicate, `signs` are those of A and B.
    """
    immediates = [*signs] if atom.types[0] != "s32" else []
    if atom.bits[1] == 16:  # of the registers of A there is no other order
        immediates += [int(major is Major.MN) for major in atom.majors[1 if a else 0 :]]
    matrix_a = _registers(a, first, sign) if a else f"{sign}{first}"
    operands = [_registers(d, 0, sign), matrix_a, f"{sign}{first + max(a, 1)}", scale_d, *map(str, immediates)]
    return f"{mma_mnemonic(atom)} {', '.join(operands)};"


def _registers(count: int, first: int, sign: str) -> str:
    return "{" + ", ".join(f"{sign}{first + index}" for index in range(count)) + "}"
