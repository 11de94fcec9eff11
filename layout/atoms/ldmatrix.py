# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warp-wide copies of matrices between shared memory and registers: 8x8 of 16-bit elements.

PTX ISA, instructions ldmatrix, stmatrix and movmatrix. In shared memory a row is 128 contiguous bits, whose
address thread i gives for row i; threads beyond the rows give none. In registers, thread 4r + c holds
elements 2c and 2c + 1 of row r of each matrix (of column r, transposed), one 32-bit register a matrix.
"""

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, Space
from ...base.target import WARP, Targets, targets
from ..algebra.core import Layout
from .contract import ANY_BITS, Act, Agent, AtOnce, Contract, Counted, Major, Named, Operand, Proxy, Role, Whose
from .copy_atom import CopyAtom
from .instructions import LdMatrix, MovMatrix, StMatrix
from .numbers import Copied, Numbers, Transposed

LDMATRIX_TARGETS, STMATRIX_TARGETS, MOVMATRIX_TARGETS = targets(75, 65), targets(90, 78), targets(75, 78)
"""The targets that have each instruction for matrices of 8x8 elements (Target ISA Notes)."""
BYTE_TARGETS = targets(100, 86, "f")
"""The targets that have ldmatrix and stmatrix for matrices of other shapes."""


def of_warp(name: str, instruction: LdMatrix | StMatrix | MovMatrix, src: Layout, dst: Layout, having: Targets,
            numbers: Numbers) -> CopyAtom:  # fmt: skip
    """The atom of a warp that copies matrices at once. Rows in shared memory have 16 bytes, addressed by pointers."""

    def side(role: Role, space: Space, act: Act, layout: Layout) -> Operand:
        named, align = (Named.POINTER, 16) if space is SMEM else (Named.VALUE, 4)
        return Operand(
            role, ANY_BITS, (space,), named, Major.FIXED, act, Whose.OWN, AtOnce(), Proxy.GENERIC, align, layout
        )

    spaces, title = {
        LdMatrix: ((SMEM, RMEM), "Load Instruction: ldmatrix"),
        StMatrix: ((RMEM, SMEM), "Store Instruction: stmatrix"),
        MovMatrix: ((RMEM, RMEM), "Transpose Instruction: movmatrix"),
    }[type(instruction)]
    contract = Contract(
        agent=Agent.WARP,
        counts=Counted.THREADS,
        ids=Layout(WARP, 1),
        operands=(
            side(Role.SOURCE, spaces[0], Act.READ, src),
            side(Role.DESTINATION, spaces[1], Act.WRITE, dst),
        ),
        numbers=numbers,
        targets=having,
        instruction=instruction,
        section=f"PTX ISA, Warp-level Matrix {title}",
    )
    return CopyAtom(name, contract)


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


MOVMATRIX_NAME = "SM75_U32x1_MOVM_T"
"""CuTe's name of `movmatrix`."""


def ldmatrix_name(matrices: int, transposed: bool) -> str:
    """CuTe's name of `ldmatrix`."""
    return f"SM75_{_suffix(matrices, transposed)}_LDSM_{'T' if transposed else 'N'}"


def stmatrix_name(matrices: int, transposed: bool) -> str:
    """CuTe's name of `stmatrix`."""
    return f"SM90_{_suffix(matrices, transposed)}_STSM_{'T' if transposed else 'N'}"


def ldmatrix(matrices: int, transposed: bool = False) -> CopyAtom:
    """A warp loads 1, 2 or 4 matrices, each as it is or transposed; other numbers raise E0304."""
    _check("ldmatrix", matrices)
    registers, instruction = _fragment(matrices, transposed), LdMatrix(matrices, transposed)
    name = ldmatrix_name(matrices, transposed)
    return of_warp(name, instruction, _rows(matrices), registers, LDMATRIX_TARGETS, Copied())


def stmatrix(matrices: int, transposed: bool = False) -> CopyAtom:
    """A warp stores 1, 2 or 4 matrices, each as it is or transposed; other numbers raise E0304."""
    _check("stmatrix", matrices)
    registers, instruction = _fragment(matrices, transposed), StMatrix(matrices, transposed)
    name = stmatrix_name(matrices, transposed)
    return of_warp(name, instruction, registers, _rows(matrices), STMATRIX_TARGETS, Copied())


def movmatrix() -> CopyAtom:
    """A warp transposes one matrix in registers.

    As in CuTe, the layouts name registers, not elements: source and destination are the same registers, and
    the matrix in them changes from normal to transposed.
    """
    registers = Layout((32, 32), (32, 1))
    return of_warp(MOVMATRIX_NAME, MovMatrix(), registers, registers, MOVMATRIX_TARGETS, Transposed())
