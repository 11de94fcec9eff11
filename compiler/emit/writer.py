# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text while it grows: one `ModuleWriter` for the file, one `FunctionWriter` for each kernel."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar, cast

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...base.errors import Code
from ...base.spaces import CMEM
from ...base.target import Target
from ...dialects.arith.integer_range import Range
from ...passes.analysis.wgmma_fragments import Fragment
from ...passes.errors import LoweringError
from .lineinfo import LineInfo
from .types import c_string, llvm_type

OpT = TypeVar("OpT", bound=Operation)
DATA_LAYOUT = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
"""NVPTX's data layout with 32-bit shared-memory addresses (LLVM's option --nvptx-short-ptr)."""

Rule = Callable[["FunctionWriter", Operation], None]
"""Writes one operation."""
_LOWER_FIRST = "lower the program to stage 'instr' first; for the dialect 'llvm', run one-shot-convert-to-llvm before"


def rule(kind: type[OpT], write: Callable[["FunctionWriter", OpT], None]) -> tuple[type[Operation], Rule]:
    """An entry of the rule table: `write` is only ever called with operations of class `kind`."""
    return kind, cast(Rule, write)


def call_rule(function: str) -> Rule:
    """The rule of an operation that is the call of a function, such as `@llvm.nvvm.nanosleep`."""
    return lambda w, op: w.call(op, function)


