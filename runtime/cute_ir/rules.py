# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of the operations that only the host executes: constants in memory, calls of C functions, and launches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import gpu, llvm
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.traits import SymbolTable

from ...base.errors import Code
from ...base.target import MAX_BLOCK, MAX_GRID
from ...dialects.arith.integer_range import wrap_signed
from ...dialects.gpu.launch import FuncOp, LaunchFuncOp
from ...dialects.ptx.base import integer_bits, scalar_bits
from ..engine import LaunchConfig
from ..errors import Dim3, LaunchError
from ..options import launch_attributes
from ..sim.events import Step
from ..sim.faults import SimulationError, Site, site_of
from ..sim.translate import Rules, Translator
from ..sim.values import Value, kind_of
from ..sim.warp import Warp
from .c_functions import FUNCTIONS, NULL, Argument, CallError, HostPointer, PointerError, World, byte_size

_DYNAMIC_INDEX = llvm.GEP_USE_SSA_VAL


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A launch that the host asks for: the kernel's symbol (`m::k`), its sizes, and the operation."""

    kernel: str
    config: LaunchConfig
    site: Site


Launcher = Callable[[KernelLaunch, list[tuple[Value, Attribute]], Warp], None]
"""Runs a kernel on the given values, each with its type; the warp is the host's."""


def _addressof(op: llvm.AddressOfOp, t: Translator) -> None:
    name = op.global_name.string_value()
    symbol = SymbolTable.lookup_symbol(op, name)
    value = symbol.value if isinstance(symbol, llvm.GlobalOp) else None
    if not isinstance(value, StringAttr):
        raise SimulationError(
            Code.SIM_UNSUPPORTED,
            f"@{name} is not a constant string",
            "the host reads llvm.mlir.global constants of strings",
            site=site_of(op),
        )
    t.constant(op.result, HostPointer(value.data.encode(), 0, f"@{name}"))


def _constant(op: llvm.ConstantOp, t: Translator) -> None:
    kind = kind_of(op.result.type)
    match op.value:
        case IntegerAttr() if kind is not None:
            number: int = op.value.value.data
            t.constant(op.result, bool(number & 1) if kind.bits == 1 else wrap_signed(number, kind.bits))
        case FloatAttr() if kind is not None:
            t.constant(op.result, kind.dtype.type(op.value.value.data))
        case _:
            raise SimulationError(
                Code.SIM_UNSUPPORTED, f"the host has no constants such as {op.value}", site=site_of(op)
            )


def _zero(op: llvm.ZeroOp, t: Translator) -> None:
    if not isinstance(op.res.type, llvm.LLVMPointerType):
        raise SimulationError(Code.SIM_UNSUPPORTED, f"the host has no zero of type {op.res.type}", site=site_of(op))
    t.constant(op.res, NULL)


def _getelementptr(op: llvm.GEPOp, t: Translator) -> Step:
    source, result = t.slot(op.ptr), t.slot(op.result)
    dynamic = iter(t.slots(op.ssa_indices))
    scaled: list[tuple[int, int | None, int]] = []  # bytes of an element; its register, or its number
    type: Attribute = op.elem_type
    for position, index in enumerate(op.rawConstantIndices.get_values()):
        if position:  # the first index counts whole elements
            type = type.type if isinstance(type, llvm.LLVMArrayType) else type
        size = byte_size(type)
        if size is None:
            raise SimulationError(Code.SIM_UNSUPPORTED, f"the host has no elements of type {type}", site=site_of(op))
        scaled.append((size, next(dynamic) if index == _DYNAMIC_INDEX else None, int(index)))

    def step(warp: Warp) -> None:
        registers = warp.registers
        distance = sum(size * (number if slot is None else registers[slot]) for size, slot, number in scaled)
        registers[result] = registers[source].moved(distance)

    return step


def _call(world: World) -> Callable[[llvm.CallOp, Translator], Step]:
    def rule(op: llvm.CallOp, t: Translator) -> Step:
        name = "" if op.callee is None else op.callee.string_value()
        declared = SymbolTable.lookup_symbol(op, name) if name else None
        site = site_of(op)
        if name not in FUNCTIONS or not isinstance(declared, llvm.FuncOp) or declared.body.blocks:
            callee = f"@{name}" if name else "a function through a pointer"
            hint = f"it may call {', '.join(FUNCTIONS)}, each declared by an llvm.func without a body, and func.func"
            raise SimulationError(Code.HOST_CALL, f"the host may not call {callee}", hint, site=site)
        function, slots = FUNCTIONS[name], t.slots(op.args)
        types = [operand.type for operand in op.args]
        result = None if op.returned is None else t.slot(op.returned)
        bits = None if op.returned is None else integer_bits(op.returned.type)

        def step(warp: Warp) -> None:
            arguments = [_argument(warp.registers[slot], type) for slot, type in zip(slots, types, strict=True)]
            try:
                returned = function(world, arguments)
            except CallError as error:
                raise SimulationError(error.code, error.message, error.hint, site=site) from None
            except PointerError as error:
                raise SimulationError(Code.HOST_POINTER, f"{name} reads {error}", site=site) from None
            if result is not None:
                warp.registers[result] = returned if bits is None else wrap_signed(returned, bits)

        return step

    return rule


