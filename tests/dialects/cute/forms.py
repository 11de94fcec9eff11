# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One case of an operation as whole programs, which differ in where the integers of its operands come from.

In a case a leaf is a number: `4` is static in every form, `4?` (or `4?{i64}`) is dynamic where the form allows it. So
`layout (4?,8):(1,4?)` is `!cute.layout<"(4,8):(1,4)">` in the static form and `!cute.layout<"(?,8):(1,?)">` elsewhere.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, cast

from tilefold.compiler.pipeline import make_context
from tilefold.dialects.cute import types
from tilefold.dialects.cute.constructors import GatherOp, StaticOp
from tilefold.dialects.cute.op import AlgebraOp, CuteOp, Signature
from tilefold.dialects.cute.types import CuteType
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute
from xdsl.parser import Parser

from tests.dialects.cute.examples import OPERATIONS

KINDS: dict[str, type[CuteType]] = {kind.name.partition(".")[2]: kind for kind in types.CUTE_TYPES}
LANES = 3
"""The threads of a kernel in which each has other integers."""
_LEAF = re.compile(r"(-?\d+)\?(\{i64\})?")


class Form(Enum):
    """Where dynamic integers come from."""

    STATIC = "there are none"
    DYNAMIC = "constants of the host"
    RUN_TIME = "atoi, and a call"
    KERNEL = "atoi, and a launch"
    LANES = "as in a kernel, and the number of the thread added"


@dataclass(frozen=True)
class Case:
    """An example of an operation: its operands, each a kind and a value; and what the algebra makes of their values.

    `bracket` are its parameters as they are written. `want` takes the operands' static values and returns the result's
    value, or those of the results. Where dynamic operands lead to another layout, the same function of coordinates,
    `dynamic` is its text. `refused` says why there are no dynamic forms, in words of the message that refuses them.
    """

    op: str
    operands: tuple[str, ...]
    want: Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
    bracket: str = ""
    dynamic: str = ""
    refused: str = ""

    @property
    def kind(self) -> type[CuteOp]:
        """The operation's class."""
        return OPERATIONS[f"cute.{self.op}"]

    @property
    def name(self) -> str:
        """What tells it from other cases."""
        return f"{self.op} {', '.join(self.operands)}"

    @property
    def numbers(self) -> list[int]:
        """The leaves that are dynamic where the form allows it."""
        return [int(match[1]) for operand in self.operands for match in _LEAF.finditer(operand)]

    def with_numbers(self, numbers: Sequence[int]) -> "Case":
        """The same case with other numbers for its dynamic leaves. They may lead to other results."""
        left = iter(numbers)
        operands = [_LEAF.sub(lambda match: f"{next(left)}?{match[2] or ''}", operand) for operand in self.operands]
        return replace(self, operands=tuple(operands))

    def value(self, index: int) -> Any:
        """The static value of an operand."""
        return _type(self.operands[index], static=True).data

    def wanted(self) -> Any:
        """What the algebra computes of the operands' static values."""
        compute = cast(Callable[..., Any], self.want)
        return compute(*[self.value(index) for index in range(len(self.operands))])

    def program(self, form: Form) -> str:
        """A host program that prints the results, each on a line."""
        body = Body(form)
        body.show(self)
        parameters = ", ".join(f"%v{i}: i{width}" for i, (_, width) in enumerate(body.leaves))
        lines = "\n".join(f"    {line}" for line in body.lines)
        match form:
            case Form.STATIC | Form.DYNAMIC:
                constants = [f"%v{i} = arith.constant {x} : i{bits}" for i, (x, bits) in enumerate(body.leaves)]
                return _main([*constants, *body.lines])
            case Form.RUN_TIME:
                names, kinds = body.arguments()
                shown = f"func.func private @show({parameters}) {{\n{lines}\n    return\n}}\n"
                return shown + body.read([f"call @show({', '.join(names)}) : ({', '.join(kinds)}) -> ()"])
            case Form.KERNEL | Form.LANES:
                threads = LANES if form is Form.LANES else 1
                given = ", ".join(f"{name} : {kind}" for name, kind in zip(*body.arguments(), strict=True))
                if form is Form.LANES:
                    parameters, lines = parameters.replace("%v", "%given"), "\n".join([*body.add_thread(), lines])
                kernel = f"  gpu.func @k({parameters}) kernel {{\n{lines}\n    gpu.return\n  }}"
                launch = [
                    "%one = arith.constant 1 : index",
                    f"%threads = arith.constant {threads} : index",
                    "gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%threads, %one, %one)"
                    + (f" args({given})" if given else ""),
                ]
                return f"gpu.module @m {{\n{kernel}\n}}\n" + body.read(launch)


def _main(lines: list[str]) -> str:
    text = "\n".join(f"  {line}" for line in lines)
    return f"func.func @main() {{\n{text}\n  return\n}}\n"


def _type(operand: str, *, static: bool) -> CuteType:
    name, _, text = operand.partition(" ")
    kind = KINDS[name]
    return kind(kind.READ(_LEAF.sub(r"\1" if static else r"?\2", text)))


