# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for tensor maps and TMA copies: a copy executes the instructions of `ptx` that it stands for, each on
registers of its own. A map in a register is its address, as that of a parameter is.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....base.errors import Code, LayoutError
from ....base.parameters import TENSOR_MAP
from ....dialects import tile
from ....dialects.arith.integer_range import limits
from ....dialects.ptx import MAP, MAP_FIELDS, SHARED, CopyTensorMapOp, TensorMapReplaceOp
from ....dialects.tile.tma import coordinates_of, instruction_of
from ....dialects.tile.tma_rules import split_by_instructions
from ....layout.algebra.axes import along
from ....layout.algebra.core import Layout, join
from ....layout.algebra.inttuple import leaves, transform_leaves
from ....layout.tma.recipe import PlacedMap, promotion_for
from ....layout.tma.tensor_map import check_stored_rows
from ...arrays.storage import distances
from ..events import Step
from ..faults import SimulationError, Site, site_of
from ..launch import MAP_BASE
from ..memory.tensors import tensor_layout, tensor_value
from ..translate import Rules, Translator
from ..values import CoordTensorValue, TensorValue, Value, varies
from ..values.scalars import lane_layout, numbers, scalars_for
from ..warp import Warp


def _tensor_map(op: tile.TensorMapOp, t: Translator) -> Step:
    source, result, tensor, site = t.slot(op.tensor), t.slot(op.result), op.tensor.type, site_of(op)
    type = op.result.type
    assert isinstance(type, tile.TmaType)
    copy, element = type.tma_copy, type.element

    def step(warp: Warp) -> None:
        given, maps = tensor_value(warp.registers[source]), warp.launch.maps
        address, *scalars = (_common(warp, value) for value in (given.address, *given.scalars))
        given = replace(given, address=address, scalars=tuple(scalars))
        if any(map(varies, (address, *scalars))):
            text = "the launch makes a tensor map from the kernel's arguments, but this one differs between threads"
            hint = "make the map of the whole argument, and take tiles of tile.tma_tensor at run-time coordinates"
            raise SimulationError(Code.TENSOR_MAP, text, hint, site=site)
        try:
            made = copy.tensor_map(tensor_layout(tensor, given), padded=element.padded)
            made.check_address(given.address)
            if not copy.loads:
                check_stored_rows(made.dims[0], made.bits)
        except LayoutError as error:
            raise SimulationError(Code.TENSOR_MAP, error.message, error.hint, site=site) from None
        placed = PlacedMap(made, given.address, element, nan_fill=False, promotion=promotion_for(made.strides))
        if placed not in maps:
            maps.append(placed)
        warp.registers[result] = MAP_BASE + TENSOR_MAP.size * maps.index(placed)

    return step


def _common(warp: Warp, value: Value) -> Value:
    """A value that is the same in all active lanes, as one; another one as it is."""
    chosen = warp.select(value) if varies(value) else np.zeros(0)
    return chosen[0].item() if len(chosen) and (chosen == chosen[0]).all() else value


def _tma_tensor(op: tile.TmaTensorOp, t: Translator) -> Step:
    layout, type = op.tensor.type.layout.data, op.result.type
    assert isinstance(type, tile.CoordTensorType)

    def coordinates(tensor: Value) -> Value:
        gmem = lane_layout(layout, tensor_value(tensor).scalars)
        return CoordTensorValue(type.start.data, scalars_for(type.plain_layout, op.coordinates(gmem)))

    return t.compute(op.result, coordinates, op.tensor)


def _coord_tensor(op: tile.CoordTensorOp, t: Translator) -> Step:
    type = op.result.type
    assert isinstance(type, tile.CoordTensorType)

    def tensor(*start: Value) -> Value:
        values = iter(start)
        return CoordTensorValue(transform_leaves(lambda _: next(values), type.start.data))

    return t.compute(op.result, tensor, *op.start)


class _Instruction:
    """An instruction on a box, whose coordinates and address in shared memory are given to it."""

    def __init__(self, op: tile.CopyOp | tile.PrefetchOp | tile.TmaCallOp, t: Translator, has_smem: bool) -> None:
        tma = op.tma
        assert tma is not None
        self._site = site_of(op)
        self.rank = coordinates_of(tma.type)
        descriptor = None if isinstance(op, tile.PrefetchOp) else op.descriptor
        self._map = t.slot(tma if descriptor is None else descriptor)
        rest = (op.policy,) if isinstance(op, tile.PrefetchOp) else (op.mbarrier, op.multicast, op.policy)
        operands = (None, None, *rest) if isinstance(op, tile.PrefetchOp) else rest

        def instruction(values: Sequence[SSAValue]) -> Operation:
            return instruction_of(tma.type, values[0], values[1:-1], values[-1] if has_smem else None, *operands)

        self._step, slots = as_instruction(op, t, [MAP, *[i32] * self.rank, SHARED], instruction)
        self._from, *self._slots = slots

    def run(self, warp: Warp, coords: Sequence[Value], address: Value) -> None:
        """Executes it for the active lanes."""
        registers = warp.registers
        registers[self._from] = registers[self._map]
        for value in coords:
            _check_word(warp, self._site, value)
        for slot, value in zip(self._slots, (*coords, address), strict=True):
            registers[slot] = value
        self._step(warp)


