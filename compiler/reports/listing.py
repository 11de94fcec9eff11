# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program as lines of text, again and again while passes change it: values keep their names, so that only lines whose
operations have changed differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from io import StringIO
from typing import TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsolatedFromAbove

from ...dialects.kernel import KernelOp
from ..frontend.program import ProgramPrinter


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a program, and the operation that begins on it; None for braces and labels."""

    text: str
    op: Operation | None


@dataclass(frozen=True, eq=False)
class Hunk:
    """Lines of two listings that differ, with a few around them: each with `-`, `+` or a blank. `before` and `after`
    are the numbers of the first line in each listing, from 1.
    """

    before: int
    after: int
    lines: tuple[tuple[str, Line], ...]

    def __str__(self) -> str:
        return "\n".join([f"@@ -{self.before} +{self.after} @@", *(mark + line.text for mark, line in self.lines)])


@dataclass(frozen=True, eq=False)
class Listing:
    """The lines of a program at one time."""

    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The program, ending with a newline, which can be read again."""
        return "".join(f"{line.text}\n" for line in self.lines)


def hunks(before: Sequence[Line], after: Sequence[Line], context: int = 2) -> list[Hunk]:
    """The differences between the lines of two listings, each with up to `context` equal lines around it; none where
    all are equal.
    """
    matcher = SequenceMatcher(None, [line.text for line in before], [line.text for line in after], autojunk=False)
    return [
        Hunk(group[0][1] + 1, group[0][3] + 1, tuple(_mark(before, after, group)))
        for group in matcher.get_grouped_opcodes(context)
    ]


def changed_lines(differences: Iterable[Hunk]) -> tuple[int, int]:
    """How many lines are removed and added."""
    marks = [mark for hunk in differences for mark, _ in hunk.lines]
    return marks.count("-"), marks.count("+")


def _mark(
    before: Sequence[Line], after: Sequence[Line], group: Iterable[tuple[str, int, int, int, int]]
) -> Iterable[tuple[str, Line]]:
    for kind, old, old_end, new, new_end in group:
        if kind == "equal":
            yield from ((" ", line) for line in after[new:new_end])
        else:
            yield from (("-", line) for line in before[old:old_end])
            yield from (("+", line) for line in after[new:new_end])


