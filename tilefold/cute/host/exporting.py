# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled host functions as object files for programs in C, which `load_module` reads as well. The numbers that a host
function computes of its arguments are a program in them: a kernel of one thread that stores the numbers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntAttr, IntegerType, ModuleOp, StringAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import GMEM
from tilefold.base.target import Target
from tilefold.builder.scalars.casts import integer_attribute
from tilefold.builder.scalars.values import Value
from tilefold.builder.tensors.tensors import Tensor
from tilefold.builder.trace import MODULE
from tilefold.compiler.frontend.program import print_program
from tilefold.compiler.frontend.source import Source
from tilefold.dialects.cute import CoordAttr, LayoutAttr
from tilefold.dialects.gpu import ModuleOp as GpuModuleOp
from tilefold.dialects.kernel import LaunchBounds
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import ReturnOp, StoreOp, TensorType, TileKernelOp
from tilefold.driver.lowering import load
from tilefold.driver.output import write_files
from tilefold.layout.algebra.core import Layout
from tilefold.runtime.compiled.artifact import Build
from tilefold.runtime.options import Cluster, Cooperative, LaunchEvent, ProgrammaticStreamSerialization
from tilefold.tools.export.function_header import function_header
from tilefold.tools.export.function_record import FunctionRecord, LaunchRecord

from ..compiled_kernel import CompiledKernel
from .launching import HostLaunch
from .streams import StreamSlot


@dataclass
class HostProgram:
    """The requested numbers of the host function `name`, whose arguments are `slots`; its `constants` are
    known.
    """

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

    def _needed(self) -> Iterator[Operation]:
        """The operations of the host that compute the numbers, each after those that it needs."""
        pending = [value.owner for value in reversed(self.values) if isinstance(value, SSAValue)]
        done = set[Operation]()
        while pending:
            op = pending[-1]
            more = [x.owner for x in op.operands if x.owner not in done] if isinstance(op, Operation) else []
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


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ANY = Target("sm_80")
"""The target for the text of a kernel that runs on the host."""


class Recorded(Protocol):
    """A function for certain arguments: see `Variant`."""

    @property
    def steps(self) -> Sequence[HostLaunch | Operation]: ...

    @property
    def guards(self) -> Mapping[SSAValue, int | float | bool]: ...

    @property
    def constants(self) -> Mapping[SSAValue, int | float | bool]: ...

    @property
    def slots(self) -> Mapping[str, SSAValue]: ...


def write_function(
    name: str,
    path: Path,
    variant: Recorded,
    arguments: Mapping[str, object],
    symbols: Iterable[Iterable[tuple[str, int]]],
    arch: str | None,
    tvm_ffi: bool = False,
) -> None:
    """Writes a host function, as `name`, to an object file, and its header beside that. `arguments` are those that it
    was compiled for, as it saw them, and `symbols` the places in them that are equal. Its kernels are machine code for
    `arch`, or where that is None PTX for the first target that has all of them. With `tvm_ffi` the object file also has
    the function `__tvm_ffi_NAME`, which takes a C compiler.

    TilefoldError (E0213) for a name that C does not take, for a function that does more than to launch kernels, and for
    arguments that C does not pass; E4002 where the files cannot be written.
    """
    if _NAME.fullmatch(name) is None:
        _refuse(name, "is not a name in C", "give the function another one: letters, digits and underscores")
    steps = [step for step in variant.steps if isinstance(step, HostLaunch)]
    if len(steps) < len(variant.steps):
        _refuse(name, "prints, or checks an assertion, on the host", "leave that to its kernels or its callers")
    host = HostProgram(name, variant.slots, variant.constants)
    slots = {ssa: slot for slot, ssa in variant.slots.items()}
    leaves = [leaf for key, value in arguments.items() for leaf in _leaves(name, key, value)]
    kernels = list(dict.fromkeys(step.built for step in steps))
    guards = [(host.place_of(ssa), _integer(name, ssa.type, number)) for ssa, number in variant.guards.items()]
    launches = [_launch(name, host, step, slots, kernels.index(step.built)) for step in steps]
    text = host.text()
    record = FunctionRecord(
        name,
        parameters=tuple(arguments),
        optional=tuple(key for key, value in arguments.items() if value is None),
        streams=tuple(leaf.name for leaf in leaves if isinstance(leaf, StreamSlot)),
        dtypes={slots[leaf.ssa]: leaf.dtype.name for leaf in leaves if isinstance(leaf, Value)},
        host=text,
        guards=tuple(guards),
        symbols=tuple(tuple(places) for places in symbols),
        launches=tuple(launches),
        texts=tuple(kernel.text for kernel in kernels),
        builds=tuple(_build(kernel, arch) for kernel in kernels),
    )
    data, codes = record.to_bytes()
    from tilefold.compiler.machine.host_object import make_object

    made = make_object(load(Source(name, text, text)).llvm(_ANY, lines=False), f"{name}_data", data)
    types: dict[str, Attribute | None] = {
        leaf.name if isinstance(leaf, StreamSlot) else slots[leaf.ssa]: (
            None if isinstance(leaf, StreamSlot) else leaf.ssa.type
        )
        for leaf in leaves
    }
    if tvm_ffi:
        from tilefold.compiler.machine.host_object import join_with_c
        from tilefold.tools.export.tvm_ffi import tvm_ffi_source

        made = join_with_c(made, tvm_ffi_source(record, types, len(host.values), codes))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TilefoldError(Code.CLI_WRITE, f"{path.parent}: {error.strerror}") from None
    heading = function_header(record, types, len(host.values), codes)
    write_files({str(path): made, str(path.with_suffix(".h")): heading})


