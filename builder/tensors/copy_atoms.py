# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy atoms: a copy instruction for elements of a type (CuTe's copy_atom.hpp)."""

from dataclasses import dataclass, field, replace

from ...base.errors import Code, TilefoldError
from ...dialects.tile import CopyAtomAttr
from ...layout.algebra.core import Layout
from ...layout.algebra.display import Displayed
from ...layout.atoms.bulk_copy import cp_async
from ...layout.atoms.copy_atom import CopyAtom as _CopyAtom
from ...layout.atoms.copy_names import copy_atom
from ...layout.atoms.instructions import CpAsync, LdMatrix, Move, MovMatrix, StMatrix
from ...layout.atoms.ldmatrix import ldmatrix
from ...layout.tiling.tiled_mma import TiledMma
from ..scalars.dtypes import DType, as_dtype, dtype_of
from ..tracing.state import checked
from . import nvgpu
from .memory_attributes import AccessOrder, PeerStores, access_order, cache_hints
from .tensor_base import AnyTensor, tensor_type


@dataclass(frozen=True, repr=False)
class CopyAtom(Displayed):
    """A copy instruction, and the elements that it moves. A cp.async may fill: if a predicate is false, it writes
    zeros.
    """

    attribute: CopyAtomAttr
    fills: bool = False
    reduces: str = ""
    """How a load from tensor memory also reduces its values, "max" for example; empty for others."""
    order: AccessOrder | PeerStores | None = None
    """The memory order of its load or store; None for a weak one."""
    op: "nvgpu.CopyOp | None" = field(default=None, compare=False)
    """The instruction that `make_copy_atom` was given; None for an atom by its name, or of a tiled copy."""

    @property
    def _op(self) -> "nvgpu.CopyOp | None":  # pyright: ignore[reportUnusedFunction] - programs print it
        return self.op

    @property
    def name(self) -> str:
        """CuTe's name of it."""
        return self.attribute.atom_name

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return dtype_of(self.attribute.value_type)

    value_type = dtype

    @property
    def thr_id(self) -> Layout:
        """The lanes of the threads that execute the instruction together."""
        return self.displayed.thr_id

    @property
    def layout_src_tv(self) -> Layout:
        """(thread, value) to a value of the data, as the instruction reads it."""
        return self.displayed.src

    @property
    def layout_dst_tv(self) -> Layout:
        """(thread, value) to a value of the data, as the instruction writes it."""
        return self.displayed.dst

    def __repr__(self) -> str:
        return f"CopyAtom({self.name}, {self.dtype})"

    @property
    def displayed(self) -> _CopyAtom:
        return self.attribute.atom


def make_copy_atom(
    op: "nvgpu.CopyOp | str",
    copy_internal_type: object,
    num_bits_per_copy: int | None = None,
    load: str = "",
    store: str = "",
    **attributes: object,
) -> CopyAtom:
    """A copy atom for elements of a type, from an instruction of `nvgpu` or a name of CuTe's.

    `num_bits_per_copy` is the width of one execution, where the instruction leaves it open. `load` and `store` are
    cache hints in PTX's words: `load="L1::no_allocate"`. For `CopyG2ROp` and `CopyR2GOp` they are named by attributes:
    `l1c_evict_priority=CacheEvictionPriority.NO_ALLOCATE`, `load_cache_mode`, `l2_prefetch_size`, `invariant` (nothing
    writes the data while the kernel runs), `memory_order`, `memory_scope`. A copy with an order accesses each word of
    32 bits, or wider element, by itself. Raises TilefoldError for an unknown atom or attribute.
    """
    if not isinstance(op, nvgpu.CopyOp | str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(
            Code.BUILD_VALUE, f"expected a copy instruction, got {op!r}", "such as cute.nvgpu.CopyUniversalOp()"
        )
    order = PeerStores() if isinstance(op, nvgpu.CopyDsmemStoreOp) else None
    if attributes:
        load, store = cache_hints(op, attributes)
        order = access_order(op, attributes)
    with checked():
        value_type = as_dtype(copy_internal_type).in_memory
        record = copy_atom(op) if isinstance(op, str) else op.atom(num_bits_per_copy)
        made = CopyAtomAttr.of(record, value_type, load, store)
    fills = isinstance(op, nvgpu.CopyG2SOp) and op.zfill is None
    return CopyAtom(made, fills, getattr(op, "reduction", ""), order, None if isinstance(op, str) else op)


def for_operand(atom: CopyAtom, role: str, mma: TiledMma) -> CopyAtom:
    """The atom that loads an operand of a tiled MMA: an ldmatrix of more matrices than a thread's values of A or B fill
    is one of as many as they fill. CuTe C++ refuses it; in Python programs ask for 4 matrices where B has 2, and
    multiply only what the first two hold.
    """
    if role not in ("A", "B") or not isinstance(atom, CopyAtom):  # pyright: ignore[reportUnnecessaryIsInstance]
        return atom
    record, instruction, values = atom.attribute.atom, atom.attribute.atom.instruction, mma.layout_tv(role)[1].size
    if not isinstance(instruction, LdMatrix) or values >= record.values:
        return atom
    plain = ldmatrix(instruction.num, instruction.trans)
    matrices, rest = divmod(values * instruction.num, record.values)
    if rest or plain.name != record.name or matrices not in (1, 2):
        return atom
    data = atom.attribute.data
    return replace(atom, attribute=CopyAtomAttr.of(ldmatrix(matrices, instruction.trans), data.value_type))


_MOVES = (Move, CpAsync, LdMatrix, StMatrix, MovMatrix)
"""The instructions to which the type of the elements is only a width."""


def zero_filling(atom: CopyAtomAttr) -> CopyAtomAttr:
    """The atom of cp.async that writes zeros where predicates do not hold."""
    record = atom.data.record
    assert isinstance(record.instruction, CpAsync)
    with checked():
        filling = cp_async(record.instruction.cache, record.ref_bits[1].size // 8, zfill=True)
        return CopyAtomAttr.of(filling, atom.value_type, atom.load, atom.store)


def of_same_width(atom: CopyAtomAttr, src: object, dst: object) -> CopyAtomAttr:
    """The atom for the elements of two tensors: where both have another type than the atom, and one as wide, an atom of
    that type, since loads, stores and moves of matrices move bits (copy_unpack in CuTe's copy_traits.hpp recasts the
    registers). Other atoms stay as they are.
    """
    types = {tensor_type(part).element_type for part in (src, dst) if isinstance(part, AnyTensor)}
    if len(types) != 1 or atom.value_type in types or not isinstance(atom.atom.instruction, _MOVES):
        return atom
    (type,) = types
    if dtype_of(type).bits != dtype_of(atom.value_type).bits:
        return atom
    with checked():
        return CopyAtomAttr.of(atom.data.record, type, atom.load, atom.store)