@dataclass
class Body:
    """Lines that make operands, apply an operation and print its results; `leaves` are the dynamic integers."""

    form: Form
    lines: list[str] = field(default_factory=list[str])
    leaves: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    count: int = 0

    def arguments(self) -> tuple[list[str], list[str]]:
        """The names of the dynamic integers, and their types."""
        return [f"%v{i}" for i in range(len(self.leaves))], [f"i{width}" for _, width in self.leaves]

    def add_thread(self) -> list[str]:
        """Lines of a kernel that make the dynamic integers of those that were given."""
        lines = ["%thread = gpu.thread_id x"]
        for i, (_, width) in enumerate(self.leaves):
            lines.append(f"%thread{i} = arith.index_cast %thread : index to i{width}")
            lines.append(f"%v{i} = arith.addi %given{i}, %thread{i} : i{width}")
        return lines

    def read(self, lines: list[str]) -> str:
        """A `@main` that reads the dynamic integers from strings first."""
        texts: list[str] = ["llvm.func @atoi(!llvm.ptr) -> i32"]
        reads: list[str] = []
        for i, (value, width) in enumerate(self.leaves):
            text = str(value)
            texts.append(f'llvm.mlir.global internal constant @text{i}("{text}\\00") {{addr_space = 0 : i32}}')
            array = f"!llvm.array<{len(text) + 1} x i8>"
            reads.append(f"%at{i} = llvm.mlir.addressof @text{i} : !llvm.ptr")
            reads.append(f"%p{i} = llvm.getelementptr %at{i}[0, 0] : (!llvm.ptr) -> !llvm.ptr, {array}")
            name = f"%v{i}" if width == 32 else f"%narrow{i}"
            reads.append(f"{name} = llvm.call @atoi(%p{i}) : (!llvm.ptr) -> i32")
            if width == 64:
                reads.append(f"%v{i} = arith.extsi {name} : i32 to i64")
        return "\n".join(texts) + "\n" + _main([*reads, *lines])

    def name(self) -> str:
        """A new name."""
        self.count += 1
        return f"%{self.count - 1}"

    def make(self, operand: str) -> tuple[str, CuteType]:
        """Lines that make a value. Returns its name and type."""
        kind = _type(operand, static=self.form is Form.STATIC)
        name, _, text = operand.partition(" ")
        if kind.is_static:
            return self.result(f"cute.static : {kind}"), kind
        if name == "layout":
            shape, _, stride = text.partition(":")
            return self.join("make_layout", kind, f"shape {shape}", f"stride {stride}")
        if name == "composed_layout":
            last, offset, first = text.split(" o ")
            outer = "swizzle" if last.startswith("S") else "layout"
            return self.join("make_composed_layout", kind, f"{outer} {last}", f"int_tuple {offset}", f"layout {first}")
        return self.gather(f"make_{name}", operand), kind

    def join(self, op: str, kind: CuteType, *parts: str) -> tuple[str, CuteType]:
        """A value that is made of others."""
        made = [self.make(part) for part in parts]
        names, given = ", ".join(name for name, _ in made), ", ".join(str(type) for _, type in made)
        return self.result(f"cute.{op}({names}) : ({given}) -> {kind}"), kind

    def gather(self, op: str, operand: str) -> str:
        """A value that is made of integers."""
        names: list[str] = []
        kinds: list[str] = []
        for match in _LEAF.finditer(operand) if self.form is not Form.STATIC else ():
            names.append(f"%v{len(self.leaves)}")
            self.leaves.append((int(match[1]), 64 if match[2] else 32))
            kinds.append(f"i{self.leaves[-1][1]}")
        kind = _type(operand, static=self.form is Form.STATIC)
        return self.result(f"cute.{op}({', '.join(names)}) : ({', '.join(kinds)}) -> {kind}")

    def result(self, line: str) -> str:
        """A line with one result. Returns its name."""
        name = self.name()
        self.lines.append(f"{name} = {line}")
        return name

    def show(self, case: Case) -> None:
        """Lines that apply an operation and print its results."""
        kind = case.kind
        if issubclass(kind, GatherOp | StaticOp):
            made = _type(case.operands[0], static=self.form is Form.STATIC)
            text = f"cute.static : {made}"
            self.print(self.result(text) if kind is StaticOp else self.gather(case.op, case.operands[0]), made)
            return
        operands = [self.make(operand) for operand in case.operands]
        types: list[Attribute] = [type for _, type in operands]
        if case.op == "print":
            self.print(*operands[0])
            return
        properties = kind.BRACKET.parse(Parser(make_context(), case.bracket))
        results = kind.infer(types, properties) if issubclass(kind, AlgebraOp) else [IntegerType(1)]
        names = [self.name() for _ in results]
        written, given = ", ".join(map(str, types)), ", ".join(name for name, _ in operands)
        signature = {
            Signature.FUNCTION: f"({written}) -> {results[0]}",
            Signature.ARROW: f"{written} -> {results[0]}",
            Signature.OPERANDS: written,
        }[kind.SIGNATURE] if results else written  # fmt: skip
        self.lines.append(f"{', '.join(names)} = cute.{case.op}{case.bracket} ({given}) : {signature}")
        for name, type in zip(names, results, strict=True):
            self.print(name, type)

    def print(self, name: str, type: Attribute) -> None:
        """Prints a value of the dialect, or an integer as one."""
        if isinstance(type, CuteType):
            self.lines.append(f"cute.print({name}) : {type}")
            return
        if type == IntegerType(1):
            name, type = self.result(f"arith.extui {name} : i1 to i32"), IntegerType(32)
        kind = '!cute.int_tuple<"?">' if type == IntegerType(32) else '!cute.int_tuple<"?{i64}">'
        shown = self.result(f"cute.make_int_tuple({name}) : ({type}) -> {kind}")
        self.lines.append(f"cute.print({shown}) : {kind}")