@dataclass
class Lister:
    """Gives names to the values of a program, and keeps them while passes change it.

    A value keeps its name as long as it lives. A new value takes the name of the value that an operation used in its
    place before; any other gets a name of its own, from its hint, or a number that no value has had.
    """

    _names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    _operands: dict[Operation, tuple[SSAValue, ...]] = field(default_factory=dict[Operation, tuple[SSAValue, ...]])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _last: "tuple[_Content, Listing] | None" = None

    def list(self, module: Operation, *, generic: bool = False, locations: bool = False) -> Listing:
        """The lines of a module as it is now, as `print_program` writes them; the first time with the same names. If
        the module is as it was the last time, the same listing.
        """
        content = generic, locations, [_content_of(op) for op in module.walk()]
        if self._last is None or self._last[0] != content:
            self._last = content, self._listed(module, generic, locations)
        return self._last[1]

    def _listed(self, module: Operation, generic: bool, locations: bool) -> Listing:
        self.name(module)
        stream = StringIO()
        printer = _ListingPrinter(stream=stream, print_generic_format=generic, print_debuginfo=locations)
        printer.named(self._names)
        printer.print_op(module)
        lines = stream.getvalue().split("\n")
        return Listing(tuple(Line(text, printer.starts.get(number)) for number, text in enumerate(lines)))

    def name(self, module: Operation) -> None:
        """Gives a name to each value of a module that has none."""
        ops = list(module.walk())
        alive = {value for op in ops for value in _named_values(op)}
        replaced: dict[SSAValue, str] = {}
        for op in ops:
            for old, new in zip(self._operands.get(op, ()), op.operands, strict=False):
                gone = old in self._names and old not in alive
                if gone and new not in self._names and old.name_hint == new.name_hint:
                    replaced.setdefault(new, self._names[old])
        self._isolated(module, replaced, {}, 0, "")
        self._operands = {op: tuple(op.operands) for op in ops}

    def follow(self, module: Operation, clone: Operation) -> None:
        """Gives the values of a copy of a module the names that they have in the module."""
        for op, copy in zip(module.walk(), clone.walk(), strict=True):
            self._operands[copy] = tuple(copy.operands)
            for value, copied in zip(_named_values(op), _named_values(copy), strict=True):
                self._names[copied] = self._names[value]

    def _scope(self, op: Operation, replaced: dict[SSAValue, str], taken: dict[str, int], number: int, key: str) -> int:
        """Names the values in an operation that lie in one scope of names; the number for the next value there."""
        for region in op.regions:
            for block in region.blocks:
                number = self._give(block.args, replaced, taken, number)
                for inner in block.ops:
                    number = self._give(inner.results[:1], replaced, taken, number)
                    if inner.has_trait(IsolatedFromAbove):
                        self._isolated(inner, replaced, taken, number, key)
                    else:
                        number = self._scope(inner, replaced, taken, number, key)
        return number

    def _isolated(
        self, op: Operation, replaced: dict[SSAValue, str], taken: dict[str, int], number: int, key: str
    ) -> None:
        """Names the values in an operation whose names are a scope of their own, and may repeat those of others."""
        symbol = op.properties.get("sym_name")
        key = f"{key}/{symbol.data if isinstance(symbol, StringAttr) else ''}"
        inner = dict(taken)
        if isinstance(op, KernelOp):
            self._parameters(op, inner)
        own = dict(inner)
        for value in _in_scope(op):
            name = self._names.get(value)
            if name in own and value.owner is not op.regions[0].blocks[0]:
                del self._names[value]  # no other value may have the name of a parameter
            elif name is not None:
                inner.setdefault(name, 1)
        self._numbers[key] = self._scope(op, replaced, inner, max(number, self._numbers.get(key, 0)), key)

    def _parameters(self, kernel: KernelOp, taken: dict[str, int]) -> None:
        """Names the parameters of a kernel as its text does."""
        for arg, name in zip(kernel.body.blocks[0].args, kernel.arg_names, strict=True):
            arg.name_hint = name.data
            self._names[arg] = _unused_name(arg.name_hint or "", taken)

    def _give(
        self, values: Sequence[SSAValue], replaced: dict[SSAValue, str], taken: dict[str, int], number: int
    ) -> int:
        for value in values:
            if value in self._names:
                continue
            name = replaced.get(value)
            if name is None or name in taken:
                if value.name_hint:
                    name = _unused_name(value.name_hint, taken)
                else:
                    name, number = str(number), number + 1
            taken.setdefault(name, 1)
            self._names[value] = name
        return number


_Content: TypeAlias = tuple[bool, bool, Sequence[tuple[object, ...]]]
"""All that the text of a module depends on, but for the names of values, which stay; and how it is printed."""


def _content_of(op: Operation) -> tuple[object, ...]:
    """All that the text of an operation depends on, without those in its regions."""
    blocks = [(block, [arg.type for arg in block.args]) for region in op.regions for block in region.blocks]
    before = dict(op.properties), dict(op.attributes)  # passes change them in place
    types = [result.type for result in op.results]
    return op, op.parent, tuple(op.operands), types, *before, tuple(op.successors), blocks, op.location


def _unused_name(hint: str, taken: dict[str, int]) -> str:
    """A name that no value has: the hint, or the hint with the next number."""
    count = taken.get(hint, 0)
    while (name := hint if not count else f"{hint}_{count}") in taken and count:
        count += 1
    taken[hint] = count + 1
    return name


def _named_values(op: Operation) -> list[SSAValue]:
    """The values of an operation that have names, those of the blocks in its regions too: several results share one."""
    return [*op.results[:1], *(arg for region in op.regions for block in region.blocks for arg in block.args)]


def _in_scope(op: Operation) -> Iterable[SSAValue]:
    """The values within an operation, without those in operations whose names are scopes of their own."""
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
            for inner in block.ops:
                yield from inner.results[:1]
                if not inner.has_trait(IsolatedFromAbove):
                    yield from _in_scope(inner)


class _ListingPrinter(ProgramPrinter):
    """A printer that takes the names of values, and records the line on which each operation begins."""

    def named(self, names: dict[SSAValue, str]) -> None:
        """Takes the names of values, and forgets those that it knows."""
        self._ssa_values = dict(names)
        self.starts: dict[int, Operation] = {}

    def print_op(self, op: Operation) -> None:
        self.starts.setdefault(self._current_line, op)
        super().print_op(op)
