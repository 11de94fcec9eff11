# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled MMAs, a thread's part of their operands, and multiplying (CuTe's mma_atom.hpp and gemm.hpp)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.ir import Operation, SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.cute import LayoutAttr, TilerAttr
from ...dialects.tile import (
    GemmOp,
    MakeFragmentAOp,
    MakeFragmentBOp,
    MakeFragmentCOp,
    MmaAtomAttr,
    PartitionAOp,
    PartitionBOp,
    PartitionCOp,
    TiledMmaOp,
    TiledMmaType,
)
from ...layout.algebra.core import Layout
from ...layout.algebra.display import Displayed
from ...layout.algebra.integers import Unknown
from ...layout.atoms.contract import Role
from ...layout.atoms.mma_table import mma_atom
from ...layout.text.printing import plain_style, thr_mma_lines, tiled_mma_lines
from ...layout.tiling import tiled_mma as algebra
from ..scalars.dtypes import Boolean
from ..scalars.values import convert, index_of
from ..tracing.state import checked, current, emit
from ..tracing.stateful import Stateful
from .coordinates import as_layout, check_static, tuples
from .memory import make_rmem_tensor
from .modes import relaid
from .nvgpu import MatrixOp, MmaUniversalOp
from .tensor_base import AnyTensor, emit_inferred, tensor_type
from .tensors import Tensor
from .views import as_tensor
from .warpgroup import Field


class _Parts(ABC):
    """The layouts of a tiled MMA, the shapes of threads' parts of its operands, and registers for them."""

    __slots__ = ()

    @property
    @abstractmethod
    def _mma(self) -> "TiledMma": ...

    @property
    def threads(self) -> int:
        """The number of threads that execute it."""
        return self._mma.type.tiled_mma.threads

    @property
    def size(self) -> int:
        """The number of threads, as of `cute.size`."""
        return self.threads

    @property
    def tile_shape(self) -> tuple[int, int, int]:
        """The tile that all threads multiply at once: (M,N,K)."""
        return self._mma.type.tiled_mma.tile_shape

    def get_tile_size(self, mode_idx: int) -> int:
        """The extent of `tile_shape` in a mode: 0 is M, 1 N and 2 K."""
        return self.tile_shape[mode_idx]

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The tile that the instruction multiplies: (M,N,K)."""
        return self._mma.type.atom.atom.shape

    @property
    def permutation_mnk(self) -> tuple[Any, Any, Any]:
        """The tile of M, N and K that all threads multiply at once: sizes, layouts, or None; see `make_tiled_mma`."""
        return self._mma.type.tiled_mma.permutation

    @property
    def thr_id(self) -> Layout:
        """The lanes of the threads that execute the instruction together."""
        return self._mma.type.atom.atom.thr_id

    @property
    def tv_layout_A(self) -> Layout:
        """(thread, value) to a place of the instruction's A, (M,K)."""
        return self._mma.type.atom.atom.layout_a

    @property
    def tv_layout_B(self) -> Layout:
        """(thread, value) to a place of the instruction's B, (N,K)."""
        return self._mma.type.atom.atom.layout_b

    @property
    def tv_layout_C(self) -> Layout:
        """(thread, value) to a place of the instruction's C, (M,N)."""
        return self._mma.type.atom.atom.layout_c

    def get_layoutA_TV(self) -> Layout:
        """(thread, value) to a place of the tile of A, (M,K)."""
        return self._mma.type.tiled_mma.layout_tv("A")

    def get_layoutB_TV(self) -> Layout:
        """(thread, value) to a place of the tile of B, (N,K)."""
        return self._mma.type.tiled_mma.layout_tv("B")

    def get_layoutC_TV(self) -> Layout:
        """(thread, value) to a place of the tile of C, (M,N)."""
        return self._mma.type.tiled_mma.layout_tv("C")

    @property
    def tv_layout_A_tiled(self) -> Layout:
        """The layout that `get_layoutA_TV()` gives."""
        return self.get_layoutA_TV()

    @property
    def tv_layout_B_tiled(self) -> Layout:
        """The layout that `get_layoutB_TV()` gives."""
        return self.get_layoutB_TV()

    @property
    def tv_layout_C_tiled(self) -> Layout:
        """The layout that `get_layoutC_TV()` gives."""
        return self.get_layoutC_TV()

    def partition_shape_A(self, shape_mk: Any) -> Any:
        """The shape of each thread's part of A of this shape: (MMA,MMA_M,MMA_K,...)."""
        return self._partition_shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: Any) -> Any:
        """The shape of each thread's part of B of this shape: (MMA,MMA_N,MMA_K,...)."""
        return self._partition_shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: Any) -> Any:
        """The shape of each thread's part of C of this shape: (MMA,MMA_M,MMA_N,...)."""
        return self._partition_shape("C", shape_mn)

    def _partition_shape(self, operand: str, shape: Any) -> Any:
        extents = tuples(shape)
        check_static(extents, "the parts of a tiled MMA are static, but this is")
        return self._mma.type.tiled_mma.partition_shape(operand, extents)

    def make_fragment_A(self, input: Any) -> Tensor:
        """Registers for a thread's part of A, or for a part of a shape: (MMA,MMA_M,MMA_K,...)."""
        return self._fragment(MakeFragmentAOp, input)

    def make_fragment_B(self, input: Any) -> Tensor:
        """Registers for a thread's part of B, or for a part of a shape: (MMA,MMA_N,MMA_K,...)."""
        return self._fragment(MakeFragmentBOp, input)

    def make_fragment_C(self, input: Any) -> Tensor:
        """The accumulator for a thread's part of C, or for a part of a shape: (MMA,MMA_M,MMA_N,...). It has the
        instruction's element type.
        """
        return self._fragment(MakeFragmentCOp, input)

    def _fragment(self, op: "type[MakeFragmentAOp | MakeFragmentBOp | MakeFragmentCOp]", part: Any) -> Tensor:
        if isinstance(part, tuple | list):
            return make_rmem_tensor(part, self._mma.type.atom.element_types(op.OPERAND)[0])
        if not isinstance(part, AnyTensor):
            message = f"expected a thread's part of a tensor, or its shape, got {type(part).__name__}"
            raise TilefoldError(Code.BUILD_VALUE, message, "take it by partition_A, partition_B or partition_C")
        made = Tensor(emit_inferred(op, [self._mma.value(), part.ssa], {}))
        held = part.element_type if isinstance(part, Tensor) else None
        return Tensor(made.ssa, held) if held is not None and held.ir == tensor_type(made).element_type else made


