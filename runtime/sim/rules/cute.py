# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the `cute` dialect: the layout algebra itself, on the integers that the program has at hand.

In registers a value of the dialect is a tuple of its dynamic integers in their order, each a Python `int` or one i64
for each lane; static integers stand in its type.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute

from ....base.errors import Code, LayoutError
from ....dialects.cute.arithmetic import CompareOp
from ....dialects.cute.brackets import parameter
from ....dialects.cute.constructors import GatherOp, PrintOp, StaticOp
from ....dialects.cute.op import AlgebraOp
from ....dialects.cute.types import CuteType
from ....dialects.cute.values import integers, map_integers
from ....dialects.ptx.base import integer_bits
from ....layout.algebra.integers import Unknown
from ..events import Step
from ..faults import Site, site_of
from ..translate import Rules, Translator
from ..values import Value, anywhere, varies
from ..values.lane_int import LaneInt, ZeroDivisorError, number
from ..warp import Warp

Leaves = tuple[Value, ...]


def _static(op: StaticOp, t: Translator) -> None:
    t.constant(op.result, ())


def _gather(op: GatherOp, t: Translator) -> Step:
    result = t.slot(op.results[0])
    sources = [_element(operand.type, t.slot(operand)) for operand in op.operands]

    def step(warp: Warp) -> None:
        registers = warp.registers
        registers[result] = tuple([source(registers) for source in sources])

    return step


def _element(type: Attribute, slot: int) -> Callable[[list[Value]], Value]:
    """How an operand gives one integer: it is a scalar, or an int_tuple of one leaf."""
    if not isinstance(type, CuteType):
        return lambda registers: _wide(registers[slot])
    if type.is_static:
        return lambda registers: type.data
    return lambda registers: registers[slot][0]


def _wide(value: Value) -> Value:
    return value.astype(np.int64) if varies(value) else value


def _algebra(op: AlgebraOp, t: Translator) -> Step:
    operands = [_operand_type(operand.type) for operand in op.operands]
    sources, targets, types = t.slots(op.operands), t.slots(op.results), list(op.result_types)
    declared = type(op).get_irdl_definition().properties
    parameters = {name: parameter(value) for name, value in op.properties.items() if name in declared}
    site = site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        values = [_value(warp, type, registers[slot]) for type, slot in zip(operands, sources, strict=True)]
        try:
            outcome = op.evaluate(*values, **parameters)
        except ZeroDivisorError as error:
            warp.fault(Code.SIM_ARITHMETIC, site, _lane(warp, error.where), "division by zero")
        except LayoutError as error:
            warp.fault(Code.SIM_ARITHMETIC, site, _lane(warp, True), error.message, error.hint)
        results = cast(list[Any], outcome) if isinstance(outcome, list) else [outcome]
        for target, type, value in zip(targets, types, results, strict=True):
            registers[target] = _store_value(warp, site, type, value)

    return step


def _operand_type(type: Attribute) -> CuteType:
    assert isinstance(type, CuteType)
    return type


def _value(warp: Warp, type: CuteType, leaves: Leaves) -> Any:
    """A value for the algebra: its dynamic integers are those of the active lanes."""
    if not leaves:
        return type.data
    rest = iter(leaves)

    def convert(x: object) -> Any:
        if not isinstance(x, Unknown):
            return x
        leaf = next(rest)
        return LaneInt(warp.select(leaf).astype(object) if varies(leaf) else leaf)

    return map_integers(convert, type.data)


def _store_value(warp: Warp, site: Site, type: Attribute, value: Any) -> Value:
    """The result of the algebra, as a register holds it. Raises SimulationError (E3209) for an integer too wide."""
    if not isinstance(type, CuteType):  # a result of get_scalars
        bits = integer_bits(type) or 64
        stored = _check_width(warp, site, bits, value)
        return stored.astype(f"i{bits // 8}") if varies(stored) else stored
    pairs = zip(integers(type.data), integers(value), strict=True)
    return tuple([_check_width(warp, site, leaf.width, x) for leaf, x in pairs if isinstance(leaf, Unknown)])


def _check_width(warp: Warp, site: Site, bits: int, x: Any) -> Value:
    value = number(x)
    limit = 1 << (bits - 1)
    beyond = (value < -limit) | (value >= limit)
    if anywhere(beyond):
        lane = _lane(warp, beyond)
        shown = value if not varies(value) else value[int(np.argmax(beyond))]
        text = f"the result {shown} does not fit in {bits} bits"
        warp.fault(Code.SIM_ARITHMETIC, site, lane, text, "give it an i64 integer" if bits == 32 else "")
    if not varies(value):
        return int(value)
    full = np.zeros(warp.lanes, np.int64)
    full[warp.lane_numbers()] = value
    return full


def _lane(warp: Warp, bad: object) -> int:
    """The first active lane for which a condition holds, which is uniform or one for each active lane."""
    return int(warp.lane_numbers()[int(np.argmax(bad)) if varies(bad) else 0])


def _by_lane(warp: Warp, *values: Leaves) -> Iterator[tuple[int, list[Leaves]]]:
    """The values as each active lane sees them."""
    for lane in warp.lane_numbers().tolist():
        yield lane, [tuple([int(leaf[lane]) if varies(leaf) else leaf for leaf in leaves]) for leaves in values]


def _known(type: CuteType, leaves: Sequence[int]) -> Any:
    """The value that a type and its dynamic integers make."""
    rest = iter(leaves)
    return map_integers(lambda x: next(rest) if isinstance(x, Unknown) else x, type.data)


def _compare(op: CompareOp, t: Translator) -> Step:
    left, right = (_operand_type(operand.type) for operand in op.operands)
    (a, b), result = t.slots(op.operands), t.slot(op.results[0])

    def step(warp: Warp) -> None:
        registers = warp.registers
        ours, theirs = registers[a], registers[b]
        if not any(varies(leaf) for leaf in (*ours, *theirs)):
            registers[result] = op.compare(_known(left, ours), _known(right, theirs))
            return
        holds = np.zeros(warp.lanes, bool)
        for lane, (x, y) in _by_lane(warp, ours, theirs):
            holds[lane] = op.compare(_known(left, x), _known(right, y))
        registers[result] = holds

    return step


def _print(op: PrintOp, t: Translator) -> Step:
    type, slot, site = _operand_type(op.value.type), t.slot(op.value), site_of(op)

    def step(warp: Warp) -> None:
        for _, (leaves,) in _by_lane(warp, warp.registers[slot]):
            warp.launch.print(type.show(_known(type, leaves)) + "\n", site)

    return step


CUTE: Rules = {
    StaticOp: _static,
    GatherOp: _gather,
    AlgebraOp: _algebra,
    CompareOp: _compare,
    PrintOp: _print,
}
