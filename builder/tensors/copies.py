# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy atoms, tiled copies, a thread's part of them, and copying (CuTe's copy_atom.hpp and copy.hpp).

Atoms and tiled copies are static, so that they can be made inside and outside kernels.
"""

from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation, SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.cute import LayoutAttr, TilerAttr
from ...dialects.tile import (
    CopyAtomAttr,
    PartitionDOp,
    PartitionSOp,
    PrefetchTensorOp,
    RetileDOp,
    RetileSOp,
    TiledCopyOp,
    TiledCopyType,
)
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.display import Displayed
from ...layout.algebra.inttuple import wrap
from ...layout.algebra.swizzle import Swizzle
from ...layout.atoms.universal import auto_vectorizing_copy
from ...layout.text.printing import plain_style, thr_copy_lines, tiled_copy_lines
from ...layout.tiling import tiled_copy as algebra
from ...layout.tiling.tiled_copy import BY_MMA
from ...layout.tiling.tiled_copy import make_cotiled_copy as _cotiled
from ..tracing.state import checked, current, emit
from . import nvgpu
from .address_space import AddressSpace
from .allocation import emit_copy, of_one_rank
from .coordinates import as_layout, as_tuple, check_static, tuples
from .copy_atoms import CopyAtom, for_operand, make_copy_atom, of_same_width, zero_filling
from .fragments import Vec
from .memory_attributes import AccessOrder, CacheEvictionPriority, PeerStores
from .modes import prepend, relaid
from .ordered_copies import copy_ordered, load_reduced
from .tensor_base import Elements, tensor_type
from .tensors import Tensor, address_of
from .tiled_mma import TiledMma, partition, static_or_unknown
from .tma import TmaAtom, policy_of, tensor_prefetch, tma_copy
from .views import as_tensor


@dataclass(frozen=True, repr=False)
class TiledCopy(Displayed):
    """A tiled copy: an atom, spread over threads and values. `get_slice(thread)` is a thread's part."""

    type: TiledCopyType
    fills: bool = False
    reduces: str = ""
    order: AccessOrder | PeerStores | None = None

    @property
    def threads(self) -> int:
        """The number of threads."""
        return self.type.tiled_copy.threads

    @property
    def size(self) -> int:
        """The number of threads, as of `cute.size`."""
        return self.threads

    @property
    def layout_tv_tiled(self) -> Layout:
        """(thread, value) to a place of the tile."""
        return self.type.tiled_copy.layout_tv

    @property
    def tiler(self) -> Any:
        """The tile that all threads copy at once."""
        return self.type.tiler.data

    @property
    def tiler_mn(self) -> tuple[Any, ...]:
        """The tiler with a layout for each mode."""
        return tuple(map(as_layout, wrap(self.tiler)))

    @property
    def atom(self) -> CopyAtom:
        """The copy instruction."""
        return CopyAtom(self.type.atom, self.fills, self.reduces, self.order)

    @property
    def displayed(self) -> algebra.TiledCopy:
        return self.type.tiled_copy

    def __repr__(self) -> str:
        return f"TiledCopy({self.atom}, {self.layout_tv_tiled}, {plain_style(self.tiler)})"

    def __str__(self) -> str:
        return "\n".join(tiled_copy_lines(self.displayed, plain_style))

    def get_layoutS_TV(self) -> Layout:
        """(thread, value) to a place of the source tile."""
        return self.type.tiled_copy.get_layoutS_TV()

    def get_layoutD_TV(self) -> Layout:
        """(thread, value) to a place of the destination tile."""
        return self.type.tiled_copy.get_layoutD_TV()

    layout_src_tv_tiled = property(get_layoutS_TV)
    layout_dst_tv_tiled = property(get_layoutD_TV)

    def tidfrg_S(self, target: object) -> Any:
        """A source layout or tensor: (Thr,(FrgV,FrgX),(RestM,RestN,...)), all threads' parts at once."""
        return relaid(target, self.type.tiled_copy.tidfrg_S)

    def tidfrg_D(self, target: object) -> Any:
        """A destination layout or tensor: (Thr,(FrgV,FrgX),(RestM,RestN,...))."""
        return relaid(target, self.type.tiled_copy.tidfrg_D)

    def tile2thrfrg(self, tiles: object, ref2trg: object) -> Any:
        """A layout, or a tensor, that `zipped_divide` has divided by the tiler: (Thr,(FrgV,FrgX),(RestM,RestN,...)).

        `ref2trg` maps (thread, value) of an atom, as the result has them, to (thread, value) as the atom's reference
        has them, counted first mode fastest (CuTe's tile2thrfrg).
        """
        layout = _plain(ref2trg)
        return relaid(tiles, lambda x: self.type.tiled_copy.tile2thrfrg(x, layout))

    def retile(self, src: Tensor) -> Tensor:
        """A fragment of another tiling of the same tile, nested like the source, the same for each thread."""
        return self.get_slice(0).retile_S(src)

    def get_slice(self, thr_idx: object) -> "ThrCopy":
        """The part of a thread, whose index may be a value."""
        return ThrCopy(self, thr_idx)

    def value(self) -> SSAValue:
        """The object as an operand of the kernel under construction."""

        def made() -> Operation:
            properties = {"atom": self.type.atom, "tv": self.type.layout_tv, "tiler": self.type.tiler}
            return TiledCopyOp.build(operands=[None], properties=properties, result_types=[self.type])

        return current().shared(self.type, made)


