# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous copies from global to shared memory (PTX ISA, instruction cp.async, non-bulk)."""

from ...base.spaces import GMEM, SMEM
from ...base.target import TargetFamily
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .instructions import CpAsync

_CACHE = {"ca": "CACHEALWAYS", "cg": "CACHEGLOBAL"}


def cp_async(cache: str, size: int, zfill: bool = False) -> CopyAtom:
    """One thread copies `size` bytes; `cache` "ca" keeps them in all cache levels, "cg" in L2 only.

    With `zfill`, the thread may read nothing and fill with zeros instead. PTX defines "cg" for 16 bytes only: of other
    sizes the atom has layouts and no instruction.
    """
    layout = Layout((1, 8 * size), (0, 1))
    exists = cache == "ca" or size == 16
    return CopyAtom(
        name=f"SM80_CP_ASYNC_{_CACHE[cache]}{'_ZFILL' if zfill else ''}<uint{8 * size}_t>",
        thr_id=Layout(1, 0),
        src_bits=layout,
        dst_bits=layout,
        ref_bits=layout,
        src_spaces=(GMEM,),
        dst_spaces=(SMEM,),
        targets=TargetFamily(80, 70),
        instruction=CpAsync(cache, size, zfill) if exists else None,
        source="PTX ISA, Data Movement and Conversion Instructions: cp.async",
    )
