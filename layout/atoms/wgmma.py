# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a warpgroup of 128 threads (PTX ISA, Asynchronous warpgroup-level matrix
instructions).

Warp w of the group holds rows 16w to 16w + 15 of the accumulator, and of A where that is in registers, each
as in mma.sync. Operands in shared memory belong to the whole group: their layouts give every thread all of
the matrix.
"""

from functools import lru_cache

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, Space
from ...base.target import TargetFamily
from ..algebra.core import Layout
from .instructions import Types, WgMma
from .mma_atom import MmaAtom

_INTEGER_N = (8, 16, 24, *range(32, 257, 16))


def _smem_operand_layout(rows: int, k: int) -> Layout:
    """(thread, value) to a place in an operand in shared memory."""
    return Layout((128, (rows, k)), (0, (1, rows)))


def _registers(k: int, bits: int) -> Layout:
    """(thread, value) to a place in A, of 64 rows, in registers."""
    width = 32 // bits
    groups = k // (4 * width)
    threads, steps = (4, 8, 4), (64 * width, 1, 16)
    if width == 1:
        return Layout((threads, (2, groups)), (steps, (8, 256)))
    return Layout((threads, (width, 2, groups)), (steps, (64, 8, 256 * width)))


@lru_cache(maxsize=256)
def wgmma(
    name: str, n: int, types: Types, a_space: Space, majors: tuple[str, str] = ("K", "K"), saturates: bool = False
) -> MmaAtom:
    """The atom of wgmma.mma_async of shape 64 x `n` x (256 bits of A); A is in registers or, as B, in shared
    memory.

    `majors` says of A and B in shared memory which mode is contiguous, "K" or "MN"; only 16-bit elements may
    be "MN". Raises `LayoutError` (E0304) for an `n` or majors that PTX does not have.

    Atoms are kept: an atom checks itself, which takes longer than to look it up, and each operation on it asks for it.
    """
    d, a, _, _ = types
    bits = BY_PTX[a].bits
    if n not in (_INTEGER_N if d == "s32" else range(8, 257, 8)):
        some = ", of integers 8, 16, 24 or a multiple of 16" if d == "s32" else ""
        hint = f"N is a multiple of 8 from 8 to 256{some}"
        raise LayoutError(Code.ATOM_OPERAND, f"{name}: wgmma has no shape with N = {n}", hint)
    if majors != ("K", "K") and (bits != 16 or (a_space is RMEM and majors[0] != "K")):
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"{name}: operands must be K-major",
            "only 16-bit operands in shared memory may be MN-major",
        )
    k = 256 // bits
    return MmaAtom(
        name=name,
        thr_id=Layout(128, 1),
        instruction=WgMma((64, n, k), types, a_space, majors, saturates),
        layout_a=_smem_operand_layout(64, k) if a_space is SMEM else _registers(k, bits),
        layout_b=_smem_operand_layout(n, k),
        layout_c=Layout(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512))),
        targets=TargetFamily(90, 80, "a"),
        source="PTX ISA, Asynchronous warpgroup-level matrix instructions: wgmma.mma_async",
    )
