# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled MMAs, a thread's part of their operands, and multiplying (CuTe's mma_atom.hpp and gemm.hpp)."""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any

from xdsl.ir import Operation, SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import TMEM
from ...dialects.cute import LayoutAttr, TilerAttr
from ...dialects.tile import (
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
from ...dialects.tile.fragments import CELL_BYTES
from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.display import Displayed
from ...layout.algebra.integers import AnyTuple, Unknown
from ...layout.atoms.contract import Named, Role
from ...layout.atoms.instructions import Umma
from ...layout.atoms.mma_table import mma_atom
from ...layout.text.printing import plain_style, thr_mma_lines, tiled_mma_lines
from ...layout.tiling import tiled_mma as algebra
from ..scalars.dtypes import Boolean, Int32, dtype_of
from ..scalars.operators import Operand
from ..scalars.values import convert, index_of
from ..tracing.attributes import Stateful
from ..tracing.state import checked, current
from .allocation import make_rmem_tensor
from .coordinates import as_layout, check_static, tuples
from .descriptors import Descriptors
from .mma_atoms import RegisterScales, ScaledAtom, WarpgroupAtom
from .modes import relaid
from .nvgpu import MatrixOp
from .pointers import make_tensor
from .tensor_base import AnyTensor, emit_inferred, tensor_type
from .tensors import Tensor, tensor_at
from .umma import SCALES, SIGNS, adds_at_first, with_sign
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
    def thr_layout_vmnk(self) -> Layout:
        """(lane of the instruction, M, N, K) to a thread, or of tcgen05 to a block."""
        return self._mma.type.tiled_mma.thr_layout_vmnk

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

    def partition_shape_A(self, shape_mk: object) -> AnyTuple:
        """The shape of each thread's part of A of this shape: (MMA,MMA_M,MMA_K,...)."""
        return self._partition_shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: object) -> AnyTuple:
        """The shape of each thread's part of B of this shape: (MMA,MMA_N,MMA_K,...)."""
        return self._partition_shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: object) -> AnyTuple:
        """The shape of each thread's part of C of this shape: (MMA,MMA_M,MMA_N,...)."""
        return self._partition_shape("C", shape_mn)

    def _partition_shape(self, operand: str, shape: object) -> AnyTuple:
        extents = tuples(shape)
        check_static(extents, "the parts of a tiled MMA are static, but this is")
        return self._mma.type.tiled_mma.partition_shape(operand, extents)

    def make_fragment_A(self, input: object) -> Tensor:
        """Registers for a thread's part of A, or for a part of a shape: (MMA,MMA_M,MMA_K,...); `Descriptors` of A that
        the instruction finds in shared memory.
        """
        return self._fragment(MakeFragmentAOp, input)

    def make_fragment_B(self, input: object) -> Tensor:
        """The same for a part of B: (MMA,MMA_N,MMA_K,...)."""
        return self._fragment(MakeFragmentBOp, input)

    def make_fragment_C(self, input: object) -> Tensor:
        """The accumulator for a thread's part of C, or for a part of a shape: (MMA,MMA_M,MMA_N,...). It has the
        instruction's element type.
        """
        return self._fragment(MakeFragmentCOp, input)

    def _fragment(self, op: "type[MakeFragmentAOp | MakeFragmentBOp | MakeFragmentCOp]", part: Any) -> Tensor:
        if self._mma.type.atom.atom.operand(op.OPERAND).named is Named.CELL:
            return self._in_cells(op.OPERAND, part if isinstance(part, tuple | list) else part.shape)
        if isinstance(part, tuple | list):
            return make_rmem_tensor(part, self._mma.type.atom.element_types(op.OPERAND)[0])
        if not isinstance(part, AnyTensor):
            message = f"expected a thread's part of a tensor, or its shape, got {type(part).__name__}"
            raise TilefoldError(Code.BUILD_VALUE, message, "take it by partition_A, partition_B or partition_C")
        made = Tensor(emit_inferred(op, [self._mma.value(), part.ssa, None], {}))
        if self._mma.type.atom.atom.operand(op.OPERAND).named is Named.DESCRIPTOR:
            return Descriptors(made.ssa, part.element_type if isinstance(part, Tensor) else None)
        held = part.element_type if isinstance(part, Tensor) else None
        return Tensor(made.ssa, held) if held is not None and held.ir == tensor_type(made).element_type else made

    def _in_cells(self, operand: str, shape: AnyTuple) -> Tensor:
        """A part of a shape of an operand in tensor memory, at address 0: `make_tensor` gives its layout another."""
        extents, type = tuples(shape), self._mma.type
        check_static(extents, "tensors in tensor memory are static, but this is")
        dtype = dtype_of(type.atom.element_types(operand)[0])
        with checked():
            layout = type.tiled_mma.make_fragment(operand, make_layout(extents))
        return make_tensor(tensor_at(convert(0, Int32), dtype, TMEM.name, CELL_BYTES).iterator, layout)


