# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous copies from global to shared memory (PTX ISA, instruction cp.async, non-bulk)."""

from ...base.errors import Code, LayoutError
from ...base.target import TargetFamily
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .instructions import CpAsync

_CACHE = {"ca": "CACHEALWAYS", "cg": "CACHEGLOBAL"}


def cp_async(cache: str, size: int, zfill: bool = False) -> CopyAtom:
    """One thread copies `size` bytes; `cache` "ca" keeps them in all cache levels, "cg" in L2 only.

    With `zfill`, the thread may read nothing and fill with zeros instead. Raises `LayoutError` (E0304)
    unless `size` is 4, 8 or 16; PTX defines "cg" for 16 only.
    """
    _check(cache, size)
    if cache == "cg" and size != 16:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"cp.async.cg copies 16 bytes, not {size}",
            "cp.async.ca copies 4, 8 or 16 bytes",
        )
    return _atom(cache, size, zfill)


def cp_async_layouts(cache: str, size: int, zfill: bool = False) -> CopyAtom:
    """As `cp_async`, but for operand sizes that PTX has not, an atom without an instruction, for its
    layouts alone.
    """
    _check(cache, size)
    return _atom(cache, size, zfill)


def _check(cache: str, size: int) -> None:
    if cache not in _CACHE or size not in (4, 8, 16):
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"there is no cp.async.{cache} of {size} bytes",
            "cp.async.ca copies 4, 8 or 16 bytes, cp.async.cg 16 bytes",
        )


def _atom(cache: str, size: int, zfill: bool) -> CopyAtom:
    layout = Layout((1, 8 * size), (0, 1))
    exists = cache == "ca" or size == 16
    return CopyAtom(
        name=f"SM80_CP_ASYNC_{_CACHE[cache]}{'_ZFILL' if zfill else ''}<uint{8 * size}_t>",
        thr_id=Layout(1, 0),
        src_bits=layout,
        dst_bits=layout,
        ref_bits=layout,
        src_spaces=("gmem",),
        dst_spaces=("smem",),
        targets=TargetFamily(80, 70),
        instruction=CpAsync(cache, size, zfill) if exists else None,
        source="PTX ISA, Data Movement and Conversion Instructions: cp.async",
    )
