# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Extents and strides at run time: those of a tensor, and a tensor with new ones."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, IndexType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout, plain_layout
from ...layout.algebra.integers import AnyInt
from ...layout.algebra.inttuple import product
from ...layout.text.layouts import to_text
from ...layout.text.operations import mode_of
from ..cute import LayoutAttr
from ..cute.values import unknowns
from ..definitions import irdl_op_definition, refusing, typed_operand
from .assembly import AnyTensor
from .coord_type import CoordTensorType
from .directives import TileOp
from .results import InferringOp
from .types import TensorType


class _ModeOp(TileOp, ABC):
    """An operation that asks for an integer of a mode of a tensor's layout."""

    tensor = cast("SSAValue[AnyTensor]", operand_def(AnyTensor))
    modes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "custom<Viewed>($tensor, type($tensor)) `,` custom<Path>($modes) attr-dict"

    @abstractmethod
    def integer(self, layout: object) -> AnyInt:
        """The requested integer of the tensor's plain layout. Raises `LayoutError`."""

    def verify_(self) -> None:
        with refusing():
            self.integer(plain_layout(self.tensor.type.layout.data))

    def mode(self, t: object) -> Any:
        """The mode of a shape or a stride. Raises `LayoutError` (E0208) where there is none."""
        for index in self.modes.get_values():
            t = mode_of(t, index)
        return t


@irdl_op_definition
class DimOp(_ModeOp):
    """`%m = tile.dim %A, 0`: the size of a mode of a tensor; `tile.dim %A, [1, 0]` that of mode 0 of mode 1."""

    name = "tile.dim"

    def integer(self, layout: Any) -> AnyInt:
        return product(self.mode(layout.shape))


@irdl_op_definition
class StrideOp(_ModeOp):
    """`%ld = tile.stride %A, 0`: the stride of a mode of a tensor, in elements; `tile.stride %A, [1, 0]` of a mode
    within a mode. The mode must have one stride.
    """

    name = "tile.stride"
    tensor = typed_operand(TensorType)

    def integer(self, layout: Any) -> AnyInt:
        stride = self.mode(layout.stride)
        if isinstance(stride, tuple):
            raise LayoutError(
                Code.BAD_ARGUMENT, f"the mode has the strides {to_text(stride)}, not one", "name a mode within it"
            )
        return stride


@irdl_op_definition
class GetScalarsOp(InferringOp):
    """`%m, %ld = tile.get_scalars %A`: the values of the `?` of a tensor's type, those of its shape, then those of its
    stride, from left to right.
    """

    name = "tile.get_scalars"
    tensor = typed_operand(TensorType)
    scalars = var_result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "custom<Tensor>($tensor, type($tensor)) attr-dict custom<Implied>(type($scalars))"

    def __init__(self, tensor: SSAValue):
        super().__init__(operands=[tensor], result_types=[self.infer([tensor.type], {})])

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        (tensor,) = operand_types
        assert isinstance(tensor, TensorType)
        return [IndexType() for _ in unknowns(tensor.layout.data)]

    def verify_(self) -> None:
        count = len(self.infer([self.tensor.type], {}))
        if len(self.scalars) != count:
            raise VerifyException(f"the type {self.tensor.type} has {count} integers that are not static")


@irdl_op_definition
class MakeTensorOp(InferringOp):
    """`%B = tile.make_tensor %A, "(?,?):(?{div=8},1)" (%m, %n, %ld)`: another layout from the pointer of a tensor on
    (CuTe's make_tensor); or another layout from the start of a coordinate tensor.

    The operands are the values of the `?`, those of the shape first. Preconditions: they are positive and agree with
    the layout; the elements lie in the memory of the tensor.
    """

    name = "tile.make_tensor"
    source = operand_def(TensorType | CoordTensorType)
    scalars = var_operand_def(IndexType)
    layout = prop_def(LayoutAttr)
    result = result_def(TensorType | CoordTensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Viewed>($source, type($source)) `,` custom<Marked>() custom<Quoted>($layout) "
        "(` ` `(` $scalars^ `)`)? attr-dict custom<Inferred>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        source, layout = operand_types[0], properties["layout"]
        assert isinstance(layout, LayoutAttr)
        if isinstance(source, CoordTensorType):
            return [CoordTensorType(source.start, layout)]
        assert isinstance(source, TensorType)
        if source.is_swizzled or not isinstance(layout.data, Layout):
            raise LayoutError(
                Code.COMPOSED_UNSUPPORTED,
                "a tensor is made from a plain tensor's pointer, with a plain layout",
                "the offset within a swizzle belongs to its layout; take views of it",
            )
        return [source.with_layout(layout.data)]

    def verify_(self) -> None:
        super().verify_()
        count = len(unknowns(self.layout.data))
        if len(self.scalars) != count:
            raise VerifyException(f"the layout has {count} dynamic integers, not {len(self.scalars)}")
