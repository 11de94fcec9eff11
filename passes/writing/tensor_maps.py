# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps as arguments that a launch makes of others, by recipes."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...base.errors import Code, LayoutError
from ...base.spaces import GMEM
from ...dialects.arith.semantics import constant_of
from ...dialects.cute.values import with_scalars
from ...dialects.ptx import MAP, MAP_FIELDS, TensorMapReplaceOp
from ...dialects.tile import (
    CopyTensorMapOp,
    Crd2IdxOp,
    PrefetchOp,
    TensorMapOp,
    TensorType,
    TmaCallOp,
    TmaType,
    UpdateTensorMapOp,
    ViewOp,
)
from ...dialects.tile.assembly import fill_coordinate, unwrap
from ...layout.algebra.core import Layout
from ...layout.algebra.integers import add
from ...layout.tma.launch_int import LaunchInt, LaunchValue
from ...layout.tma.recipe import MapRecipe
from ...layout.tma.tma_copy import in_bytes
from ..errors import LoweringError
from .addresses import Address, Addresses
from .emitter import Emitter, SsaInt

_ARITHMETIC: Mapping[type[Any], Callable[[Any, Any], Any]] = MappingProxyType({
    arith.AddiOp: lambda a, b: a + b, arith.SubiOp: lambda a, b: a - b, arith.MuliOp: lambda a, b: a * b,
    arith.DivUIOp: lambda a, b: a // b, arith.RemUIOp: lambda a, b: a % b,
})  # fmt: skip
"""The arithmetic that recipes have, on integers that are not negative."""


def update_tensor_map(emitter: Emitter, op: UpdateTensorMapOp, tensor: Address, addresses: Addresses) -> None:
    """Replaces the change of a map in memory to that of a tensor by the changes of its fields."""
    start = addresses.first(emitter, tensor, op.tensor.type)
    emitter.insert(TensorMapReplaceOp("global_address", op.ptr, start))
    layout: Layout = with_scalars(op.tensor.type.layout.data, [SsaInt(emitter, scalar) for scalar in tensor.scalars])
    for field, number, integer in op.fields(layout):
        value = integer.value if isinstance(integer, SsaInt) else emitter.index(integer)
        value = addresses.converted(value, MAP_FIELDS[field].bits, must_fit=True)
        emitter.insert(TensorMapReplaceOp(field, op.ptr, value, number))
    emitter.replace()


def _takes_form(op: Operation) -> bool:
    """Whether an operation copies a map to memory, or works on one in memory."""
    in_memory = isinstance(op, CopyTensorMapOp | UpdateTensorMapOp)
    return in_memory or (isinstance(op, TmaCallOp) and op.descriptor is not None)


def _is_tensor(argument: SSAValue) -> bool:
    return isinstance(argument.type, TensorType) and argument.type.space.data is GMEM


def _alignment(argument: SSAValue) -> int:
    assert isinstance(argument.type, TensorType)
    return argument.type.align.data


def _fetches_map(op: Operation) -> bool:
    return isinstance(op, PrefetchOp) and op.tiles is None


ANY_EXTENT = 128
"""An extent or a stride that a map can have, whatever its elements are."""


class TensorMaps:
    """The maps of a kernel, equal ones once, each an argument after all others. `names` are those of the other
    arguments, by which recipes refer to them.
    """

    def __init__(self, block: Block, names: Mapping[SSAValue, str]) -> None:
        self._block = block
        self._names = names
        self._maps: dict[MapRecipe, BlockArgument] = {}

    @property
    def recipes(self) -> list[MapRecipe]:
        """The recipes, in the order of the arguments."""
        return list(self._maps)

    def argument(self, op: TensorMapOp, scalars: Sequence[SSAValue]) -> tuple[SSAValue, bool]:
        """The argument that is a map, for the values of the `?` of its tensor, and whether it is that of the tensor.

        The launch cannot make a map that depends on more than arguments. If the kernel only copies such a map to
        memory, and uses it there, the argument is a map of the same form, which is changed there; a cache may fetch it
        before. LoweringError (E0322) for other uses.
        """
        is_whole = True
        try:
            recipe = self._recipe(op, scalars, self._value)
        except LoweringError:
            uses = [use.operation for use in op.result.uses if not _fetches_map(use.operation)]
            if not uses or not all(map(_takes_form, uses)):
                raise
            recipe, is_whole = self._recipe(op, scalars, self._value_or_any, is_form=True), False
        if recipe not in self._maps:
            argument = self._block.insert_arg(MAP, len(self._block.args))
            argument.name_hint = f"{recipe.tensor}_map"
            self._maps[recipe] = argument
        return self._maps[recipe], is_whole

    def _recipe(
        self,
        op: TensorMapOp,
        scalars: Sequence[SSAValue],
        value_of: Callable[[TensorMapOp, SSAValue], object],
        is_form: bool = False,
    ) -> MapRecipe:
        """The recipe of a map; with `is_form` of one at the beginning of the argument, or of any argument for a tensor
        that is not one.
        """
        tensor: SSAValue = op.tensor
        offset: LaunchValue = 0
        while isinstance(tensor.owner, ViewOp):
            view = tensor.owner
            if view.offset is not None and not is_form:
                offset = add(in_bytes(value_of(op, view.offset), view.source.type.element_bits), offset)
            tensor = view.source
        if is_form and tensor not in self._names:
            tensor = max(filter(_is_tensor, self._names), key=_alignment, default=tensor)
        if tensor not in self._names:
            message = "the launch makes a tensor map from an argument, but this tensor begins at a computed address"
            hint = "make a map of any tensor, copy it to memory, and update it there (cpasync.update_tma_descriptor)"
            raise LoweringError(Code.TENSOR_MAP, message, op, hint)
        layout: Layout = with_scalars(op.tensor.type.layout.data, [value_of(op, scalar) for scalar in scalars])
        tma = op.result.type
        assert isinstance(tma, TmaType)
        copy = tma.tma_copy
        dimensions = copy.dimensions(layout)
        extents = tuple(extent for extent, _ in dimensions)
        strides = tuple(in_bytes(stride, copy.bits) for _, stride in dimensions[1:])
        name, stored = self._names[tensor], not copy.loads
        try:
            return MapRecipe(name, tma.element, extents, strides, copy.box, copy.swizzle_bits, offset, stored=stored)
        except LayoutError as error:
            raise LoweringError(error.code, error.message, op, error.hint) from error

    def _value_or_any(self, op: TensorMapOp, value: SSAValue) -> Any:
        """An integer as the launch computes it, or one that a map can have in its place."""
        try:
            return self._value(op, value)
        except LoweringError:
            return ANY_EXTENT

    def _value(self, op: TensorMapOp, value: SSAValue) -> Any:
        """An integer of type `index` as the launch computes it."""
        if (constant := constant_of(value)) is not None:
            return constant
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp) and owner.input in self._names:
            return LaunchInt(self._names[owner.input])
        if (function := _ARITHMETIC.get(type(owner))) is not None:
            assert not isinstance(owner, Block)
            return function(*(self._value(op, operand) for operand in owner.operands))
        if isinstance(owner, Crd2IdxOp):
            layout = with_scalars(owner.plain_layout, [self._value(op, scalar) for scalar in owner.scalars])
            return layout(unwrap(fill_coordinate(owner.coord.data, [self._value(op, c) for c in owner.coords])))
        raise LoweringError(
            Code.TENSOR_MAP,
            "the launch makes a tensor map from the kernel's arguments, but this one depends on values of the kernel",
            op,
            "make the map of the whole argument, and take tiles of tile.tma_tensor at run-time coordinates",
        )