@dataclass(frozen=True)
class ThrCopy:
    """A thread's part of a tiled copy. `str` gives CuTe's text; a run-time index is `?`."""

    tiled_copy: TiledCopy
    thr_idx: Any

    @property
    def tiler_mn(self) -> tuple[Any, ...]:
        """The tiler of the tiled copy with a layout for each mode."""
        return self.tiled_copy.tiler_mn

    def __str__(self) -> str:
        return "\n".join(thr_copy_lines(self.tiled_copy.type.tiled_copy, static_or_unknown(self.thr_idx), plain_style))

    def get_slice(self, thr_idx: object) -> "ThrCopy":
        """The part of another thread."""
        return self.tiled_copy.get_slice(thr_idx)

    def partition_S(self, src: object) -> Any:
        """The thread's part of a source: ((AtomV,RestV),RestM,RestN,...)."""
        return partition(PartitionSOp, self.tiled_copy.value(), src, self.thr_idx)

    def partition_D(self, dst: object) -> Any:
        """The thread's part of a destination: ((AtomV,RestV),RestM,RestN,...)."""
        return partition(PartitionDOp, self.tiled_copy.value(), dst, self.thr_idx)

    def retile_S(self, fragment: Any) -> Any:
        """A fragment of another tiling of the same tile, such as an accumulator, nested like the source; or the
        coordinates of its elements.
        """
        return as_tensor(fragment).view_of(RetileSOp, [self.tiled_copy.value(), fragment.ssa], {})

    def retile_D(self, fragment: Any) -> Any:
        """Like `retile_S`, nested like the destination."""
        return as_tensor(fragment).view_of(RetileDOp, [self.tiled_copy.value(), fragment.ssa], {})

    retile = retile_S


def as_tiled_copy(copy: TiledCopy | ThrCopy) -> TiledCopy:
    """The tiled copy of a thread's part, which stands for it where another copy is made from it."""
    return copy.tiled_copy if isinstance(copy, ThrCopy) else copy


def make_tiled_copy(atom: CopyAtom, layout_tv: object, tiler_mn: object) -> TiledCopy:
    """The tiled copy by a layout that maps (thread, value) to a place of the tile, and the tile (CuTe's
    make_tiled_copy_impl): `make_tiled_copy(atom, tv_layout, (8, 128))`.
    """
    return wrap_tiled(algebra.make_tiled_copy_tv(_record(atom), _plain(layout_tv), _static(tuples(tiler_mn))), atom)


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: object, val_layout: object) -> TiledCopy:
    """The tiled copy by layouts of places of the tile to threads, and of places of a thread's part to its values
    (CuTe C++'s make_tiled_copy): `make_tiled_copy_tv(atom, make_layout((32, 8)), make_layout((4, 1)))`.
    """
    return wrap_tiled(algebra.make_tiled_copy(_record(atom), _plain(thr_layout), _plain(val_layout)), atom)


def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: object, data_layout: object) -> TiledCopy:
    """The tiled copy by a layout that maps (thread, value) to an index that the data layout takes. Indices count
    elements before their addresses are swizzled.
    """
    data = as_layout(data_layout)
    data = data.outer if isinstance(data, ComposedLayout) and isinstance(data.inner, Swizzle) else data
    return wrap_tiled(_cotiled(_record(atom), _plain(atom_layout_tv), _plain(data)), atom)


def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """The tiled copy of the parts of A that the threads of a tiled MMA hold."""
    return _of_mma("A", atom, tiled_mma)


def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """The tiled copy of the parts of B that the threads of a tiled MMA hold."""
    return _of_mma("B", atom, tiled_mma)


def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """The tiled copy of the parts of C that the threads of a tiled MMA hold."""
    return _of_mma("C", atom, tiled_mma)


