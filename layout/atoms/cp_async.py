# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous copies from global to shared memory (PTX ISA, instruction cp.async, non-bulk)."""

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM, RMEM, SMEM
from ...base.target import targets
from ..algebra.core import Layout
from .contract import CP_ASYNC_GROUP, Act, Agent, AtOnce, Named, Proxy, Role, Whose
from .copy_atom import CopyAtom
from .copy_of_thread import Side, copy_of_thread, other_operand
from .instructions import CP_ASYNC_BYTES, Absent, CpAsync
from .numbers import Copied

CP_ASYNC_TARGETS = targets(80, 70)
"""The targets that have cp.async and its groups (Target ISA Notes)."""
_CACHE = {"ca": "CACHEALWAYS", "cg": "CACHEGLOBAL"}


def cp_async_name(cache: str, size: int, zfill: bool) -> str:
    """CuTe's name: `SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint128_t>`."""
    return f"SM80_CP_ASYNC_{_CACHE[cache]}{'_ZFILL' if zfill else ''}<uint{8 * size}_t>"


def cp_async(cache: str, size: int, zfill: bool = False) -> CopyAtom:
    """One thread copies `size` bytes; `cache` "ca" keeps them in all cache levels, "cg" in L2 only.

    With `zfill`, the thread may read nothing and fill with zeros instead. Of sizes that PTX does not have the atom has
    layouts and no instruction. Raises `LayoutError` (E0302) for sizes other than 4, 8 and 16 bytes.
    """
    if size not in (4, 8, 16):
        raise LayoutError(Code.ATOM_UNKNOWN, f"there is no cp.async of {8 * size} bits", "it copies 4, 8 or 16 bytes")
    count = other_operand(Role.COUNT, "u32", RMEM, Named.VALUE, Act.READ, Whose.OWN, AtOnce(), Proxy.GENERIC, 4)
    contract = copy_of_thread(
        Agent.THREAD,
        Layout((1, 8 * size), (0, 1)),
        Side((GMEM,), Named.POINTER, Whose.OWN, CP_ASYNC_GROUP, size),
        Side((SMEM,), Named.POINTER, Whose.OWN, CP_ASYNC_GROUP, size),
        Proxy.GENERIC,
        (count,) if zfill else (),
        Copied(),
        CP_ASYNC_TARGETS,
        CpAsync(cache) if size in CP_ASYNC_BYTES[cache] else Absent(),
        "PTX ISA, Data Movement and Conversion Instructions: cp.async",
    )
    return CopyAtom(cp_async_name(cache, size, zfill), contract)
