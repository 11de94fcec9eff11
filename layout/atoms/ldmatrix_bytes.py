# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warp-wide copies of matrices of bytes, transposed or unpacked from narrower elements, between shared memory and
registers.

PTX ISA, ldmatrix with .m16n16 and .b8, stmatrix with .m16n8 and .b8; CuTe's copy_traits_sm100.hpp. A row of shared
memory has 16 bytes. In registers thread 4r + c holds of each 8 rows elements 2c and 2c + 1 of columns r and r + 8,
which is the order of an accumulator. The instruction that loads puts rows 4c to 4c + 3 into one register; so the atom
orders the rows, in the addresses that threads give, and the bytes within two registers.
"""

from dataclasses import replace

from ...base.errors import Code, LayoutError
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .ldmatrix import ldmatrix

_LANES = Layout(32, 1)


def _fragment(matrices: int) -> Layout:
    """(thread, bit) to bit for the registers: `matrices` of 8 rows."""
    more = ((matrices,), (1024,)) if matrices > 1 else ((), ())
    return Layout(((4, 8), (8, 2, 2, *more[0])), ((256, 8), (1, 128, 64, *more[1])))


def ldmatrix_bytes(matrices: int) -> CopyAtom:
    """A warp loads 1 or 2 matrices of 16x16 bytes, transposed; other numbers raise E0304."""
    if matrices not in (1, 2):
        raise LayoutError(Code.ATOM_OPERAND, f"ldmatrix moves 1 or 2 matrices of 16x16 bytes, not {matrices}")
    registers = _fragment(2 * matrices)
    count = 2 * matrices
    return CopyAtom(
        name=f"SM100_U8x{8 * matrices}_LDSM_T",
        thr_id=_LANES,
        src_bits=Layout(((2, 2, 4, 2), 128), ((128, 1024, 256, 2048 if matrices == 2 else 0), 1)),
        dst_bits=registers,
        ref_bits=registers,
        src_spaces=("smem",),
        dst_spaces=("rmem",),
        min_sm=100,
        min_ptx=(8, 6),
        ptx=f"ldmatrix.sync.aligned.m16n16.x{matrices}.trans.shared.b8 "
        f"{{{', '.join(f'%{i}' for i in range(count))}}}, [%{count}];",
        source="PTX ISA, Warp-level Matrix Load Instruction: ldmatrix",
        arch_specific=True,
    )


def ldmatrix_unpacked(bits: int, matrices: int) -> CopyAtom:
    """A warp loads 1, 2 or 4 matrices of 8x16 elements of 4 or 6 bits, each a byte in registers.

    A row has its elements in the first 8 or 12 of 16 bytes. Other numbers raise E0304.
    """
    padding = {4: "p64", 6: "p32"}.get(bits)
    if padding is None:
        raise LayoutError(Code.ATOM_OPERAND, f"ldmatrix unpacks elements of 4 or 6 bits, not of {bits}")
    name, instruction = (
        f"SM100_SU{bits}_DU8x16_x{matrices}_LDSM_N",
        f"m8n16.x{matrices}.shared.b8x16.b{bits}x16_{padding}",
    )
    plain = ldmatrix(matrices)
    ptx = plain.ptx.replace(f"m8n8.x{matrices}.shared.b16", instruction)
    return replace(plain, name=name, min_sm=100, min_ptx=(8, 6), ptx=ptx, arch_specific=True, unpacks=bits)


def stmatrix_bytes(matrices: int) -> CopyAtom:
    """A warp stores 1, 2 or 4 matrices of 16x8 bytes, transposed; other numbers raise E0304."""
    if matrices not in (1, 2, 4):
        raise LayoutError(Code.ATOM_OPERAND, f"stmatrix moves 1, 2 or 4 matrices of 16x8 bytes, not {matrices}")
    registers, rows = _fragment(matrices), 8 * matrices
    return CopyAtom(
        name=f"SM100_U8x{4 * matrices}_STSM_T",
        thr_id=_LANES,
        src_bits=registers,
        dst_bits=Layout((32, 128), (128, 1)) if rows == 32 else Layout(((rows, 32 // rows), 128), ((128, 0), 1)),
        ref_bits=registers,
        src_spaces=("rmem",),
        dst_spaces=("smem",),
        min_sm=100,
        min_ptx=(8, 6),
        ptx=f"stmatrix.sync.aligned.m16n8.x{matrices}.trans.shared.b8 "
        f"[%0], {{{', '.join(f'%{i}' for i in range(1, matrices + 1))}}};",
        source="PTX ISA, Warp-level Matrix Store Instruction: stmatrix",
        arch_specific=True,
    )
