# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of one thread by plain loads, stores and moves (PTX ISA, instructions ld, st and mov)."""

from ...base.errors import Code, LayoutError
from ...base.spaces import ADDRESSED, GMEM, RMEM
from ...base.target import targets
from ..algebra.core import Layout
from .contract import Agent, AtOnce, Contract, Named, Proxy, Whose
from .copy_atom import MOVE_BITS, CopyAtom
from .copy_of_thread import Side, copy_of_thread
from .instructions import AutoMove, Move, WideMove
from .numbers import Copied


def _contract(layout: Layout, align: int, instruction: Move | AutoMove) -> Contract:
    side = Side(ADDRESSED, Named.POINTER, Whose.OWN, AtOnce(), align)
    return copy_of_thread(
        Agent.THREAD,
        layout,
        side,
        side,
        Proxy.GENERIC,
        (),
        Copied(),
        targets(20, 20),
        instruction,
        "PTX ISA, Data Movement and Conversion Instructions: ld, st, mov",
    )


def universal_name(bits: int) -> str:
    """CuTe's name of `universal_copy`."""
    return f"UniversalCopy<uint{bits}_t>"


def universal_copy(bits: int) -> CopyAtom:
    """One thread moves `bits` bits between any two memory spaces (CuTe's UniversalCopy).

    Raises `LayoutError` (E0304) unless `bits` is 8, 16, 32, 64 or 128.
    """
    if bits not in MOVE_BITS:
        raise LayoutError(
            Code.ATOM_OPERAND, f"a load cannot move {bits} bits", f"widths are {', '.join(map(str, MOVE_BITS))} bits"
        )
    return CopyAtom(universal_name(bits), _contract(Layout((1, bits), (0, 1)), bits // 8, Move()))


WIDE_BITS = 256
"""The bits of the widest loads and stores, of global memory."""


def wide_name(loads: bool) -> str:
    """CuTe's name of `wide_move`."""
    return f"SM100_{'LOAD' if loads else 'STORE'}_256bit_CACHE_NOALLOCATION"


def wide_move(loads: bool) -> CopyAtom:
    """One thread loads 256 bits from global memory, or stores them there."""
    far, near = [Side((space,), Named.POINTER if space is GMEM else Named.VALUE, Whose.OWN, AtOnce(), WIDE_BITS // 8)
                 for space in (GMEM, RMEM)]  # fmt: skip
    source, destination = (far, near) if loads else (near, far)
    contract = copy_of_thread(
        Agent.THREAD,
        Layout((1, WIDE_BITS), (0, 1)),
        source,
        destination,
        Proxy.GENERIC,
        (),
        Copied(),
        targets(100, 88),
        WideMove(),
        "PTX ISA, Data Movement and Conversion Instructions: ld, st",
    )
    return CopyAtom(wide_name(loads), contract)


def auto_vectorizing_name(max_bits: int | None) -> str:
    """CuTe's name of `auto_vectorizing_copy`."""
    names = {None: "DefaultCopy", 128: "AutoVectorizingCopy"}
    return names.get(max_bits, f"AutoVectorizingCopyWithAssumedAlignment<{max_bits}>")


def auto_vectorizing_copy(max_bits: int | None = 128) -> CopyAtom:
    """One thread moves values one by one, or as many at once as layouts and alignment allow, up to
    `max_bits` bits.

    CuTe's AutoVectorizingCopy; its bit layout is a placeholder for "one value". `None` moves one value
    (DefaultCopy).
    """
    return CopyAtom(auto_vectorizing_name(max_bits), _contract(Layout((1, 1), (0, 0)), 1, AutoMove(max_bits)))
