# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous copies without a tensor map: cp.async (CuTe's copy_traits_sm80.hpp), and bulk copies by one thread
(copy_traits_sm90_tma.hpp, SM90_BULK_COPY_G2S, SM90_BULK_COPY_S2G and SM90_BULK_COPY_AUTO).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM, RMEM, SMEM
from ...base.target import targets
from ..algebra.core import Layout
from .contract import (
    ANY_BITS,
    BULK_GROUP,
    BULK_GROUP_READ,
    CP_ASYNC_GROUP,
    Act,
    Agent,
    AsChosen,
    AtOnce,
    Named,
    OnBytes,
    Operand,
    Proxy,
    Role,
    Whose,
)
from .copy_atom import CopyAtom
from .copy_of_thread import Side, copy_of_thread, other_operand
from .instructions import CP_ASYNC_BYTES, Absent, BulkCopy, CpAsync
from .numbers import Copied

BULK_UNIT = 16
"""Addresses and sizes of bulk copies are multiples of it, in bytes."""
BULK_TARGETS = targets(90, 80)
"""The targets that have bulk copies and TMA copies (Target ISA Notes of cp.async.bulk)."""
_MOST_BITS = 1 << 21
"""More bits than the shared memory of any block has."""

BULK_COPIES: Mapping[str, bool | None] = MappingProxyType(
    {"SM90_BULK_COPY_G2S": True, "SM90_BULK_COPY_S2G": False, "SM90_BULK_COPY_AUTO": None}
)
"""The bulk copies by CuTe's names, and whether they load; the operands decide that for AUTO."""
_SIZED = re.compile(rf"({'|'.join(BULK_COPIES)})<([0-9]{{1,9}})>")


def counting_mbarrier(whose: Whose) -> Operand:
    """The mbarrier that counts the bytes of a load."""
    named, act = Named.POINTER, Act.UPDATE
    return other_operand(Role.BARRIER, ANY_BITS, SMEM, named, act, whose, OnBytes(), Proxy.ASYNC, 8)


def bulk_copy(loads: bool | None, bits: int | None = None) -> CopyAtom:
    """The atom that copies `bits` bits at a time; without them as many as the layouts of the operands allow, and its
    own layout stands for one value. It `loads` to shared memory or stores; None leaves that to the operands. Raises
    `LayoutError` (E0304) for bits that no bulk copy has.
    """
    if bits is not None and (bits % (8 * BULK_UNIT) or not 0 < bits < _MOST_BITS):
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"a bulk copy cannot move {bits} bits",
            f"sizes are multiples of {8 * BULK_UNIT} bits, {BULK_UNIT} bytes, and fit in shared memory",
        )
    layout = Layout((1, 1), (0, 0)) if bits is None else Layout((1, bits), (0, 1))
    source, destination = {
        True: (((GMEM,), OnBytes()), ((SMEM,), OnBytes())),
        False: (((SMEM,), BULK_GROUP_READ), ((GMEM,), BULK_GROUP)),
        None: (((GMEM, SMEM), AsChosen()), ((SMEM, GMEM), AsChosen())),
    }[loads]
    contract = copy_of_thread(
        Agent.THREAD,
        layout,
        Side(source[0], Named.POINTER, Whose.OWN, source[1], BULK_UNIT),
        Side(destination[0], Named.POINTER, Whose.OWN, destination[1], BULK_UNIT),
        Proxy.ASYNC,
        (counting_mbarrier(Whose.OWN),) if loads else (),
        Copied(),
        BULK_TARGETS,
        BulkCopy(),
        "PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk",
    )
    name = next(name for name, direction in BULK_COPIES.items() if direction is loads)
    return CopyAtom(name if bits is None else f"{name}<{bits}>", contract)


@lru_cache(maxsize=256)
def bulk_copy_of_size(name: str) -> CopyAtom | None:
    """The atom of a name with a size in bits, as in text, `SM90_BULK_COPY_G2S<4096>`; None for another name. Raises
    `LayoutError` as `bulk_copy` does.
    """
    match = _SIZED.fullmatch(name)
    return None if match is None else bulk_copy(BULK_COPIES[match[1]], int(match[2]))


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
