# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments: registers, or cells of tensor memory, laid out for a part of a tensor (CuTe's make_fragment_A and
make_fragment_like)."""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, result_def

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, TMEM
from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.integers import IntTuple
from ...layout.algebra.product import make_fragment_like
from ...layout.atoms.contract import Named
from ...layout.atoms.mma_atom import MmaAtom
from ..cute import LayoutAttr
from ..definitions import irdl_op_definition
from ..ptx.base import SpaceAttr
from ..ptx.tcgen05.base import TENSOR
from .coord_type import CoordTensorType
from .memory import check_allocation
from .mma_types import TiledMmaType
from .results import InferringOp
from .types import TensorType
from .wgmma_rules import check_shared

FRAGMENT_ALIGN = 16
"""The alignment of a fragment in bytes: that of the widest access."""


class FragmentOp(InferringOp, ABC):
    """The base of operations that allocate a fragment, contents undefined, whose type is inferred; or, of an operand
    that the instruction reads from shared memory, give the part itself.
    """

    @property
    def described(self) -> SSAValue | None:
        """The part in shared memory that is the result; None for a new fragment."""
        return self.operands[1] if self.result.type.space.data is SMEM else None

    @property
    def address(self) -> SSAValue | None:
        """The address in tensor memory at which the result is; None for another."""
        return None

    result = result_def(TensorType)

    def verify_(self) -> None:
        super().verify_()
        if self.result.type.space.data is RMEM:
            check_allocation(self.result.type)


def _fragment(element: Attribute, layout: Layout) -> Sequence[Attribute]:
    return [TensorType(element, SpaceAttr(RMEM), IntAttr(FRAGMENT_ALIGN), LayoutAttr(layout))]


@irdl_op_definition
class MakeFragmentLikeOp(FragmentOp):
    """`%r = tile.make_fragment_like %t as f32`: registers for the elements of `%t`, in compact order.

    The first mode is contiguous, the others keep their order; a mode of stride 0 within the first keeps it, and other
    modes of equal strides, which make one element of several coordinates in `%t`, may do so in the fragment (CuTe's
    make_fragment_like). Without `as` the elements are those of `%t`.
    """

    name = "tile.make_fragment_like"
    part = operand_def(TensorType)
    element = opt_prop_def(Attribute)
    assembly_format = (
        "custom<Tensor>($part, type($part)) (`as` custom<ElementType>($element)^)? "
        "attr-dict custom<Inferred>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        (part,) = operand_types
        assert isinstance(part, TensorType)
        return _fragment(properties.get("element") or part.element_type, make_fragment_like(part.layout.data))


class _OperandFragmentOp(FragmentOp):
    """A fragment for a thread's part of an operand of a tiled MMA: `tile.xyz %mma, %part`.

    The elements are those of the part, if the instruction takes them, else those that it takes. Only the shape
    of a part of a coordinate tensor counts.

    An operand that the instruction reads from shared memory has no fragment: the result is the part itself, and each
    execution takes a descriptor of it. One in tensor memory is `at` an address there, and only the shape of the part
    counts.
    """

    OPERAND: ClassVar[str]
    tiled_mma = operand_def(TiledMmaType)
    part = operand_def(TensorType | CoordTensorType)
    at = opt_operand_def(TENSOR)
    assembly_format = (
        "custom<TiledMmaValue>($tiled_mma, type($tiled_mma)) `,` custom<Viewed>($part, type($part)) "
        "(`at` custom<Operand>($at)^)? attr-dict custom<Inferred>(type($result))"
    )

    @property
    def address(self) -> SSAValue | None:
        return self.at

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        mma, part, *address = operand_types
        assert isinstance(mma, TiledMmaType)
        atom = mma.atom.atom
        in_cells = atom.operand(cls.OPERAND).named is Named.CELL
        if in_cells != bool(address):
            message = f"operand {cls.OPERAND} of {atom.name} is {'' if in_cells else 'not '}in tensor memory"
            hint = "write `at` and an address there, of tile.tmem_alloc" if in_cells else "leave out `at`"
            raise LayoutError(Code.ATOM_SPACE, message, hint)
        if cls.OPERAND in "AB" and atom.operand(cls.OPERAND).named is Named.DESCRIPTOR:
            return [_infer_described(atom, cls.OPERAND, part)]
        allowed = mma.atom.element_types(cls.OPERAND)
        if in_cells:
            assert isinstance(part, TensorType | CoordTensorType)
            given = part.element_type if isinstance(part, TensorType) else None
            return [_infer_in_cells(mma, cls.OPERAND, allowed, given, part.plain_layout.shape)]
        if isinstance(part, CoordTensorType):
            return _fragment(allowed[0], mma.tiled_mma.make_fragment(cls.OPERAND, make_layout(part.plain_layout.shape)))
        assert isinstance(part, TensorType)
        element = part.element_type if part.element_type in allowed else allowed[0]
        return _fragment(element, mma.tiled_mma.make_fragment(cls.OPERAND, part.layout.data))


def _infer_described(atom: MmaAtom, operand: str, part: Attribute) -> TensorType:
    """The type of a thread's part of an operand in shared memory. Raises `LayoutError` if it cannot be one."""
    space = part.space.data if isinstance(part, TensorType) else None
    if not isinstance(part, TensorType) or space is not SMEM:
        where = "a coordinate tensor" if space is None else f"in {space}"
        raise LayoutError(
            Code.ATOM_SPACE,
            f"{atom.name} reads operand {operand} from shared memory; the part is {where}",
            f"take the part of a tensor in smem by partition_{operand}",
        )
    check_shared(atom, operand, part, part.layout.data)
    return part


def _infer_in_cells(
    mma: TiledMmaType, operand: str, allowed: Sequence[Attribute], given: Attribute | None, shape: IntTuple
) -> TensorType:
    """The type of a part of a shape of an operand in tensor memory."""
    element = given if given is not None and operand != "C" and given in allowed else allowed[0]
    layout = mma.tiled_mma.make_fragment(operand, make_layout(shape))
    return TensorType(element, SpaceAttr(TMEM), IntAttr(CELL_BYTES), LayoutAttr(layout))


CELL_BYTES = 4
"""The alignment of a tensor in tensor memory: that of a cell in bytes."""


@irdl_op_definition
class MakeFragmentAOp(_OperandFragmentOp):
    """`%r = tile.make_fragment_A %mma, %tAgA`: registers for a thread's part of A, (MMA,MMA_M,MMA_K,...)."""

    name = "tile.make_fragment_A"
    OPERAND: ClassVar[str] = "A"


@irdl_op_definition
class MakeFragmentBOp(_OperandFragmentOp):
    """`%r = tile.make_fragment_B %mma, %tBgB`: registers for a thread's part of B, (MMA,MMA_N,MMA_K,...)."""

    name = "tile.make_fragment_B"
    OPERAND: ClassVar[str] = "B"


@irdl_op_definition
class MakeFragmentCOp(_OperandFragmentOp):
    """`%r = tile.make_fragment_C %mma, %tCgC`: the accumulator for a thread's part of C, (MMA,MMA_M,MMA_N,...).

    It has the element type of the instruction, whatever C has. `tile.make_fragment_C %mma, %tCgC at %address` is the
    accumulator of tcgen05.mma in tensor memory.
    """

    name = "tile.make_fragment_C"
    OPERAND: ClassVar[str] = "C"
