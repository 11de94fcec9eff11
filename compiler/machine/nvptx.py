# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text to PTX by LLVM's NVPTX back end, through llvmlite.

llvmlite is imported when the first kernel is compiled. LLVM ends the process on an instruction that the
target cannot select; the output of `compiler.emit` has been checked operation by operation against the
target, and `compile_isolated` keeps the process safe where the text comes from elsewhere.
"""

import os
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from functools import cache, partial
from importlib import import_module
from threading import Lock, Thread
from typing import Any

from ...base.errors import Code, TilefoldError
from ...base.held_signals import holding_signals
from ...base.limits import check_deadline, seconds_left
from ...base.target import Target
from ..emit import DATA_LAYOUT

_TRIPLE = "nvptx64-nvidia-cuda"
_OPTIONS = (
    "--nvptx-short-ptr",  # shared-memory addresses are 32-bit integers
    "--disable-nvptx-load-store-vectorizer",  # the width of each access is that of stage `instr`
    "--nvptx-no-f32x2",  # otherwise sm_100 moves pairs of f32 as b64, and an access changes its form
)
TIMEOUT = 60.0
"""Seconds that LLVM may take in a process of its own."""
MAX_SUMS = 500
"""The sums, products and addresses of a function, after LLVM's passes, up to which they are rewritten by each other.

The back end's "straight line strength reduction" compares each with all before it that share an operand, and subtracts
them as polynomials (LLVM 22; llvm-project, pull request 217143): 400 take up to 4 seconds, 800 up to 22. Functions with
more are compiled without this pass, in a process of their own, since LLVM turns passes off for a whole process. The
kernels of the examples have at most 400.
"""
_WITHOUT_REWRITING = "--opt-disable=slsr"
_COMPILE, _TRANSLATE = "compile", "translate"
"""The tasks of a process: on LLVM IR as it is emitted, and as LLVM's passes leave it."""
_SUMS = (" = add ", " = mul ", " = getelementptr ")
STARTING = Lock()
"""Held where `bindings` is called, as LLVM ends the process where an option is set twice."""
_REFUSED = 3  # the exit status of the other process where LLVM refused the text
_CALL = re.compile(
    r"^(\t[{}]) // callseq \d+(?:, \d+)?$", re.MULTILINE
)  # numbered through all that the process compiles
_LABELS = re.compile(
    r"^\$L__(?:func_begin|func_end|tmp)\d+:\n|^\t\.section\t\.debug_macinfo\t\{\t\}\n", re.MULTILINE
)  # for debug sections, which are not written
_VOLATILE = re.compile(r"^(\t(?:@!?%p\d+ )?(?:ld|st))\.volatile", re.MULTILINE)


_UNDEFINED = re.compile(r"^ *store volatile (?:<[^>]*>|\S+) (?:undef|poison), .*\n", re.MULTILINE)
"""Stores of values that the program never defined, such as an element beyond the end of a fragment. LLVM leaves out
those that are not volatile, which public programs rely on; here all stores are volatile until the PTX is there. The
simulator reports the read (E3202), or the store at stage `ptx` (E3204), whose text keeps these stores.
"""


class LlvmError(TilefoldError):
    """LLVM refused its input, did not survive it, or took too long. `llvm_ir` is the text it was given."""

    def __init__(
        self,
        code: Code,
        message: str,
        llvm_ir: str,
        hint: str = "please report this, with the text that --emit=llvm prints",
    ) -> None:
        super().__init__(code, message, hint)
        self.llvm_ir = llvm_ir