class TiledMma(_Parts, Displayed, Stateful):
    """A tiled MMA: an atom repeated over threads, and over values by the permutation.

    For an atom of a warpgroup, `set` decides whether multiplications add C. Control flow carries this like a variable.
    `op` is the instruction that it was made of, also by an atom of it.
    """

    __slots__ = ("accumulate", "op", "registers", "scales_a", "scales_b", "type")

    def __init__(self, type: TiledMmaType, op: Any) -> None:
        self.registers = RegisterScales()
        self.type = type
        self.op = op
        self.accumulate: Any = adds_at_first(type.atom)
        self.scales_a: Any = 0
        self.scales_b: Any = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TiledMma) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def set(self, field: Enum, value: Operand) -> None:
        """Sets a field for the following multiplications: `set(Field.ACCUMULATE, k > 0)`. The value may be a run-time
        value. At first an instruction of a warpgroup adds C, and one of tcgen05 does not.

        Of tcgen05, `Field.NEGATE_A` and `NEGATE_B` take what Python knows, and `SFA` and `SFB` where the scale factors
        begin in tensor memory; those of an instruction of a warp are in registers, and a loop sets them anew. Raises
        TilefoldError (E5002) for an atom without this field.
        """
        name, atom = field.value, self.type.atom.atom
        if name == Field.ACCUMULATE.value and atom.contract.has(Role.ACCUMULATE):
            self.accumulate = value if isinstance(value, bool) else convert(value, Boolean)
        elif name in SIGNS and isinstance(atom.instruction, Umma) and isinstance(value, bool):
            self.type = with_sign(self.type, SIGNS[name], value)
        elif name in SCALES and atom.has_scales and not isinstance(atom.instruction, Umma):
            self.registers.set(field, value)
        elif name in SCALES and atom.has_scales:
            place = value.iterator if isinstance(value, Tensor) else value
            setattr(self, SCALES[name], place.tensor.ptr().number())
        else:
            raise TilefoldError(
                Code.BUILD_VALUE,
                f"{atom.name} has no field {field} of {value!r}",
                "instructions of warpgroups have Field.ACCUMULATE; those of tcgen05 signs, too, and scale factors",
            )

    def get(self, field: Enum) -> Any:
        """The value of `Field.ACCUMULATE` for the following multiplications: a bool, or a run-time value."""
        if field.value != Field.ACCUMULATE.value:
            raise TilefoldError(Code.BUILD_VALUE, f"a tiled MMA does not give {field}", "it gives Field.ACCUMULATE")
        return self.accumulate

    def with_(self) -> "TiledMma":
        """The tiled MMA with fields of its own, which are at first as they are here."""
        made = copy.copy(self)
        made.registers = self.registers.copy()
        return made

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

    def thrfrg_A(self, target: object) -> Any:
        """A layout, or a tensor, of A (M,K,...): ((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK,...))), all threads' parts."""
        return self._thrfrg("A", target)

    _thrfrg_A = thrfrg_A  # noqa: N815 as programs spell it

    def thrfrg_B(self, target: object) -> Any:
        """A layout, or a tensor, of B (N,K,...): ((ThrV,(ThrN,ThrK)),(FrgV,(RestN,RestK,...)))."""
        return self._thrfrg("B", target)

    def thrfrg_C(self, target: object) -> Any:
        """A layout, or a tensor, of C (M,N,...): ((ThrV,(ThrM,ThrN)),(FrgV,(RestM,RestN,...)))."""
        return self._thrfrg("C", target)

    def _thrfrg(self, operand: str, target: object) -> Any:
        return relaid(target, lambda layout: self.type.tiled_mma.thrfrg(operand, layout))

    def get_slice(self, thr_idx: object) -> "ThrMma":
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
    thr_idx: Operand

    @property
    def _mma(self) -> TiledMma:
        return self.tiled_mma

    @property
    def op(self) -> Any:
        """The instruction that the tiled MMA was made of, also by an atom of it."""
        return self.tiled_mma.op

    def __str__(self) -> str:
        return "\n".join(thr_mma_lines(self.tiled_mma.type.tiled_mma, static_or_unknown(self.thr_idx), plain_style))

    def get_slice(self, thr_idx: object) -> "ThrMma":
        """The part of another thread."""
        return self.tiled_mma.get_slice(thr_idx)

    def partition_A(self, input_mk: object) -> Any:
        """The thread's part of A (M,K,...): (MMA,MMA_M,MMA_K,...)."""
        return self._part(PartitionAOp, input_mk)

    def partition_B(self, input_nk: object) -> Any:
        """The thread's part of B (N,K,...): (MMA,MMA_N,MMA_K,...)."""
        return self._part(PartitionBOp, input_nk)

    def partition_C(self, input_mn: object) -> Any:
        """The thread's part of C (M,N,...): (MMA,MMA_M,MMA_N,...)."""
        return self._part(PartitionCOp, input_mn)

    def partition_fragment_C(self, tensor: object) -> Tensor:
        """The accumulator for a thread's part of C (M,N)."""
        return self.make_fragment_C(self.partition_C(tensor))

    def _part(self, op: type[object], tensor: object) -> Any:
        return partition(op, self.tiled_mma.value(), tensor, self.thr_idx)