def _leaves(name: str, argument: str, value: object) -> Iterator[Tensor | Value | StreamSlot]:
    """The tensors, numbers and streams that are an argument, or in its tuples."""
    if isinstance(value, Tensor | Value | StreamSlot):
        yield value
    elif isinstance(value, tuple):
        for part in cast("tuple[object, ...]", value):
            yield from _leaves(name, argument, part)
    elif value is not None:
        problem = f"takes '{argument}', a {type(value).__name__}, which C does not pass"
        _refuse(name, problem, "pass tensors, numbers, streams, tuples of them, and cute.Constexpr")


def _launch(name: str, host: HostProgram, step: HostLaunch, slots: Mapping[SSAValue, str], kernel: int) -> LaunchRecord:
    attributes, stream = step.request.attributes, step.request.stream
    if any(isinstance(attribute, LaunchEvent) for attribute in attributes):
        _refuse(name, "records an event", "record events in the program that calls it")
    if stream is not None and not isinstance(stream, StreamSlot):
        _refuse(name, "launches in a stream that is not its argument", "make the stream an argument")
    cluster = next((attribute.size for attribute in attributes if isinstance(attribute, Cluster)), None)
    x, y, z = [*step.grid, 1, 1][:3]
    return LaunchRecord(
        kernel,
        {
            key: slots[ssa] if isinstance(ssa.type, TensorType) else host.place_of(ssa)
            for key, ssa in step.values.items()
        },
        (host.place_of(x), host.place_of(y), host.place_of(z)),
        None if stream is None else stream.name,
        cluster,
        any(isinstance(attribute, ProgrammaticStreamSerialization) for attribute in attributes),
        any(isinstance(attribute, Cooperative) for attribute in attributes),
    )


def _build(kernel: CompiledKernel, arch: str | None) -> Build:
    """A kernel as machine code for a target, or as PTX."""
    program = kernel.program
    if arch is not None:
        made = program.machine_build(Target(arch))
        return Build("", made.cubin, "", made.artifacts)
    artifacts = program.ptx_artifacts(program.simulated_target("instr"))
    return Build(str(artifacts[0].code), b"", "", artifacts)


def _integer(name: str, type: Attribute, number: float) -> int:
    """The 64 bits of an integer on which a function depends, as a number with a sign."""
    if not isinstance(type, IntegerType | IndexType):
        _refuse(name, "depends on the number of a float", "decide with integers, or in the kernel")
    bits = type.bitwidth if isinstance(type, IntegerType) else 64
    low = int(number) & ((1 << bits) - 1)
    return low - (1 << bits) if bits > 1 and low >> (bits - 1) else low


def _refuse(name: str, problem: str, hint: str) -> NoReturn:
    raise TilefoldError(Code.BAD_ARGUMENT, f"the function '{name}' is not exported: it {problem}", hint)
