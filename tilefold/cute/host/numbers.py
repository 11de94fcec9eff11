# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers that a host function computes of its arguments, as a program: a kernel of one thread that stores them. It
becomes a function of an object file, or of this process.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntAttr, IntegerType, ModuleOp, StringAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilefold.base.held_signals import holding_signals
from tilefold.base.parameters import POINTER, SCALARS, ParameterKind
from tilefold.base.spaces import GMEM
from tilefold.base.target import Target
from tilefold.builder.scalars.casts import integer_attribute
from tilefold.builder.trace import MODULE
from tilefold.compiler.frontend.program import print_program
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.machine.host_object import as_host_function
from tilefold.dialects.cute import CoordAttr, LayoutAttr
from tilefold.dialects.cute.values import unknowns
from tilefold.dialects.definitions import outer_operands
from tilefold.dialects.gpu import ModuleOp as GpuModuleOp
from tilefold.dialects.kernel import LaunchBounds, passed_as
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import ReturnOp, StoreOp, TensorType, TileKernelOp
from tilefold.driver.lowering import load
from tilefold.layout.algebra.core import Layout
from tilefold.runtime.native_code import compiled

_ANY = Target("sm_80")
"""The target for the text of a kernel that runs on the host."""
_C_TYPES: Mapping[str, Any] = MappingProxyType({
    "P": ctypes.c_void_p, "?": ctypes.c_bool, "B": ctypes.c_uint8, "H": ctypes.c_uint16, "I": ctypes.c_uint32,
    "Q": ctypes.c_uint64, "b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "q": ctypes.c_int64,
    "f": ctypes.c_float, "d": ctypes.c_double,
})  # fmt: skip
"""The types of C for the formats of `struct`."""


@holding_signals
def _compiled(text: str) -> Any:
    return compiled(text)


@dataclass
class HostProgram:
    """The requested numbers of the host function `name`, whose arguments are `slots`; its `constants` are known."""

    name: str
    slots: Mapping[str, SSAValue]
    constants: Mapping[SSAValue, int | float | bool]
    values: list[SSAValue | int] = field(default_factory=lambda: [])

    def place_of(self, value: SSAValue | int) -> int:
        """The place of a number among those that the program stores."""
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)

    def text(self) -> str:
        """The program. Its kernel, NAME_values, stores 64 bits for each number into its last argument."""
        stored = TensorType(i64, SpaceAttr(GMEM), IntAttr(16), LayoutAttr(Layout(len(self.values), 1)))
        block = Block(arg_types=[*(ssa.type for ssa in self.slots.values()), stored])
        known: dict[SSAValue, SSAValue] = dict(zip(self.slots.values(), block.args, strict=False))
        known |= {ssa: _constant(block, number, ssa.type) for ssa, number in self.constants.items()}
        for op in self._needed():
            copy = op.clone(known)
            block.add_op(copy)
            known |= zip(op.results, copy.results, strict=True)
        for place, value in enumerate(self.values):
            number = _constant(block, value, i64) if isinstance(value, int) else _as_i64(block, known[value])
            place_of = {"coord": CoordAttr((place,))}
            block.add_op(StoreOp.build(operands=[number, block.args[-1], []], properties=place_of))
        block.add_op(ReturnOp())
        last = "values"
        while last in self.slots:
            last += "_"
        kernel = TileKernelOp(f"{self.name}_values", [*self.slots, last], LaunchBounds((1, 1, 1)), Region(block))
        module = GpuModuleOp.create(properties={"sym_name": StringAttr(MODULE)}, regions=[Region(Block([kernel]))])
        return print_program(ModuleOp([module]), header=True)

    def llvm(self) -> str:
        """The same as LLVM IR for a GPU, of one kernel."""
        text = self.text()
        return load(Source(self.name, text, text)).llvm(_ANY, lines=False)

    def function(self) -> "Callable[..., Sequence[int]] | None":
        """The program as a function of this process: of the integers that the types of tensors leave open, and of the
        other numbers, in the order of the slots; its results are the numbers, an integer with its sign and a float by
        its bits. None for numbers that C does not pass. TilefoldError (E0213) for those that only a GPU computes.
        """
        kinds: list[ParameterKind] = []
        for ssa in self.slots.values():
            kind = POINTER if isinstance(ssa.type, TensorType) else passed_as(ssa.type)
            if kind is None or kind.packing not in _C_TYPES:
                return None
            kinds.append(kind)
            if isinstance(ssa.type, TensorType):
                kinds += [SCALARS[f"i{leaf.width}"] for leaf in unknowns(ssa.type.layout.data)]
        engine = _compiled(as_host_function(self.llvm()))
        address = engine.get_function_address(f"{self.name}_values")
        types = [_C_TYPES[kind.packing] for kind in kinds]
        call = ctypes.PYFUNCTYPE(None, *types, ctypes.c_void_p)(address)  # which keeps the lock: it takes a microsecond
        results, byref = ctypes.c_int64 * len(self.values), ctypes.byref

        def function(*given: Any, keep: object = engine) -> list[int]:
            made = results()
            call(*given, byref(made))
            return made[:]

        return function

    def _needed(self) -> Iterator[Operation]:
        """The operations of the host that compute the numbers, each after those that it needs."""
        pending = [value.owner for value in reversed(self.values) if isinstance(value, SSAValue)]
        done = set[Operation]()
        while pending:
            op = pending[-1]
            more = [x.owner for x in outer_operands(op) if x.owner not in done] if isinstance(op, Operation) else []
            more = [owner for owner in more if isinstance(owner, Operation)]
            if isinstance(op, Operation) and op not in done and more:
                pending += more
                continue
            pending.pop()
            if isinstance(op, Operation) and op not in done:
                done.add(op)
                yield op


def _constant(block: Block, number: float, type: Attribute) -> SSAValue:
    is_float = isinstance(type, AnyFloat)
    op = arith.ConstantOp(FloatAttr(number, type) if is_float else integer_attribute(int(number), type))
    block.add_op(op)
    return op.result


def _as_i64(block: Block, value: SSAValue) -> SSAValue:
    """A number in the lowest of 64 bits: an integer with its sign, a float by its bits."""

    def add(op: Any) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    if isinstance(value.type, IndexType):
        return add(arith.IndexCastOp(value, i64))
    if isinstance(value.type, AnyFloat):
        value = add(arith.BitcastOp(value, IntegerType(value.type.bitwidth)))
        return value if value.type == i64 else add(arith.ExtUIOp(value, i64))
    if value.type == i1:
        return add(arith.ExtUIOp(value, i64))
    return value if value.type == i64 else add(arith.ExtSIOp(value, i64))


def stored_number(type: Attribute, number: float) -> int | None:
    """The number that the program stores for an integer: that of its bits, with a sign. None for a float."""
    if not isinstance(type, IntegerType | IndexType):
        return None
    bits = type.bitwidth if isinstance(type, IntegerType) else 64
    low = int(number) & ((1 << bits) - 1)
    return low - (1 << bits) if bits > 1 and low >> (bits - 1) else low