def static_or_unknown(index: object) -> Any:
    """A thread's index as Python knows it, or `Unknown`."""
    return index if type(index) is int else Unknown()


def partition(op: type[Any], tiling: SSAValue, tensor: Any, thread: Operand) -> Any:
    """A thread's part of a tensor under a tiled copy or a tiled MMA. Raises `LayoutError` if it does not divide."""
    return as_tensor(tensor).view_of(op, [tiling, tensor.ssa, [index_of(thread).ssa]], {})


def make_mma_atom(op: Any) -> Any:
    """An MMA atom: of an instruction (of `nvgpu.warp` and `nvgpu.warpgroup`, `nvgpu.MmaOp`), or by CuTe's name."""
    made = atom_of(op)
    if made.atom.has_scales and not isinstance(made.atom.instruction, Umma):
        return ScaledAtom(made, op)
    return WarpgroupAtom(made, op) if made.atom.contract.has(Role.ACCUMULATE) else made


def atom_of(op: "MatrixOp | MmaAtomAttr | ScaledAtom | WarpgroupAtom | str") -> MmaAtomAttr:
    """The atom of an instruction or a name. Raises TilefoldError (E5002, E0302, E0304)."""
    if isinstance(op, WarpgroupAtom | ScaledAtom):
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


def make_tiled_mma(op_or_atom: Any, atom_layout_mnk: object = None, permutation_mnk: object = None) -> TiledMma:
    """A tiled MMA: `make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1), (32, 32, 16))`.

    `atom_layout_mnk` maps the place of an atom in (M,N,K) to the threads that execute it: a layout, or a shape, which
    stands for its compact layout. `permutation_mnk` says for each of M, N and K which tile all threads multiply at
    once: a size, a layout, or None for the extent that the atoms cover. Raises `LayoutError` if they do not fit
    together.
    """
    properties: dict[str, Any] = {"atom": atom_of(op_or_atom)}
    if atom_layout_mnk is not None:
        properties["atoms"] = LayoutAttr(as_layout(atom_layout_mnk))
    if permutation_mnk is not None:
        properties["permute"] = TilerAttr(tuples(permutation_mnk))
    with checked():
        (type,) = TiledMmaOp.infer((), properties)
    assert isinstance(type, TiledMmaType)
    return TiledMma(type, op_or_atom.op if isinstance(op_or_atom, WarpgroupAtom | ScaledAtom) else op_or_atom)
