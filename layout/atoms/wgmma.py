# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a warpgroup of 128 threads (PTX ISA, Asynchronous warpgroup-level matrix
instructions).

Warp w of the group holds rows 16w to 16w + 15 of the accumulator, and of A where that is in registers, each
as in mma.sync. Operands in shared memory belong to the whole group: their layouts give every thread all of
the matrix.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, Space
from ...base.target import WARPGROUP, targets
from ..algebra.core import Layout
from .contract import (
    FLAG,
    WGMMA_GROUP,
    Act,
    Agent,
    AtOnce,
    Contract,
    Counted,
    Major,
    Named,
    Operand,
    Proxy,
    Role,
    Whose,
)
from .instructions import WgMma
from .mma_atom import MmaAtom
from .mma_names import named
from .mma_sparse import metadata_operand, warpgroup_metadata
from .numbers import MmaOperation, Products, Summed
from .wgmma_smem import UNIT

_INTEGER_N = (8, 16, 24, *range(32, 257, 16))
_BYTES, _FP8 = ("s8", "u8"), ("e4m3", "e5m2")
INPUTS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {("f32", "f16"): ("f16",), ("f16", "f16"): ("f16",), ("f32", "bf16"): ("bf16",), ("f32", "tf32"): ("tf32",)}
    | {(d, a): _FP8 for d in ("f16", "f32") for a in _FP8}
    | {("s32", a): _BYTES for a in _BYTES}
)
"""The element types of B by those of D and A (the section's table of shapes)."""
WGMMA_TARGETS = targets(90, 80, "a")
"""The targets that have the instructions of warpgroups (Target ISA Notes of wgmma.mma_async and setmaxnreg)."""


def sizes_n(d: str) -> Sequence[int]:
    """The extents N that shapes with the type `d` of D have."""
    return _INTEGER_N if d == "s32" else range(8, 257, 8)


def _smem_operand_layout(rows: int, k: int) -> Layout:
    """(thread, value) to a place in an operand in shared memory."""
    return Layout((128, (rows, k)), (0, (1, rows)))


def _registers(k: int, bits: int) -> Layout:
    """(thread, value) to a place in A, of 64 rows, in registers, where an element takes `bits`."""
    width = 32 // bits
    groups = k // (4 * width)
    threads, steps = (4, 8, 4), (64 * width, 1, 16)
    if width == 1:
        return Layout((threads, (2, groups)), (steps, (8, 256)))
    return Layout((threads, (width, 2, groups)), (steps, (64, 8, 256 * width)))


@lru_cache(maxsize=256)
def wgmma(n: int, types: tuple[str, str, str], a_space: Space, majors: tuple[Major, Major],
          operation: MmaOperation, is_sparse: bool = False) -> MmaAtom:  # fmt: skip
    """The atom of wgmma.mma_async of shape 64 x `n` x (256 bits of A), of the types of D, A and B; A is in registers or
    in shared memory, B in shared memory. A sparse A has half of its elements there, so that K is twice as large.

    `majors` are the contiguous modes of A and B in shared memory; only 16-bit elements may have MN. Raises
    `LayoutError` (E0304) for types, an `n` or majors that PTX does not have.

    Atoms are kept: an atom checks itself, which takes longer than to look it up, and each operation on it asks for it.
    """
    d, a, b = types
    bits, subject = BY_PTX[a].bits, f"wgmma of {', '.join(types)}"
    if b not in INPUTS.get((d, a), ()) or (operation is not MmaOperation.MULTIPLY_ADD and d != "s32"):
        raise LayoutError(Code.ATOM_OPERAND, f"PTX has no {subject}", "see docs/reference/atoms.md")
    if n not in sizes_n(d):
        some = ", of integers 8, 16, 24 or a multiple of 16" if d == "s32" else ""
        hint = f"N is a multiple of 8 from 8 to 256{some}"
        raise LayoutError(Code.ATOM_OPERAND, f"{subject} has no shape with N = {n}", hint)
    in_registers = a_space is RMEM
    if Major.MN in majors and (bits != 16 or (in_registers and majors[0] is Major.MN)):
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"operands of {subject} must be K-major",
            "only 16-bit operands in shared memory may be MN-major",
        )
    k, c = 256 // bits * (1 + is_sparse), Layout(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512)))
    of_a = _registers(k, bits // (1 + is_sparse))

    def held(role: Role, element: str, act: Act, layout: Layout) -> Operand:
        return Operand(
            role, element, (RMEM,), Named.VALUE, Major.FIXED, act, Whose.OWN, WGMMA_GROUP, Proxy.ASYNC, 4, layout
        )

    def shared(role: Role, element: str, major: Major, rows: int) -> Operand:
        layout = _smem_operand_layout(rows, k)
        return Operand(
            role, element, (SMEM,), Named.DESCRIPTOR, major, Act.READ, Whose.OWN, WGMMA_GROUP, Proxy.ASYNC, UNIT,
            layout,
        )  # fmt: skip

    contract = Contract(
        agent=Agent.WARPGROUP,
        counts=Counted.THREADS,
        ids=Layout(WARPGROUP, 1),
        operands=(
            held(Role.D, d, Act.UPDATE, c),
            held(Role.A, a, Act.READ, of_a) if in_registers else shared(Role.A, a, majors[0], 64),
            shared(Role.B, b, majors[1], n),
            *([metadata_operand(warpgroup_metadata(a))] if is_sparse else []),
            Operand(
                Role.ACCUMULATE, FLAG, (RMEM,), Named.VALUE, Major.FIXED, Act.READ, Whose.OWN, AtOnce(),
                Proxy.GENERIC, 1, Layout(1, 0),
            ),
        ),
        numbers=Products((64, n, k), operation, Summed.WARPGROUP_UNIT),
        targets=WGMMA_TARGETS,
        instruction=WgMma(is_sparse),
        section="PTX ISA, Asynchronous warpgroup-level matrix instructions: wgmma.mma_async",
    )  # fmt: skip
    return named(90, contract)