def tma_copy(op: tile.CopyOp | tile.PrefetchOp, t: Translator) -> Step | None:
    """The step of a copy by a tensor map, or of a prefetch."""
    tma = op.tma
    sides = [op.tiles] if isinstance(op, tile.PrefetchOp) else [op.src, op.dst]
    tiles = next((side for side in sides if side is not None and isinstance(side.type, tile.CoordTensorType)), None)
    if tiles is None:
        return None  # the prefetch of a map
    assert tma is not None
    assert isinstance(tiles.type, tile.CoordTensorType)
    memory = next((side for side in sides if side is not tiles), None)
    instruction, site = _Instruction(op, t, memory is not None), site_of(op)
    modes = join(split_by_instructions(tma.type, tiles.type)[1])
    steps = [distances(along(modes, (axis,))).tolist() for axis in range(instruction.rank)]
    count, start, smem = len(steps[0]), t.slot(tiles), None if memory is None else t.slot(memory)
    offsets, bits = [0] * count, 8
    if memory is not None:
        assert isinstance(memory.type, tile.TensorType)
        offsets = distances(join(split_by_instructions(tma.type, memory.type)[1])).tolist()
        bits = memory.type.element_bits

    def step(warp: Warp) -> None:
        warp.launch.spend(count, site)
        begin = list(leaves(warp.registers[start].start))
        tensor = TensorValue(0) if smem is None else tensor_value(warp.registers[smem])
        for number in range(count):
            coords = [first + steps[axis][number] for axis, first in enumerate(begin)]
            instruction.run(warp, coords, _address(tensor, offsets[number], bits))

    return step


def _address(tensor: TensorValue, index: int, bits: int) -> Value:
    """The address of an element as an instruction takes it that swizzles addresses itself."""
    return tensor.address + (tensor.offset + index) * bits // 8


def _call(op: tile.TmaCallOp, t: Translator) -> Step:
    instruction, coords = _Instruction(op, t, op.smem is not None), t.slots(op.coords)
    smem = None if op.smem is None else t.slot(op.smem)
    bits = op.tma.type.tma_copy.val_bits

    def step(warp: Warp) -> None:
        tensor = TensorValue(0) if smem is None else tensor_value(warp.registers[smem])
        instruction.run(warp, [warp.registers[slot] for slot in coords], _address(tensor, 0, bits))

    return step


def _check_word(warp: Warp, site: Site, value: Value) -> None:
    """A fault (E3209) for an integer that an instruction takes in 32 bits and that does not fit there."""
    low, high = limits(32)
    warp.fault_too_large(site, (value < low) | (value > high), value, 32)


def _copy_map(op: tile.CopyTensorMapOp, t: Translator) -> Step:
    source, target = t.slot(op.tma), t.slot(op.ptr)
    step, (given, to) = as_instruction(op, t, [MAP, op.ptr.type], lambda values: CopyTensorMapOp(*values))

    def copy(warp: Warp) -> None:
        warp.registers[given], warp.registers[to] = warp.registers[source], warp.registers[target]
        step(warp)

    return copy


def _update_map(op: tile.UpdateTensorMapOp, t: Translator) -> Step:
    tensor, target, type, bits = t.slot(op.tensor), t.slot(op.ptr), op.tensor.type, op.tensor.type.element_bits
    layout = type.layout.data
    assert isinstance(layout, Layout)
    fields = [("global_address", None), *((name, number) for name, number, _ in op.fields(layout))]
    steps: list[tuple[Step, list[int]]] = []
    widths, site = [MAP_FIELDS[name].bits for name, _ in fields], site_of(op)
    for (name, number), width in zip(fields, widths, strict=True):
        kinds = [op.ptr.type, IntegerType(width)]
        steps.append(as_instruction(op, t, kinds, partial(_make_replacing, name, number)))

    def update(warp: Warp) -> None:
        given = tensor_value(warp.registers[tensor])
        values: list[Value] = [_address(given, 0, bits)]
        values += [numbers(value) for _, _, value in op.fields(lane_layout(layout, given.scalars))]
        for (step, (at, value)), new, width in zip(steps, values, widths, strict=True):
            if width == 32:
                _check_word(warp, site, new)
            warp.registers[at], warp.registers[value] = warp.registers[target], new
            step(warp)

    return update


def _make_replacing(name: str, number: int | None, values: Sequence[SSAValue]) -> Operation:
    ptr, value = values
    return TensorMapReplaceOp(name, ptr, value, number)


def as_instruction(
    op: Operation, t: Translator, types: Sequence[Attribute], make: Callable[[Sequence[SSAValue]], Operation]
) -> tuple[Step, list[int]]:
    """The step of an instruction of `ptx` for an operation of `tile`, and the slots of its operands."""
    registers = Block(arg_types=types).args
    made = make(registers)
    made.location = op.location
    rule = t.rule_of(type(made))
    assert rule is not None
    step = rule(made, t)
    assert callable(step), "the rules of TMA copies do not wait"
    return step, list(t.slots(registers))


TILE_TMA: Rules = {
    tile.TensorMapOp: _tensor_map,
    tile.TmaTensorOp: _tma_tensor,
    tile.CoordTensorOp: _coord_tensor,
    tile.PrefetchOp: tma_copy,
    tile.TmaCallOp: _call,
    tile.TensorMapPtrOp: lambda op, t: t.compute(op.result, lambda address: address, op.tma),
    tile.CopyTensorMapOp: _copy_map,
    tile.UpdateTensorMapOp: _update_map,
}
