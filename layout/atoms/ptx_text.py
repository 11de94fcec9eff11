# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PTX text of the instructions of atoms: for inline assembly, counters and the reference."""

from typing import assert_never

from ...base.element_types import BY_PTX
from .contract import Major, Named, Role
from .copy_atom import CopyAtom
from .instructions import (
    MATRIX,
    Absent,
    AutoMove,
    BulkCopy,
    CpAsync,
    Custom,
    Dp4a,
    Fma,
    LdMatrix,
    MmaSync,
    Move,
    MovMatrix,
    StMatrix,
    TmaInstruction,
    TmemCp,
    TmemLoad,
    TmemStore,
    Umma,
    WgMma,
    WideMove,
)
from .mma_atom import MmaAtom

_WIDTHS = {8: "b8", 16: "b16", 32: "b32", 64: "b64", 128: "v4.b32"}
BULK_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
BULK_STORE = "cp.async.bulk.global.shared::cta.bulk_group"
MOVMATRIX = "movmatrix.sync.aligned.m8n8.trans.b16"


def cp_async_mnemonic(cache: str) -> str:
    """cp.async with its cache operator."""
    return f"cp.async.{cache}.shared.global"


def matrix_mnemonic(instruction: LdMatrix | StMatrix) -> str:
    """ldmatrix or stmatrix with its modifiers."""
    opcode = "ldmatrix" if isinstance(instruction, LdMatrix) else "stmatrix"
    trans = ".trans" if instruction.trans else ""
    return f"{opcode}.sync.aligned.{instruction.shape}.x{instruction.num}{trans}.shared.{instruction.element}"


def tensor_mnemonic(
    rank: int | str, loads: bool, multicast: bool, reduction: str, pair: bool = False, by_rows: bool = False
) -> str:
    """A TMA copy of `rank` dimensions with its modifiers."""
    if loads:
        form = "tile::gather4" if by_rows else "tile"
        route = f"shared::cluster.global.{form}.mbarrier::complete_tx::bytes"
        blocks = f"{'.multicast::cluster' if multicast else ''}{'.cta_group::2' if pair else ''}"
        return f"cp.async.bulk.tensor.{rank}d.{route}{blocks}"
    if reduction:
        return f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduction}.tile.bulk_group"
    return f"cp.async.bulk.tensor.{rank}d.global.shared::cta.{'tile::scatter4' if by_rows else 'tile'}.bulk_group"


def copy_mnemonic(atom: CopyAtom) -> str:
    """The instruction of a copy with its modifiers, `ldmatrix.sync.aligned.m8n8.x4.shared.b16`; for a move, load and
    store.

    A TMA copy has N dimensions: those of its map.
    """
    match atom.instruction:
        case Custom(name):
            return name
        case Absent():
            return "none"
        case Move():
            width = _WIDTHS[atom.ref_bits[1].size]
            return f"ld.{width} / st.{width}"
        case AutoMove():
            return "ld / st"
        case WideMove():
            loads = atom.destination.named is Named.VALUE
            return f"{'ld' if loads else 'st'}.global.L1::no_allocate.v8.b32"
        case CpAsync(cache):
            return cp_async_mnemonic(cache)
        case LdMatrix() | StMatrix() as matrix:
            return matrix_mnemonic(matrix)
        case MovMatrix():
            return MOVMATRIX
        case TmaInstruction(pair, by_rows):
            rank = MATRIX if by_rows else "N"
            return tensor_mnemonic(rank, bool(atom.loads), atom.is_multicast, atom.reduction, pair, by_rows)
        case BulkCopy():
            return {True: BULK_LOAD, False: BULK_STORE, None: "cp.async.bulk"}[atom.loads]
        case TmemLoad(shape, num, packs):
            return f"tcgen05.ld.sync.aligned.{shape}.x{num}{'.pack::16b' if packs else ''}.b32"
        case TmemStore(shape, num, unpacks):
            return f"tcgen05.st.sync.aligned.{shape}.x{num}{'.unpack::16b' if unpacks else ''}.b32"
        case TmemCp(shape, multicast):
            return f"tcgen05.cp.cta_group::{atom.threads}.{shape}{'.' if multicast else ''}{multicast}"
        case _:
            assert_never(atom.instruction)