def _argument(value: object, type: Attribute) -> Argument:
    bits = scalar_bits(type) or 0
    return Argument(value, bits, is_float=bits > 0 and integer_bits(type) is None)


def _launch(launcher: Launcher) -> Callable[[LaunchFuncOp, Translator], Step]:
    def rule(op: LaunchFuncOp, t: Translator) -> Step:
        if op.dynamicSharedMemorySize is not None:
            text = "the host cannot run launches with dynamic shared memory"
            raise SimulationError(Code.SIM_UNSUPPORTED, text, site=site_of(op))
        kernel = _kernel(op)
        grid, block, cluster = t.slots(op.grid), t.slots(op.block), t.slots(op.cluster)
        arguments = t.slots(op.kernelOperands)
        types = [operand.type for operand in op.kernelOperands]
        site = site_of(op)
        if op.asyncToken is not None:
            t.constant(op.asyncToken, None)

        def step(warp: Warp) -> None:
            registers = warp.registers
            sizes = _sizes(registers, grid, MAX_GRID, site), _sizes(registers, block, MAX_BLOCK, site)
            try:
                attributes = launch_attributes(tuple(int(registers[slot]) for slot in cluster) or 1)
                config = LaunchConfig(*sizes, 0, attributes).of_kernel(None, non_portable=False)
            except LaunchError as error:  # for the cluster
                raise SimulationError(Code.RUN_LAUNCH, error.message, error.hint, site=site) from None
            launch = KernelLaunch(kernel, config, site)
            launcher(launch, [(registers[slot], type) for slot, type in zip(arguments, types, strict=True)], warp)

        return step

    return rule


def _kernel(op: LaunchFuncOp) -> str:
    """The kernel's symbol, `m::k`. SimulationError for one that is not there, or takes other arguments."""
    name = "::".join([op.kernel.root_reference.data, *(part.data for part in op.kernel.nested_references)])
    kernel = SymbolTable.lookup_symbol(op, op.kernel)
    if not isinstance(kernel, FuncOp) or kernel.kernel is None:
        text = f"the program has no kernel @{name.replace('::', '::@')}"
        raise SimulationError(Code.RUN_KERNEL, text, "a kernel is a gpu.func ... kernel", site=site_of(op))
    given = [operand.type for operand in op.kernelOperands]
    wanted = list(kernel.function_type.inputs)
    if given != wanted:
        lists = [", ".join(map(str, types)) or "nothing" for types in (wanted, given)]
        text = f"@{name.replace('::', '::@')} takes {lists[0]}, but the launch passes {lists[1]}"
        raise SimulationError(Code.RUN_ARGUMENT, text, site=site_of(op))
    return name


def _sizes(registers: list[Any], slots: tuple[int, ...], most: Dim3, site: Site) -> Dim3:
    """The size of a grid or a block. SimulationError (E3105) for one that no GPU launches."""
    x, y, z = (int(registers[slot]) for slot in slots)
    if not all(1 <= size <= limit for size, limit in zip((x, y, z), most, strict=True)):
        subject = "block" if most == MAX_BLOCK else "grid"
        raise SimulationError(
            Code.RUN_LAUNCH, f"the {subject} is {(x, y, z)}", f"sizes are from 1 up to {most}", site=site
        )
    return x, y, z


def _wait(op: gpu.WaitOp, t: Translator) -> None:
    """Nothing is left to wait for: a launch has ended before the host goes on."""
    if op.asyncToken is not None:
        t.constant(op.asyncToken, None)


def host_rules(world: World, launcher: Launcher) -> Rules:
    """The rules beside those that host and device share."""
    return {
        llvm.AddressOfOp: _addressof,
        llvm.ConstantOp: _constant,
        llvm.ZeroOp: _zero,
        llvm.GEPOp: _getelementptr,
        llvm.CallOp: _call(world),
        gpu.LaunchFuncOp: _launch(launcher),
        gpu.WaitOp: _wait,
    }
