# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs emitted LLVM IR on the CPU: what a kernel means, not only how it is spelt.

The text goes through LLVM's passes as on the way to PTX, so what they change is seen; then it is made for the processor
at hand (see `.cpu_text`). Blocks run one after the other, and so do the threads of a block, each up to a barrier.
"""

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.base.held_signals import holding_signals
from tilefold.base.target import Target
from tilefold.compiler.machine.nvptx import optimise

from tests.emit.cpu_library import REGISTERS
from tests.emit.cpu_text import NotOnCpu, Retargeted, retargeted

__all__ = ["Argument", "NotOnCpu", "apply", "run_kernel", "run_on_cpu"]

Argument = NDArray[Any] | np.generic | int | float
"""What a kernel takes: an array, whose address it gets, or a number of the parameter's type."""

SM80 = Target("sm_80")
_DYNAMIC_BYTES = 227 * 1024
_UNWRITTEN = 0xA5  # of each byte of shared memory when a block begins
_WITHOUT = ("avx512bf16", "avxneconvert", "avx512fp16")  # processors round bf16 in ways of their own
_FILL = 64  # bytes around an array, which no kernel may write
_FORMATS: dict[str, Any] = {"half": np.float16, "float": np.float32, "double": np.float64}


@cache
def _host() -> tuple[Any, Any, str, str]:
    """llvmlite, and the triple, name and features of the processor at hand."""
    llvm: Any = import_module("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = llvm.get_host_cpu_features()
    features |= {name: False for name in _WITHOUT if name in features}
    text = ",".join(f"{'+' if there else '-'}{name}" for name, there in sorted(features.items()))
    return llvm, llvm.Target.from_default_triple(), llvm.get_host_cpu_name(), text


def run_on_cpu(llvm_ir: str, arrays: list[NDArray[Any]]) -> None:
    """Executes `@k` once, for one thread; its parameters are pointers to the arrays."""
    run_kernel(llvm_ir, "k", (1, 1, 1), (1, 1, 1), arrays)


_LINES = re.compile(r",? !dbg !\d+")
"""The lines of the source, which the text for a CPU has no use for."""


@holding_signals
def run_kernel(
    llvm_ir: str,
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[Argument],
    *,
    target: Target = SM80,
) -> None:
    """Executes a kernel of the emission's text for every thread of a grid; arrays are changed in place.

    Arguments are in the order of the kernel's parameters. What is printed goes nowhere. NotOnCpu names an instruction
    that does not run here: those on matrices and between the lanes of a warp. AssertionError where threads wait at
    different barriers, or memory around an array is written; reads out of bounds are not found.
    """
    module = optimise(llvm_ir, target)
    parameters = [(str(each.type), str(each.name)) for each in module.get_function(name).arguments]
    text = _LINES.sub("", str(module))
    code = retargeted(text, name, parameters, _DYNAMIC_BYTES)
    module.close()
    copies = [_Guarded.of(each) if isinstance(each, np.ndarray) else each for each in arguments]
    assert len(copies) == len(parameters), f"{name} takes {len(parameters)} arguments"
    slots = np.zeros((max(len(parameters), 1), 8), np.uint8)
    for slot, argument, (type, _) in zip(slots, copies, parameters, strict=False):
        value = np.uint64(argument.address) if isinstance(argument, _Guarded) else _number(argument, type)
        bits = np.atleast_1d(value).view(np.uint8)
        slot[: bits.size] = bits
    _run(code, grid, block, slots)
    for copy in copies:
        if isinstance(copy, _Guarded):
            copy.give_back()


def _number(value: Any, type: str) -> Any:
    if type == "bfloat":
        return np.uint16(np.asarray(value).view(np.uint16))
    if type in _FORMATS:
        return _FORMATS[type](value)
    return np.uint64(int(value) % 2**64)


@dataclass(frozen=True)
class _Guarded:
    """A copy of an array between bytes that must stay as they are, aligned as the driver aligns memory."""

    original: NDArray[Any]
    memory: NDArray[np.uint8]
    at: int

    @classmethod
    def of(cls, array: NDArray[Any]) -> "_Guarded":
        memory = np.full(array.nbytes + 256 + 2 * _FILL, _UNWRITTEN, np.uint8)
        at = -(memory.ctypes.data + _FILL) % 256 + _FILL
        assert array.flags.c_contiguous, "a kernel's arrays are storage"
        memory[at : at + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        return cls(array, memory, at)

    @property
    def address(self) -> int:
        return self.memory.ctypes.data + self.at

    def give_back(self) -> None:
        end = self.at + self.original.nbytes
        around = np.concatenate((self.memory[: self.at], self.memory[end:]))
        assert (around == _UNWRITTEN).all(), "the kernel wrote memory beside its array"
        self.original.reshape(-1).view(np.uint8)[:] = self.memory[self.at : end]


def _run(code: Retargeted, grid: tuple[int, int, int], block: tuple[int, int, int], slots: NDArray[np.uint8]) -> None:
    llvm, triple, name, features = _host()
    machine = triple.create_target_machine(cpu=name, features=features, opt=1)
    module = llvm.parse_assembly(code.text, llvm.create_context())
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    builder.getModulePassManager().run(module, builder)  # splits the coroutines, and changes nothing else
    engine = llvm.create_mcjit_compiler(module, machine)  # which takes the module and the machine
    try:
        engine.finalize_object()
        _Launch(engine, code, block).run(grid, slots)
    finally:
        engine.close()


class _Launch:
    """A loaded kernel, and the registers that tell a thread which one it is."""

    def __init__(self, engine: Any, code: Retargeted, block: tuple[int, int, int]) -> None:
        def function(name: str, result: Any) -> Any:
            return ctypes.CFUNCTYPE(result, ctypes.c_void_p)(engine.get_function_address(name))

        self.start, self.resume = function("x.start", ctypes.c_void_p), function("x.resume", ctypes.c_bool)
        address = engine.get_global_value_address("x.registers")
        self.registers = (ctypes.c_uint32 * len(REGISTERS)).from_address(address)
        self.waits_at = ctypes.c_uint32.from_address(engine.get_global_value_address("x.waits.at"))
        self.shared: Any = None
        if code.shared is not None:
            address = engine.get_global_value_address(code.shared)
            self.shared = (ctypes.c_uint8 * code.shared_bytes).from_address(address)
        self.threads = [(x, y, z) for z, y, x in product(*map(range, reversed(block)))]
        self._set("ntid", block)

    def _set(self, name: str, values: tuple[int, int, int]) -> None:
        first = REGISTERS.index(f"{name}.x")
        self.registers[first : first + 3] = values

    def run(self, grid: tuple[int, int, int], slots: NDArray[np.uint8]) -> None:
        self._set("nctaid", grid)
        for z, y, x in product(*map(range, reversed(grid))):
            self._set("ctaid", (x, y, z))
            if self.shared is not None:
                ctypes.memset(self.shared, _UNWRITTEN, len(self.shared))
            self._block(slots.ctypes.data)

    def _block(self, arguments: int) -> None:
        waiting: list[tuple[tuple[int, int, int], int]] = []
        barriers: set[int] = set()
        for thread in self.threads:
            self._set("tid", thread)
            if handle := self.start(arguments):
                waiting.append((thread, handle))
                barriers.add(self.waits_at.value)
        while waiting:
            assert len(barriers) == 1, f"threads wait at different barriers: {sorted(barriers)}"
            barriers.clear()
            woken, waiting = waiting, []
            for thread, handle in woken:
                self._set("tid", thread)
                if not self.resume(handle):
                    waiting.append((thread, handle))
                    barriers.add(self.waits_at.value)


def apply(op_text: str, types: list[str], result: str, operands: list[Any]) -> Any:
    """The value of an operation `op_text`, written with {0}, {1}, ... for its operands, of NumPy scalars."""
    from tests.emit.harness import kernel, llvm_of

    args = ", ".join(f"%a{i}: !ptx.ptr<global> align 1" for i in range(len(types) + 1))
    loads = [f"%x{i} = ptx.ld %a{i} align 8 : !ptx.ptr<global> -> {type}" for i, type in enumerate(types)]
    names = [f"%x{i}" for i in range(len(types))]
    store = f"ptx.st %y, %a{len(types)} align 8 : {result}, !ptx.ptr<global>"
    body = "\n".join((*loads, f"%y = {op_text.format(*names)}", store))
    kinds = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16}
    kinds |= {"f32": np.float32, "f64": np.float64}
    arrays = [np.array([value], kinds[type]) for value, type in zip(operands, types, strict=True)]
    out = np.zeros(1, kinds[result])
    run_on_cpu(llvm_of(kernel(body, args, threads="1")), [*arrays, out])
    return out[0]