class TiledMma(_Parts, Displayed, Stateful):
    """A tiled MMA: an atom repeated over threads, and over values by the permutation.

    For an atom of a warpgroup, `set` decides whether multiplications add C. Control flow carries this like a variable.
    `op` is the instruction or atom that it was made of.
    """

    __slots__ = ("accumulate", "op", "type")

    def __init__(self, type: TiledMmaType, op: Any) -> None:
        self.type = type
        self.op = op
        self.accumulate: Any = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TiledMma) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def set(self, field: Field, value: Any) -> None:
        """Sets a field for the following multiplications: `set(Field.ACCUMULATE, k > 0)`, True at first. The value may
        be a run-time value. Raises TilefoldError (E5002) for an atom without this field.
        """
        if field is not Field.ACCUMULATE or not self.type.atom.atom.contract.has(Role.ACCUMULATE):
            raise TilefoldError(
                Code.BUILD_VALUE,
                f"{self.type.atom.atom.name} has no field {field}",
                "instructions of warpgroups have Field.ACCUMULATE",
            )
        self.accumulate = value if isinstance(value, bool) else convert(value, Boolean)

    @property
    def _mma(self) -> "TiledMma":
        return self

    @property
    def displayed(self) -> algebra.TiledMma:
        return self.type.tiled_mma

    def __repr__(self) -> str:
        atoms, permutation = self.type.atom_layout.data, plain_style(self.type.permutation.data)
        return f"TiledMma({self.type.atom.atom.name}, {atoms}, {permutation})"

    def __str__(self) -> str:
        return "\n".join(tiled_mma_lines(self.displayed, plain_style))

    def thrfrg_A(self, target: Any) -> Any:
        """A layout, or a tensor, of A (M,K,...): ((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK,...))), all threads' parts."""
        return self._thrfrg("A", target)

    def thrfrg_B(self, target: Any) -> Any:
        """A layout, or a tensor, of B (N,K,...): ((ThrV,(ThrN,ThrK)),(FrgV,(RestN,RestK,...)))."""
        return self._thrfrg("B", target)

    def thrfrg_C(self, target: Any) -> Any:
        """A layout, or a tensor, of C (M,N,...): ((ThrV,(ThrM,ThrN)),(FrgV,(RestM,RestN,...)))."""
        return self._thrfrg("C", target)

    def _thrfrg(self, operand: str, target: Any) -> Any:
        return relaid(target, lambda layout: self.type.tiled_mma.thrfrg(operand, layout))

    def get_slice(self, thr_idx: Any) -> "ThrMma":
        """The part of a thread, whose index may be a value."""
        return ThrMma(self, thr_idx)

    def value(self) -> SSAValue:
        """The object as an operand of the kernel under construction."""

        def made() -> Operation:
            properties = {"atom": self.type.atom, "atoms": self.type.atom_layout, "permute": self.type.permutation}
            return TiledMmaOp.create(properties=properties, result_types=[self.type])

        return current().shared(self.type, made)