def mma_mnemonic(atom: MmaAtom) -> str:
    """The instruction of a multiplication with its modifiers."""
    (m, n, k), types, (a, b), operation = atom.shape, atom.types, atom.majors, atom.products.operation.value
    sparse = ".sp" if atom.is_sparse else ""
    match atom.instruction:
        case Custom(name):
            return name
        case MmaSync():
            order = f"{'col' if a is Major.MN else 'row'}.{'row' if b is Major.MN else 'col'}"
            kind, scale = _kind(atom), _scale(atom)
            return f"mma{sparse}.sync.aligned.m{m}n{n}k{k}.{order}{kind}{operation}.{'.'.join(types)}{scale}"
        case WgMma():
            return f"wgmma.mma_async{sparse}.sync.aligned.m{m}n{n}k{k}{operation}.{'.'.join(types[:3])}"
        case Dp4a():
            return dp4a_mnemonic(dp4a_form(atom))
        case Umma():
            return umma_mnemonic(atom, atom.instruction)
        case Fma():
            element = BY_PTX[types[0]]
            return f"mad.lo.s{max(16, element.bits)}" if element.kind == "int" else f"fma.rn.{types[0]}"
        case _:
            assert_never(atom.instruction)


def umma_mnemonic(atom: MmaAtom, instruction: Umma) -> str:
    """A multiplication into tensor memory with its modifiers."""
    forms = f"{'.ws' if instruction.is_stationary else ''}{'.sp' if instruction.is_sparse else ''}"
    scaled = f".block_scale.block{atom.products.scaled}" if atom.has_scales else ""
    return f"tcgen05.mma{forms}.cta_group::{atom.threads}.kind::{instruction.kind}{scaled}"


def _kind(atom: MmaAtom) -> str:
    """`.kind::mxf8f6f4.block_scale.scale_vec::1X`: the words of instructions on narrow floats."""
    assert isinstance(atom.instruction, MmaSync)
    if not atom.instruction.kind:
        return ""
    scaled = f".block_scale.scale_vec::{atom.products.factors}X" if atom.has_scales else ""
    return f".kind::{atom.instruction.kind}{scaled}"


def _scale(atom: MmaAtom) -> str:
    """The type of the scales; PTX calls an e4m3 unsigned here."""
    if not atom.has_scales:
        return ""
    element = atom.contract.operand(Role.SCALE_A).element
    return f".{element if element.startswith('u') else f'u{element}'}"


def dp4a_form(atom: MmaAtom) -> str:
    """The types of the words of A and B, `s32.u32`, which say whether their bytes are signed."""
    return ".".join([f"{name[0]}32" for name in atom.types[1:3]])


def dp4a_mnemonic(form: str) -> str:
    """The instruction on words of these types."""
    return f"dp4a.{form}"


def copy_text(atom: CopyAtom, sign: str = "%") -> str:
    """A copy with its operands by number, after `sign`: `movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;`.

    A move has no operands here, since each of its two instructions has its own, nor has a TMA copy or a bulk copy,
    whose map or size decides them.
    """
    match atom.instruction:
        case CpAsync(cache):
            size, count = atom.ref_bits[1].size // 8, f", {sign}2" if atom.zfill else ""
            return f"{cp_async_mnemonic(cache)} [{sign}0], [{sign}1], {size}{count};"
        case LdMatrix() | StMatrix() as matrix:
            return matrix_text(matrix, sign)
        case MovMatrix():
            return movmatrix_text(sign)
        case _:
            return copy_mnemonic(atom)


def matrix_text(instruction: LdMatrix | StMatrix, sign: str) -> str:
    """ldmatrix or stmatrix with its operands by number."""
    name = matrix_mnemonic(instruction)
    if isinstance(instruction, LdMatrix):
        return f"{name} {_registers(instruction.registers, 0, sign)}, [{sign}{instruction.registers}];"
    return f"{name} [{sign}0], {_registers(instruction.num, 1, sign)};"


def movmatrix_text(sign: str) -> str:
    """movmatrix with its operands by number."""
    return f"{MOVMATRIX} {sign}0, {sign}1;"


def write_wgmma(
    atom: MmaAtom,
    d: int,
    first: int,
    a: int,
    scale_d: str,
    signs: tuple[int, int] = (1, 1),
    sign: str = "$",
    metadata: str = "",
) -> str:
    """A wgmma.mma_async with its operands by number: `d` registers from 0 on, and from number `first` on `a` registers,
    or a descriptor where `a` is 0, and the descriptor of B. `scale_d` is a predicate, `signs` are those of A and B,
    `metadata` the operand and the selector of a sparse A.
    """
    immediates = [*signs] if atom.types[0] != "s32" else []
    if atom.bits[2] == 16:  # of the registers of A there is no other order
        immediates += [int(major is Major.MN) for major in atom.majors[1 if a else 0 :]]
    matrix_a = _registers(a, first, sign) if a else f"{sign}{first}"
    operands = [_registers(d, 0, sign), matrix_a, f"{sign}{first + max(a, 1)}", metadata, scale_d]
    return f"{mma_mnemonic(atom)} {', '.join([text for text in (*operands, *map(str, immediates)) if text])};"


def _registers(count: int, first: int, sign: str) -> str:
    return "{" + ", ".join(f"{sign}{first + index}" for index in range(count)) + "}"