def make_tiled_copy_C_atom(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy of as many values of C per thread as one execution of the atom moves."""
    return _of_mma("C_atom", atom, mma)


def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy | ThrCopy) -> TiledCopy:
    """The tiled copy of the parts that another tiled copy reads."""
    return wrap_tiled(algebra.make_tiled_copy_S(_record(atom), as_tiled_copy(tiled_copy).type.tiled_copy), atom)


def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy | ThrCopy) -> TiledCopy:
    """The tiled copy of the parts that another tiled copy writes."""
    return wrap_tiled(algebra.make_tiled_copy_D(_record(atom), as_tiled_copy(tiled_copy).type.tiled_copy), atom)


def copy(
    atom: "TiledCopy | ThrCopy | CopyAtom | TmaAtom",
    src: Any,
    dst: Any,
    pred: "Tensor | Vec | None" = None,
    *,
    unroll_factor: int | None = None,
    tma_bar_ptr: Any = None,
    mcast_mask: Any = None,
    cache_policy: Any = None,
    tma_desc_ptr: Any = None,
    mbar_ptr: object = None,
) -> None:
    """Copies a thread's part `src` to `dst` by the atom of a tiled copy, or by an atom, once for each coordinate of the
    modes after the first. With `pred`, a fragment of predicates with the modes of the source, only where they hold; a
    copy of `nvgpu.cpasync.CopyG2SOp` writes zeros elsewhere. All executions are written out, whatever `unroll_factor`.

    An atom of `nvgpu.cpasync.make_tiled_tma_atom` copies tiles: one thread of a warp that calls it issues them,
    or each thread that a condition around the call selects, such as `tidx == 0`.
    A load counts its bytes on the mbarrier `tma_bar_ptr`, a multicast in each block of the cluster that `mcast_mask`
    names by a bit. `cache_policy` is one of the L2 cache, 64 bits. `tma_desc_ptr` is a tensor map in global memory that
    `nvgpu.cpasync.copy_tensormap` has put there, to be taken instead of the atom's. With an atom of `CopyBulkG2SOp` or
    `CopyBulkS2GOp`, each thread begins copies of the runs that are contiguous on both sides; a load counts its bytes on
    the mbarrier `mbar_ptr`, and so do the stores of `CopyDsmemStoreOp`, on one of their block. An atom of
    `nvgpu.tcgen05.LdRed32x32bOp` has two fragments as `dst`: the values, and their reductions, one for each execution.
    """
    tiled = as_tiled_copy(atom) if isinstance(atom, ThrCopy) else atom
    if isinstance(tiled, TmaAtom):
        if pred is not None:
            raise TilefoldError(Code.BUILD_VALUE, "a TMA copy has no predicates", "it skips places beyond its tensor")
        tma_copy(tiled, src, dst, tma_bar_ptr, mcast_mask, cache_policy, tma_desc_ptr)
        return
    if isinstance(tiled, TiledCopy | CopyAtom) and tiled.reduces:  # pyright: ignore[reportUnnecessaryIsInstance]
        record = (tiled.atom if isinstance(tiled, TiledCopy) else tiled).attribute.atom
        load_reduced(record, tiled.reduces, as_tensor(src), dst)
        return
    others: dict[str, SSAValue | None] = {}
    if isinstance(tiled, CopyAtom) and tiled.attribute.atom.is_bulk:
        others["mbarrier"] = None if mbar_ptr is None else address_of(mbar_ptr).ssa
        others["policy"] = policy_of(cache_policy)
        cache_policy = mbar_ptr = None
    counted = None if isinstance(getattr(tiled, "order", None), PeerStores) else mbar_ptr
    if any(given is not None for given in (tma_bar_ptr, mcast_mask, cache_policy, tma_desc_ptr, counted)):
        message = "only a TMA copy has an mbarrier tma_bar_ptr, a mask of blocks and a tensor map, a bulk copy mbar_ptr"
        hint = "see cute.nvgpu.cpasync.make_tiled_tma_atom and CopyBulkG2SOp; both take a cache_policy"
        raise TilefoldError(Code.BUILD_VALUE, message, hint)
    if isinstance(tiled, TiledCopy | CopyAtom) and tiled.order is not None:  # pyright: ignore[reportUnnecessaryIsInstance]
        attribute = tiled.type.atom if isinstance(tiled, TiledCopy) else tiled.attribute
        copy_ordered(attribute, tiled.order, as_tensor(src), as_tensor(dst), pred, mbar_ptr)
        return
    if pred is not None and getattr(tiled, "fills", False):
        tiled = _with_atom(tiled, zero_filling(tiled.attribute if isinstance(tiled, CopyAtom) else tiled.type.atom))
    if isinstance(tiled, TiledCopy | CopyAtom):  # pyright: ignore[reportUnnecessaryIsInstance]
        given, held = tiled.attribute if isinstance(tiled, CopyAtom) else tiled.type.atom, as_tensor(src)
        if isinstance(tiled, TiledCopy) and given.atom.max_bits is not None:
            if tensor_type(held).element_type != given.value_type:  # moves of any width move any type
                tiled = make_copy_atom(nvgpu.CopyUniversalOp(), held.element_type)
        elif (moved := of_same_width(given, held, dst)) is not given:
            tiled = _with_atom(tiled, moved)
    if isinstance(tiled, CopyAtom) and pred is None and _copies_any(tiled, src, dst):
        emit_copy(src, dst, None)
    elif isinstance(tiled, CopyAtom):
        emit_copy(src, dst, pred, atom=tiled.attribute, **others)
    elif isinstance(tiled, TiledCopy):  # pyright: ignore[reportUnnecessaryIsInstance]
        emit_copy(src, dst, pred, tiled_copy=tiled.value())
    else:
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"expected a tiled copy or a copy atom, got {type(tiled).__name__}",
            "cute.autovec_copy(src, dst) copies element by element",
        )


def prefetch(atom: "TmaAtom | CopyAtom", src: Any, *, cache_policy: Any = None) -> None:
    """Prefetches the bytes that a TMA copy or `CopyBulkG2SOp` of `src` would load into the L2 cache."""
    if isinstance(atom, CopyAtom) and atom.attribute.atom.is_bulk:
        emit(PrefetchTensorOp(as_tensor(src).ssa, policy_of(cache_policy)))
    else:
        tensor_prefetch(atom, src, cache_policy)


def autovec_copy(
    src: Tensor,
    dst: Tensor,
    pred: "Tensor | Vec | None" = None,
    *,
    l1c_evict_priority: CacheEvictionPriority = CacheEvictionPriority.EVICT_NORMAL,
) -> None:
    """Copies element by element, as wide as layouts and alignment allow (CuTe's `copy(src, dst)`). The L1 cache keeps
    those in global memory as `l1c_evict_priority` says.
    """
    if l1c_evict_priority is CacheEvictionPriority.EVICT_NORMAL:
        emit_copy(src, dst, pred)
        return
    hints = [l1c_evict_priority.value if tensor.memspace is AddressSpace.gmem else "" for tensor in (src, dst)]
    atom = make_copy_atom(nvgpu.CopyUniversalOp(), src.element_type, None, *hints)
    copy(atom, *(None if part is None else prepend(part) for part in of_one_rank(src, dst, pred)))


basic_copy = autovec_copy


def _with_atom(tiled: TiledCopy | CopyAtom, atom: CopyAtomAttr) -> TiledCopy | CopyAtom:
    """A tiled copy, or an atom, with another atom in its place."""
    if isinstance(tiled, CopyAtom):
        return CopyAtom(atom)
    return TiledCopy(TiledCopyType(atom, tiled.type.layout_tv, tiled.type.tiler))


def _copies_any(atom: CopyAtom, src: object, dst: object) -> bool:
    """Whether an atom copies tensors of one nested mode element by element (CuTe's AutoVectorizingCopy)."""
    held = atom.attribute
    if held.load or held.store or held.atom_name != auto_vectorizing_copy().name:
        return False
    shapes = [as_tuple(part.shape) for part in (src, dst) if isinstance(part, Elements)]
    return len(shapes) == 2 and all(len(shape) == 1 and isinstance(shape[0], tuple) for shape in shapes)


def _record(atom: CopyAtom) -> Any:
    if not isinstance(atom, CopyAtom):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a copy atom, got {atom!r}", "see cute.make_copy_atom")
    return atom.attribute.atom


def _of_mma(role: str, atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    if not isinstance(mma, TiledMma):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(
            Code.BUILD_VALUE, f"expected a tiled MMA, got {type(mma).__name__}", "see cute.make_tiled_mma"
        )
    atom = for_operand(atom, role, mma.type.tiled_mma)
    return wrap_tiled(BY_MMA[role](_record(atom), mma.type.tiled_mma), atom)


def wrap_tiled(made: algebra.TiledCopy, atom: CopyAtom) -> TiledCopy:
    """A tiled copy of the algebra as one for kernels."""
    with checked():
        type = TiledCopyType(atom.attribute, LayoutAttr(made.layout_tv), TilerAttr(made.tiler))
    return TiledCopy(type, atom.fills, atom.reduces, atom.order)


def _plain(layout: object) -> Layout:
    plain = _static(as_layout(layout))
    if not isinstance(plain, Layout):
        raise TilefoldError(Code.COMPOSED_UNSUPPORTED, "the layouts of a tiled copy must be plain, without a swizzle")
    return plain


def _static(x: object) -> Any:
    check_static(x, "a tiled copy must be static, but this is")
    return x
