# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warp-wide copies of matrices between shared memory and registers: 8x8 of 16-bit elements.

PTX ISA, instructions ldmatrix, stmatrix and movmatrix. In shared memory a row is 128 contiguous bits, whose
address thread i gives for row i; threads beyond the rows give none. In registers, thread 4r + c holds
elements 2c and 2c + 1 of row r of each matrix (of column r, transposed), one 32-bit register a matrix.
"""

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM
from ...base.target import WARP, TargetFamily
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .instructions import LdMatrix, MovMatrix, StMatrix

_LANES = Layout(WARP, 1)


def _rows(matrices: int) -> Layout:
    """(thread, bit) to bit for the rows that threads address; a thread without a row repeats another's."""
    rows = 8 * matrices
    return Layout((32, 128), (128, 1)) if rows == 32 else Layout(((rows, 32 // rows), 128), ((128, 0), 1))


def _fragment(matrices: int, transposed: bool) -> Layout:
    """(thread, bit) to bit for the registers."""
    if transposed:
        more = ((matrices,), (1024,)) if matrices > 1 else ((), ())
        return Layout(((4, 8), (16, 2, *more[0])), ((256, 16), (1, 128, *more[1])))
    if matrices == 1:
        return Layout((32, 32), (32, 1))
    return Layout((32, (32, matrices)), (32, (1, 1024)))


def _check(name: str, matrices: int) -> None:
    if matrices not in (1, 2, 4):
        raise LayoutError(Code.ATOM_OPERAND, f"{name} moves 1, 2 or 4 matrices, not {matrices}")


def _suffix(matrices: int, transposed: bool) -> str:
    return f"U16x{2 * matrices}" if transposed else f"U32x{matrices}"


def ldmatrix(matrices: int, transposed: bool = False) -> CopyAtom:
    """A warp loads 1, 2 or 4 matrices, each as it is or transposed; other numbers raise E0304."""
    _check("ldmatrix", matrices)
    registers = _fragment(matrices, transposed)
    return CopyAtom(
        name=f"SM75_{_suffix(matrices, transposed)}_LDSM_{'T' if transposed else 'N'}",
        thr_id=_LANES,
        src_bits=_rows(matrices),
        dst_bits=registers,
        ref_bits=registers,
        src_spaces=(SMEM,),
        dst_spaces=(RMEM,),
        targets=TargetFamily(75, 65),
        instruction=LdMatrix(matrices, transposed),
        source="PTX ISA, Warp-level Matrix Load Instruction: ldmatrix",
    )


def stmatrix(matrices: int, transposed: bool = False) -> CopyAtom:
    """A warp stores 1, 2 or 4 matrices, each as it is or transposed; other numbers raise E0304."""
    _check("stmatrix", matrices)
    registers = _fragment(matrices, transposed)
    return CopyAtom(
        name=f"SM90_{_suffix(matrices, transposed)}_STSM_{'T' if transposed else 'N'}",
        thr_id=_LANES,
        src_bits=registers,
        dst_bits=_rows(matrices),
        ref_bits=registers,
        src_spaces=(RMEM,),
        dst_spaces=(SMEM,),
        targets=TargetFamily(90, 78),
        instruction=StMatrix(matrices, transposed),
        source="PTX ISA, Warp-level Matrix Store Instruction: stmatrix",
    )


def movmatrix() -> CopyAtom:
    """A warp transposes one matrix in registers.

    As in CuTe, the layouts name registers, not elements: source and destination are the same registers, and
    the matrix in them changes from normal to transposed.
    """
    registers = Layout((32, 32), (32, 1))
    return CopyAtom(
        name="SM75_U32x1_MOVM_T",
        thr_id=_LANES,
        src_bits=registers,
        dst_bits=registers,
        ref_bits=registers,
        src_spaces=(RMEM,),
        dst_spaces=(RMEM,),
        targets=TargetFamily(75, 78),
        instruction=MovMatrix(),
        source="PTX ISA, Warp-level Matrix Transpose Instruction: movmatrix",
    )
