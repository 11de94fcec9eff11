# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warp-wide copies of matrices between shared memory and registers: 8x8 of 16-bit elements, or of bytes.

PTX ISA, instructions ldmatrix, stmatrix and movmatrix. In shared memory a row is 128 contiguous bits, whose
address thread i gives for row i; threads beyond the rows give none. In registers, thread 4r + c holds
elements 2c and 2c + 1 of row r of each matrix (of column r, transposed), one 32-bit register a matrix.

Matrices of bytes are transposed, or unpacked from narrower elements: PTX ISA, ldmatrix with .m16n16 and .b8, stmatrix
with .m16n8 and .b8; CuTe's copy_traits_sm100.hpp. There a row of shared memory has 16 bytes, and in registers thread
4r + c holds of each 8 rows elements 2c and 2c + 1 of columns r and r + 8, which is the order of an accumulator. The
instruction that loads puts rows 4c to 4c + 3 into one register; so the atom orders the rows, in the addresses that
threads give, and the bytes within two registers.
"""

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, Space
from ...base.target import WARP, Targets, targets
from ..algebra.core import Layout
from .contract import ANY_BITS, Act, Agent, AtOnce, Contract, Counted, Major, Named, Operand, Proxy, Role, Whose
from .copy_atom import CopyAtom
from .instructions import UNPACKED_BITS, LdMatrix, MovMatrix, StMatrix
from .numbers import Copied, Numbers, Transposed, Unpacked

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


def _bytes_fragment(matrices: int) -> Layout:
    """(thread, bit) to bit for the registers: `matrices` of 8 rows."""
    more = ((matrices,), (1024,)) if matrices > 1 else ((), ())
    return Layout(((4, 8), (8, 2, 2, *more[0])), ((256, 8), (1, 128, 64, *more[1])))


def ldmatrix_bytes_name(matrices: int) -> str:
    """CuTe's name of `ldmatrix_bytes`."""
    return f"SM100_U8x{8 * matrices}_LDSM_T"


def ldmatrix_columns_name(matrices: int) -> str:
    """The name of `ldmatrix_columns`, which CuTe C++ lacks."""
    return f"{ldmatrix_bytes_name(matrices)}_COLUMNS"


def ldmatrix_unpacked_name(bits: int, matrices: int) -> str:
    """CuTe's name of `ldmatrix_unpacked`."""
    return f"SM100_SU{bits}_DU8x16_x{matrices}_LDSM_N"


def stmatrix_bytes_name(matrices: int) -> str:
    """CuTe's name of `stmatrix_bytes`."""
    return f"SM100_U8x{4 * matrices}_STSM_T"


def ldmatrix_bytes(matrices: int) -> CopyAtom:
    """A warp loads 1 or 2 matrices of 16x16 bytes, transposed; other numbers raise E0304."""
    if matrices not in (1, 2):
        raise LayoutError(Code.ATOM_OPERAND, f"ldmatrix moves 1 or 2 matrices of 16x16 bytes, not {matrices}")
    rows = Layout(((2, 2, 4, 2), 128), ((128, 1024, 256, 2048 if matrices == 2 else 0), 1))
    name, instruction = ldmatrix_bytes_name(matrices), LdMatrix(matrices, True, "m16n16", "b8", exchanged=True)
    return of_warp(name, instruction, rows, _bytes_fragment(2 * matrices), BYTE_TARGETS, Copied())


def ldmatrix_columns(matrices: int) -> CopyAtom:
    """As `ldmatrix_bytes`, with the registers in the instruction's order: thread 4r + c holds four neighbours of
    columns r and r + 8, from 4c on. So do fragments that `tcgen05.st` of 16x256b stores as elements of 16 bits.
    """
    if matrices not in (1, 2):
        raise LayoutError(Code.ATOM_OPERAND, f"ldmatrix moves 1 or 2 matrices of 16x16 bytes, not {matrices}")
    rows = Layout(((16, 2), 128), ((128, 2048 if matrices == 2 else 0), 1))
    more = ((matrices,), (2048,)) if matrices > 1 else ((), ())
    registers = Layout(((4, 8), (8, 4, 2, *more[0])), ((512, 8), (1, 128, 64, *more[1])))
    instruction = LdMatrix(matrices, True, "m16n16", "b8")
    return of_warp(ldmatrix_columns_name(matrices), instruction, rows, registers, BYTE_TARGETS, Copied())


def ldmatrix_unpacked(bits: int, matrices: int) -> CopyAtom:
    """A warp loads 1, 2 or 4 matrices of 8x16 elements of 4 or 6 bits, each a byte in registers.

    A row has its elements in the first 8 or 12 of 16 bytes. Other numbers raise E0304.
    """
    element = next((name for name, width in UNPACKED_BITS.items() if width == bits), None)
    if element is None:
        raise LayoutError(Code.ATOM_OPERAND, f"ldmatrix unpacks elements of 4 or 6 bits, not of {bits}")
    plain = ldmatrix(matrices)
    name, instruction = ldmatrix_unpacked_name(bits, matrices), LdMatrix(matrices, False, "m8n16", element)
    return of_warp(name, instruction, plain.src_bits, plain.dst_bits, BYTE_TARGETS, Unpacked(bits))


def stmatrix_bytes(matrices: int) -> CopyAtom:
    """A warp stores 1, 2 or 4 matrices of 16x8 bytes, transposed; other numbers raise E0304."""
    if matrices not in (1, 2, 4):
        raise LayoutError(Code.ATOM_OPERAND, f"stmatrix moves 1, 2 or 4 matrices of 16x8 bytes, not {matrices}")
    rows = 8 * matrices
    to = Layout((32, 128), (128, 1)) if rows == 32 else Layout(((rows, 32 // rows), 128), ((128, 0), 1))
    name, instruction = stmatrix_bytes_name(matrices), StMatrix(matrices, True, "m16n8", "b8")
    return of_warp(name, instruction, _bytes_fragment(matrices), to, BYTE_TARGETS, Copied())
