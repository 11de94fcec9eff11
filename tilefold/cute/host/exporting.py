# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled host functions as object files for programs in C, which `load_module` reads as well. The numbers that a host
function computes of its arguments are a program in them: a kernel of one thread that stores the numbers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, cast

from xdsl.ir import Attribute, Operation, SSAValue

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.builder.scalars.values import Value
from tilefold.builder.tensors.tensors import Tensor
from tilefold.dialects.tile import TensorType
from tilefold.driver.output import write_files
from tilefold.runtime.compiled.artifact import Build
from tilefold.runtime.options import Cluster, Cooperative, LaunchEvent, ProgrammaticStreamSerialization
from tilefold.tools.export.function_header import function_header
from tilefold.tools.export.function_record import FunctionRecord, LaunchRecord

from ..compiled_kernel import CompiledKernel
from .launching import HostLaunch
from .numbers import HostProgram, stored_number
from .prepared import Recorded
from .streams import StreamSlot

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Exported(Recorded, Protocol):
    """A function for certain arguments, with its launches: see `Variant`."""

    @property
    def steps(self) -> Sequence[HostLaunch | Operation]: ...


def write_function(
    name: str,
    path: Path,
    variant: Exported,
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

    made = make_object(host.llvm(), f"{name}_data", data)
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
    """The number that the program stores for an integer on which a function depends."""
    stored = stored_number(type, number)
    return (
        _refuse(name, "depends on the number of a float", "decide with integers, or in the kernel")
        if stored is None
        else stored
    )


def _refuse(name: str, problem: str, hint: str) -> NoReturn:
    raise TilefoldError(Code.BAD_ARGUMENT, f"the function '{name}' is not exported: it {problem}", hint)