@dataclass(frozen=True)
class ThrMma(_Parts):
    """A thread's part of a tiled MMA. `str` gives CuTe's text; values that depend on a run-time index are `?`."""

    tiled_mma: TiledMma
    thr_idx: Any

    @property
    def _mma(self) -> TiledMma:
        return self.tiled_mma

    @property
    def op(self) -> Any:
        """The instruction or atom that the tiled MMA was made of."""
        return self.tiled_mma.op

    def __str__(self) -> str:
        return "\n".join(thr_mma_lines(self.tiled_mma.type.tiled_mma, static_or_unknown(self.thr_idx), plain_style))

    def get_slice(self, thr_idx: Any) -> "ThrMma":
        """The part of another thread."""
        return self.tiled_mma.get_slice(thr_idx)

    def partition_A(self, input_mk: Any) -> Any:
        """The thread's part of A (M,K,...): (MMA,MMA_M,MMA_K,...)."""
        return self._part(PartitionAOp, input_mk)

    def partition_B(self, input_nk: Any) -> Any:
        """The thread's part of B (N,K,...): (MMA,MMA_N,MMA_K,...)."""
        return self._part(PartitionBOp, input_nk)

    def partition_C(self, input_mn: Any) -> Any:
        """The thread's part of C (M,N,...): (MMA,MMA_M,MMA_N,...)."""
        return self._part(PartitionCOp, input_mn)

    def partition_fragment_C(self, tensor: Any) -> Tensor:
        """The accumulator for a thread's part of C (M,N)."""
        return self.make_fragment_C(self.partition_C(tensor))

    def _part(self, op: type[Any], tensor: Any) -> Any:
        return partition(op, self.tiled_mma.value(), tensor, self.thr_idx)


def static_or_unknown(index: Any) -> Any:
    """A thread's index as Python knows it, or `Unknown`."""
    return index if type(index) is int else Unknown()


def partition(op: type[Any], tiling: SSAValue, tensor: Any, thread: Any) -> Any:
    """A thread's part of a tensor under a tiled copy or a tiled MMA. Raises `LayoutError` if it does not divide."""
    return as_tensor(tensor).view_of(op, [tiling, tensor.ssa, [index_of(thread).ssa]], {})


class WarpgroupAtom(Stateful):
    """An MMA atom of a warpgroup, whose field says whether multiplications add C, as that of a tiled MMA does."""

    __slots__ = ("accumulate", "atom", "op")

    def __init__(self, atom: MmaAtomAttr, op: Any) -> None:
        self.atom, self.op = atom, op
        self.accumulate: Any = True

    def set(self, field: Field, value: Any) -> None:
        """Sets a field for the following multiplications; see `TiledMma.set`."""
        self.accumulate = value if isinstance(value, bool) else convert(value, Boolean)


def make_mma_atom(op: Any) -> Any:
    """An MMA atom: of an instruction (of `nvgpu.warp` and `nvgpu.warpgroup`, `nvgpu.MmaOp`), or by CuTe's name."""
    made = _atom_of(op)
    return WarpgroupAtom(made, op) if made.atom.contract.has(Role.ACCUMULATE) else made


