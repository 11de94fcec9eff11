# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of one thread by plain loads, stores and moves (PTX ISA, instructions ld, st and mov)."""

from ...base.errors import Code, LayoutError
from ...base.spaces import ADDRESSED
from ...base.target import TargetFamily
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .instructions import AutoMove, Move

_WIDTHS = (8, 16, 32, 64, 128)
_TARGETS = TargetFamily(20, 20)


def universal_copy(bits: int) -> CopyAtom:
    """One thread moves `bits` bits between any two memory spaces (CuTe's UniversalCopy).

    Raises `LayoutError` (E0304) unless `bits` is 8, 16, 32, 64 or 128.
    """
    if bits not in _WIDTHS:
        raise LayoutError(
            Code.ATOM_OPERAND, f"a load cannot move {bits} bits", f"widths are {', '.join(map(str, _WIDTHS))} bits"
        )
    layout = Layout((1, bits), (0, 1))
    return CopyAtom(
        name=f"UniversalCopy<uint{bits}_t>",
        thr_id=Layout(1, 0),
        src_bits=layout,
        dst_bits=layout,
        ref_bits=layout,
        src_spaces=ADDRESSED,
        dst_spaces=ADDRESSED,
        targets=_TARGETS,
        instruction=Move(bits),
        source="PTX ISA, Data Movement and Conversion Instructions: ld, st, mov",
    )


def auto_vectorizing_copy(max_bits: int | None = 128) -> CopyAtom:
    """One thread moves values one by one, or as many at once as layouts and alignment allow, up to
    `max_bits` bits.

    CuTe's AutoVectorizingCopy; its bit layout is a placeholder for "one value". `None` moves one value
    (DefaultCopy).
    """
    layout = Layout((1, 1), (0, 0))
    names = {None: "DefaultCopy", 128: "AutoVectorizingCopy"}
    return CopyAtom(
        name=names.get(max_bits, f"AutoVectorizingCopyWithAssumedAlignment<{max_bits}>"),
        thr_id=Layout(1, 0),
        src_bits=layout,
        dst_bits=layout,
        ref_bits=layout,
        src_spaces=ADDRESSED,
        dst_spaces=ADDRESSED,
        targets=_TARGETS,
        instruction=AutoMove(max_bits),
        source="PTX ISA, Data Movement and Conversion Instructions: ld, st, mov",
    )
