# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies by one thread between global and shared memory (CuTe's copy_traits_sm90_tma.hpp, SM90_BULK_COPY_G2S,
SM90_BULK_COPY_S2G and SM90_BULK_COPY_AUTO).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM, SMEM
from ...base.target import TargetFamily
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .instructions import BulkCopy

BULK_UNIT = 16
"""Addresses and sizes of bulk copies are multiples of it, in bytes."""
_MOST_BITS = 1 << 21
"""More bits than the shared memory of any block has."""

BULK_COPIES: Mapping[str, bool | None] = MappingProxyType(
    {"SM90_BULK_COPY_G2S": True, "SM90_BULK_COPY_S2G": False, "SM90_BULK_COPY_AUTO": None}
)
"""The bulk copies by CuTe's names, and whether they load; the operands decide that for AUTO."""
_SIZED = re.compile(rf"({'|'.join(BULK_COPIES)})<([0-9]{{1,9}})>")


def bulk_copy(name: str, bits: int | None = None) -> CopyAtom:
    """The atom that copies `bits` bits at a time; without them as many as the layouts of the operands allow, and its
    own layout stands for one value. Raises `LayoutError` (E0304) for bits that no bulk copy has.
    """
    if bits is not None and (bits % (8 * BULK_UNIT) or not 0 < bits < _MOST_BITS):
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"a bulk copy cannot move {bits} bits",
            f"sizes are multiples of {8 * BULK_UNIT} bits, {BULK_UNIT} bytes, and fit in shared memory",
        )
    to_shared = BULK_COPIES[name]
    layout = Layout((1, 1), (0, 0)) if bits is None else Layout((1, bits), (0, 1))
    gmem, smem = (GMEM,), (SMEM,)
    return CopyAtom(
        name=name if bits is None else f"{name}<{bits}>",
        thr_id=Layout(1, 0),
        src_bits=layout,
        dst_bits=layout,
        ref_bits=layout,
        src_spaces={True: gmem, False: smem, None: gmem + smem}[to_shared],
        dst_spaces={True: smem, False: gmem, None: smem + gmem}[to_shared],
        targets=TargetFamily(90, 80),
        instruction=BulkCopy(to_shared, bits),
        source="PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk",
    )


@lru_cache(maxsize=256)
def bulk_copy_of_size(name: str) -> CopyAtom | None:
    """The atom of a name with a size in bits, `SM90_BULK_COPY_G2S<4096>`; None for another name. Raises `LayoutError`
    as `bulk_copy` does.
    """
    match = _SIZED.fullmatch(name)
    return None if match is None else bulk_copy(match[1], int(match[2]))