class ModuleWriter:
    """The parts of the text that belong to no single function: globals and metadata."""

    def __init__(
        self,
        target: Target,
        rule_of: Callable[[type[Operation]], Rule | None],
        lineinfo: bool = False,
        assertions: bool = False,
    ) -> None:
        self.target = target
        self.rule_of = rule_of
        self.assertions = assertions
        self.declarations: dict[str, str] = {}  # of functions, by their names
        self.globals: list[str] = []
        self.functions: list[str] = []
        self.metadata: list[str] = []
        self.lines = LineInfo(self.add_metadata) if lineinfo else None
        self._hints: dict[int, str] = {}
        self._strings = 0

    def add_metadata(self, text: str) -> str:
        """Adds a metadata node and returns its reference, such as `!3`."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = {text}")
        return name

    def loop(self, unroll: int) -> str:
        """Adds the identity of a loop, whose iterations LLVM joins in groups of this size, 0 for all. Groups of 1 tell
        the assembler, too, that the loop must stay as it is.
        """
        if unroll not in self._hints:
            hint = {0: 'full"', 1: 'disable"'}.get(unroll, f'count", i32 {unroll}')
            self._hints[unroll] = self.add_metadata(f'!{{!"llvm.loop.unroll.{hint}}}')
        return self.add_metadata(f"distinct !{{!{len(self.metadata)}, {self._hints[unroll]}}}")

    def string(self, kernel: str, text: str) -> str:
        """Adds a constant character array for a kernel and returns its address, for a function of the device's
        library to print.
        """
        symbol = f"{kernel}$text{self._strings}"
        self._strings += 1
        array, size = c_string(text)
        self.globals.append(
            f"@{symbol} = private unnamed_addr addrspace({CMEM.llvm}) constant [{size} x i8] {array}, align 1"
        )
        return f"ptr addrspacecast ({CMEM.llvm_pointer} @{symbol} to ptr)"

    def add_function(self, head: str, body: "FunctionWriter") -> None:
        """Adds a function; its body begins in the block `entry`."""
        self.functions.append("\n".join((f"{head} {{", "entry:", *body.allocas, *body.lines, "}")))

    def text(self) -> str:
        """The whole file."""
        named = self.lines.named_metadata() if self.lines is not None else []
        head = [
            f'target datalayout = "{DATA_LAYOUT}"',
            'target triple = "nvptx64-nvidia-cuda"',
            *self.declarations.values(),
            *self.globals,
        ]
        return "\n".join((*head, *self.functions, *named, *self.metadata, ""))


class FunctionWriter:
    """The body of one function. Values are numbered in the order of their definition, so that the text is
    reproducible. `registers` are the ranges of special registers in a kernel, `shared_bytes` those of its block."""

    def __init__(
        self,
        module: ModuleWriter,
        kernel: str,
        registers: Mapping[str, Range] = MappingProxyType({}),
        shared_bytes: int = 0,
    ) -> None:
        self.module = module
        self.kernel = kernel
        self.registers = registers
        self.shared_bytes = shared_bytes
        self.fenced_roundings: frozenset[type[Attribute]] = frozenset()  # the types to which `.convert` fences them
        self.divides_inline = False  # without calls in machine code
        self.joined_loads: frozenset[Operation] = frozenset()  # which are frozen
        self.tied: Mapping[Operation, Sequence[Fragment]] = {}  # to the fences and waits of warpgroups
        self.labels: dict[Block, str] = {}  # of a function whose blocks branch to one another
        self.scope = ""  # the debug-information scope, where line information is written
        self.label = "entry"
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.fragments = 0  # how many are written; each is named by its number among them
        self._names: dict[SSAValue, str] = {}
        self._count = 0
        self._suffix = ""

    def fresh(self, prefix: str = "%v") -> str:
        """A name that no other value or block of this function has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, value: SSAValue, text: str) -> None:
        """Writes the value as `text` from now on: a name, or a constant."""
        self._names[value] = text

    def has(self, value: SSAValue) -> bool:
        """Whether a value has been defined."""
        return value in self._names

    def ref(self, value: SSAValue) -> str:
        """The name or constant of a value, without its type."""
        return self._names[value]

    def type(self, value: SSAValue) -> str:
        """The LLVM type of a value."""
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        assert op is not None, "a block of a kernel has a parent"
        return llvm_type(value.type, op)

    def typed(self, value: SSAValue) -> str:
        """A value with its type, as an operand list wants it."""
        return f"{self.type(value)} {self._names[value]}"

    def emit(self, text: str) -> None:
        """Appends one instruction."""
        self.lines.append(f"  {text}{self._suffix}")

    def temp(self, text: str) -> str:
        """Appends an instruction whose result has no counterpart in the kernel, and returns the result's name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}{self._suffix}")
        return name

    def define(self, result: SSAValue, text: str) -> None:
        """Appends the instruction that computes an operation's result, under the name that it has been given, if so."""
        name = self._names.get(result)
        if name is None:
            name = self._names[result] = self.fresh()
        self.lines.append(f"  {name} = {text}{self._suffix}")

    def call(self, op: Operation, function: str, flags: str = "") -> None:
        """Appends the call of a function, such as `@llvm.nvvm.barrier0`, with an operation's operands and result."""
        arguments = ", ".join(self.typed(operand) for operand in op.operands)
        if op.results:
            self.define(op.results[0], f"call{flags} {self.type(op.results[0])} {function}({arguments})")
        else:
            self.emit(f"call{flags} void {function}({arguments})")

    def alloca(self, type: str, align: int, name: str = "") -> str:
        """Reserves stack memory of the function, once, whatever loop asks for it; returns the pointer's name."""
        name = name or self.fresh()
        self.allocas.append(f"  {name} = alloca {type}, align {align}")
        return name

    def start_block(self, label: str) -> None:
        """Begins a basic block; the previous one must have been ended by a branch."""
        self.label = label
        self.lines.append(f"{label}:")

    def reserve(self) -> int:
        """Leaves room for a phi, whose last operand is not known yet; `fill` completes it."""
        self.lines.append("")
        return len(self.lines) - 1

    def fill(self, slot: int, text: str) -> None:
        """Writes the instruction that `reserve` left room for."""
        self.lines[slot] = f"  {text}{self._suffix}"

    def write_block(self, block: Block) -> None:
        """Writes all operations of a block, each by its rule. LoweringError for one without a rule."""
        rule_of = self.module.rule_of
        lines = self.module.lines
        outer = self._suffix
        for op in block.ops:
            write = rule_of(op.__class__)
            if write is None:
                hint = "" if op.dialect_name() == "llvm" else _LOWER_FIRST
                raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' has no translation to PTX", op, hint)
            if lines is not None:
                self._suffix = lines.suffix(op, self.scope)
            write(self, op)
        self._suffix = outer
