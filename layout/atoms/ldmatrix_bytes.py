# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warp-wide copies of matrices of bytes, transposed or unpacked from narrower elements, between shared memory and
registers.

PTX ISA, ldmatrix with .m16n16 and .b8, stmatrix with .m16n8 and .b8; CuTe's copy_traits_sm100.hpp. A row of shared
memory has 16 bytes. In registers thread 4r + c holds of each 8 rows elements 2c and 2c + 1 of columns r and r + 8,
which is the order of an accumulator. The instruction that loads puts rows 4c to 4c + 3 into one register; so the atom
orders the rows, in the addresses that threads give, and the bytes within two registers.
"""

from ...base.errors import Code, LayoutError
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .instructions import UNPACKED_BITS, LdMatrix, StMatrix
from .ldmatrix import BYTE_TARGETS, ldmatrix, of_warp
from .numbers import Copied, Unpacked


def _fragment(matrices: int) -> Layout:
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
    return of_warp(name, instruction, rows, _fragment(2 * matrices), BYTE_TARGETS, Copied())


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
    return of_warp(name, instruction, _fragment(matrices), to, BYTE_TARGETS, Copied())