def _atom_of(op: "MatrixOp | MmaAtomAttr | WarpgroupAtom | str") -> MmaAtomAttr:
    if isinstance(op, WarpgroupAtom):
        return op.atom
    if isinstance(op, MmaAtomAttr):
        return op
    if not isinstance(op, MatrixOp | str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"expected a matrix instruction, got {op!r}",
            "such as cute.nvgpu.warp.MmaF16BF16Op(...), or its name",
        )
    with checked():
        return MmaAtomAttr(mma_atom(op) if isinstance(op, str) else op.atom())


def make_tiled_mma(op_or_atom: Any, atom_layout_mnk: Any = None, permutation_mnk: Any = None) -> TiledMma:
    """A tiled MMA: `make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1), (32, 32, 16))`.

    `atom_layout_mnk` maps the place of an atom in (M,N,K) to the threads that execute it: a layout, or a shape, which
    stands for its compact layout. `permutation_mnk` says for each of M, N and K which tile all threads multiply at
    once: a size, a layout, or None for the extent that the atoms cover. Raises `LayoutError` if they do not fit
    together.
    """
    properties: dict[str, Any] = {"atom": _atom_of(op_or_atom)}
    if atom_layout_mnk is not None:
        properties["atoms"] = LayoutAttr(as_layout(atom_layout_mnk))
    if permutation_mnk is not None:
        properties["permute"] = TilerAttr(tuples(permutation_mnk))
    with checked():
        (type,) = TiledMmaOp.infer((), properties)
    assert isinstance(type, TiledMmaType)
    return TiledMma(type, op_or_atom)


def _with_scales(operand: Any) -> tuple[Any, ...]:
    """A fragment, or a fragment and its scales."""
    return tuple(cast("Sequence[Any]", operand)) if isinstance(operand, list | tuple) else (operand,)


def gemm(atom: Any, d: Any, a: Any, b: Any, c: Any = None) -> None:
    """`gemm(mma, D, A, B, C)`: D = A * B + C on each thread's fragments; `gemm(mma, A, B, C)` with D = C.

    A and B are fragments or in shared memory, C and D fragments. The ranks select the product: (V)x(V)->(V),
    (M)x(N)->(M,N), (M,K)x(N,K)->(M,N), (V,M)x(V,N)->(V,M,N) or (V,M,K)x(V,N,K)->(V,M,N), where V are the values of one
    execution of the atom. `atom` is a tiled MMA, an atom, or None for UniversalFMA of the types of the elements.

    An atom of a warpgroup starts the multiplication, which goes on until `nvgpu.warpgroup.wait_group`. `atom.set`
    decides whether it adds C. For an atom with scales A and B are pairs of a fragment and its scales, `[A, SFA]`.
    """
    if c is None:
        d, a, b, c = b, d, a, b
    (a, *scale_a), (b, *scale_b) = _with_scales(a), _with_scales(b)
    scales: list[SSAValue] = [tensor.ssa for tensor in (*scale_a, *scale_b)]
    if len(scales) not in (0, 2):
        raise TilefoldError(Code.BUILD_VALUE, "A and B both have scales, or neither", "pass [A, SFA] and [B, SFB]")
    for tensor in (d, a, b, c):
        tensor_type(tensor)
    tiled = atom.tiled_mma if isinstance(atom, ThrMma) else atom
    into = None if d.ssa is c.ssa else d.ssa
    plain = tiled if isinstance(tiled, MmaAtomAttr) else tiled.atom if isinstance(tiled, WarpgroupAtom) else None
    types = [tensor.element_type for tensor in (d, a, b, c)]
    if tiled is None and any(type.unsigned for type in types):
        plain = _atom_of(MmaUniversalOp(*types))
    value = tiled.value() if isinstance(tiled, TiledMma) else None
    flag = tiled.accumulate if isinstance(tiled, TiledMma | WarpgroupAtom) else True
    accumulate = None if flag is True else convert(flag, Boolean).ssa
    emit(GemmOp(a.ssa, b.ssa, c.ssa, into, value, plain, accumulate, scales))