@cache
def bindings() -> Any:
    """llvmlite (which has no type stubs), with LLVM's options set before its first target machine is made.

    The options belong to the whole process. Its callers hold signals back.
    """
    llvm = import_module("llvmlite.binding")
    for option in _OPTIONS:
        llvm.set_option("tilefold", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@cache
def _machine_of(target: Target) -> Any:
    machine = (
        bindings()
        .Target.from_triple(_TRIPLE)
        .create_target_machine(cpu=target.arch, features=f"+ptx{target.ptx_version}", opt=3)
    )
    assert str(machine.target_data) == DATA_LAYOUT, "llvmlite's LLVM has a different data layout for NVPTX"
    return machine


def optimise(llvm_ir: str, target: Target) -> Any:
    """LLVM IR text as a module of llvmlite after the passes that `compile_llvm` runs. Its callers hold signals back.

    Errors are those of `compile_llvm`.
    """
    with STARTING:
        llvm, machine = bindings(), _machine_of(target)
    module = _parse(llvm, llvm_ir)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = False
    tuning.loop_interleaving = False
    tuning.loop_unrolling = False  # but as a loop's hint asks
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


@holding_signals
def stack_names(llvm_ir: str, target: Target) -> dict[str, list[str]]:
    """The names of the stack memory that each function has after the passes of `compile_llvm`, which make registers of
    the rest, and parts of some. Errors are those of `compile_llvm`.
    """
    with optimise(llvm_ir, target) as module:
        return {
            function.name: [op.name for block in function.blocks for op in block.instructions if op.opcode == "alloca"]
            for function in module.functions
        }


def _parse(llvm: Any, llvm_ir: str) -> Any:
    try:
        return llvm.parse_assembly(llvm_ir, llvm.create_context())
    except RuntimeError as error:
        cause = error.with_traceback(None)  # whose frames keep the context
        raise LlvmError(Code.LLVM_REFUSED, f"LLVM rejected the kernel's text: {error}", llvm_ir) from cause


def compile_llvm(llvm_ir: str, target: Target, timeout: float = TIMEOUT, *, keeps_undefined: bool = False) -> str:
    """Optimises LLVM IR text and returns PTX. The same text gives the same PTX, in every process.

    Safe to call from several threads. A function of more than MAX_SUMS is translated in a process of its own, which may
    take `timeout` seconds. With `keeps_undefined` the PTX has the stores of `_UNDEFINED`. LlvmError if LLVM's parser or
    verifier refuses the text; on text that is not from `compiler.emit` LLVM may end the process.
    """
    check_deadline("before LLVM")
    text, done = _compile_here(llvm_ir, target, keeps_undefined)
    return text if done else _in_process(_TRANSLATE, text, llvm_ir, target, timeout)


@holding_signals
def _compile_here(llvm_ir: str, target: Target, keeps_undefined: bool = False) -> tuple[str, bool]:
    """The PTX; or False, and the text after LLVM's passes, if it has too many sums."""
    with optimise(llvm_ir, target) as module:
        optimised = str(module)
        defined = optimised if keeps_undefined else _UNDEFINED.sub("", optimised)
        if _sums(defined) > MAX_SUMS:
            return defined, False
        if defined == optimised:
            return _ptx_of(module, target), True
    with _parse(bindings(), defined) as module:
        return _ptx_of(module, target), True


def _sums(llvm_ir: str) -> int:
    """The sums, products and addresses of the function that has the most of them."""
    return max(sum(map(function.count, _SUMS)) for function in llvm_ir.split("\ndefine "))


def _ptx_of(module: object, target: Target) -> str:
    ptx = _machine_of(target).emit_assembly(module)
    # `volatile` kept LLVM from changing the accesses; PTX's `.volatile` would change how they are cached.
    return wrap_integers(_LABELS.sub("", _CALL.sub(r"\1", _VOLATILE.sub(r"\1", str(ptx)))))


@holding_signals
def bitcode(llvm_ir: str) -> bytes:
    """LLVM IR text as bitcode, not optimised. LlvmError if LLVM's parser or verifier refuses the text."""
    with STARTING:
        llvm = bindings()
    return bytes(_parse(llvm, llvm_ir).as_bitcode())


def compile_isolated(llvm_ir: str, target: Target, timeout: float = TIMEOUT) -> str:
    """Like `compile_llvm`, in a process of its own: for text that may crash LLVM or keep it busy.

    `timeout` is in seconds. LlvmError if LLVM refuses the text, ends the process or takes longer.
    """
    return _in_process(_COMPILE, llvm_ir, llvm_ir, target, timeout)


def _in_process(task: str, text: str, llvm_ir: str, target: Target, timeout: float) -> str:
    """The PTX of a text by `child_main` in another process; errors have the text `llvm_ir`. TimeLimitError where the
    command has less time than `timeout`, and it is over.
    """
    timeout = seconds_left(timeout)
    main = f"import sys; sys.path[:] = {sys.path!r}\nfrom tilefold.compiler.machine import nvptx\nnvptx.child_main()"
    try:
        process = run_child([sys.executable, "-c", main, task, target.arch], text.encode(), timeout)
    except subprocess.TimeoutExpired as error:
        check_deadline("in LLVM")
        message = f"LLVM was stopped after {timeout:g} seconds"
        raise LlvmError(Code.LLVM_TIMEOUT, message, llvm_ir, "unroll less, or split the kernel") from error
    words = process.stderr.decode("utf-8", "replace").strip()
    if process.returncode == _REFUSED:
        raise LlvmError(Code.LLVM_REFUSED, words, llvm_ir)
    if process.returncode != 0:
        last = words.splitlines()[-1] if words else "no message"
        raise LlvmError(Code.LLVM_CRASHED, f"LLVM ended with status {process.returncode}: {last}", llvm_ir)
    return process.stdout.decode()


def child_main() -> None:
    """The other process: a task and a target as its arguments, LLVM IR as its data, PTX on standard output."""
    task, target, text = sys.argv[1], Target(sys.argv[2]), read_task().decode()
    try:
        text, done = _compile_here(text, target) if task == _COMPILE else (text, False)
        ptx = text if done else _translate_without_rewriting(text, target)
    except LlvmError as error:
        sys.stderr.write(error.message)
        sys.exit(_REFUSED)
    sys.stdout.buffer.write(ptx.encode())


def _translate_without_rewriting(optimised: str, target: Target) -> str:
    """The PTX of a text with many sums. All that this process compiles from here on lacks the pass."""
    llvm = bindings()
    llvm.set_option("tilefold", _WITHOUT_REWRITING)
    _machine_of(target)
    with _parse(llvm, optimised) as module:
        return _ptx_of(module, target)


ABANDONED = 4
"""The exit status of a process whose parent has ended."""


def run_child(command: Sequence[str], data: bytes, timeout: float) -> "subprocess.CompletedProcess[bytes]":
    """Runs a process that calls `read_task`, and returns its status, output and messages.

    `timeout` is in seconds. subprocess.TimeoutExpired if it takes longer; it is ended then, and by any exception.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        open_end = os.dup(process.stdin.fileno())  # `communicate` closes the other one
        try:
            out, said = process.communicate(b"%d\n%s" % (len(data), data), timeout)
        except BaseException:
            process.kill()
            raise
        finally:
            os.close(open_end)
    return subprocess.CompletedProcess(command, process.returncode, out, said)


def read_task() -> bytes:
    """The data that `run_child` was given. From here on this process ends when the one that calls `run_child` does."""
    data = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    Thread(target=_watch_parent, daemon=True).start()
    return data


def _watch_parent() -> None:
    """Waits for the end of standard input. LLVM lets other threads run."""
    os.read(0, 1)
    os._exit(ABANDONED)


_INSTRUCTION = re.compile(r"^\t(neg\.s(?:16|32)|abs\.s(?:16|32|64)) +\t?(%\w+), (%\w+);$", re.MULTILINE)
_EXTREME = re.compile(r"^\t(?:max|min)\.s32 +\t?%\w+, (%\w+), ([^;]+);$", re.MULTILINE)
_INLINE = re.compile(r"(\t// begin inline asm\n.*?\t// end inline asm$)", re.DOTALL | re.MULTILINE)
"""PTX that the program has as text, which stays as it is."""


def wrap_integers(ptx: str) -> str:
    """PTX from LLVM with these instructions replaced."""
    if _INSTRUCTION.search(ptx) is None:
        return ptx
    extreme = {operand for both in _EXTREME.findall(ptx) for operand in both}
    parts = _INLINE.split(ptx)
    parts[::2] = [_INSTRUCTION.sub(partial(_replace, extreme), part) for part in parts[::2]]
    return "".join(parts)


def _replace(extreme: Collection[str], match: re.Match[str]) -> str:
    """The text for an instruction; `extreme` are the operands of `max.s32` and `min.s32`."""
    name, result, operand = match.groups()
    operation, bits = name.split(".s")
    if operation == "neg":
        return match[0] if name == "neg.s32" and result not in extreme else "\n".join(_negate(result, operand, bits))
    lines = (
        "\t{",
        f"\t.reg .b{bits} \t%negated;",
        *_negate("%negated", operand, bits),
        f"\tmax.s{bits} \t{result}, {operand}, %negated;",
        "\t}",
    )
    return "\n".join(lines)


def _negate(result: str, operand: str, bits: str) -> tuple[str, str]:
    return f"\tnot.b{bits} \t{result}, {operand};", f"\tadd.s{bits} \t{result}, {result}, 1;"
