# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, which the simulator executes by its meaning, instruction by instruction with registers of their own (PTX
ISA, Syntax), or by a function that is given for the text.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from ....base.errors import Code
from ....dialects import ptx
from ....dialects.ptx.inline import DISCARD, HEAP_CALLS
from ..events import Step
from ..faults import Site, site_of
from ..translate import Rules, Translator
from ..values import Value, element_kind
from ..warp import Warp
from .gpu import Reader, register_of
from .heap import discard, heap_call
from .inline_instructions import Instruction, instruction_of, predicates_of

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARATION = re.compile(r"\.reg\s+\.\w+\s+([\w$%]+(?:\s*,\s*[\w$%]+)*)")
_GUARD = re.compile(r"@(!?)([\w$%]+)\s+")
_INSTRUCTION = re.compile(r"(\w+(?:\.\w+)+)\s+([^\s,]+)\s*,\s*([^\s,]+(?:\s*,\s*[^\s,]+)*)")
_PACK = re.compile(r"mov\.b(16|32|64)\s+([^\s,{}]+)\s*,\s*\{([^{}]*)\}")
_UNPACK = re.compile(r"mov\.b(16|32|64)\s+\{([^{}]*)\}\s*,\s*([^\s,{}]+)")
_INTEGER = re.compile(r"-?(0x[0-9a-fA-F]+|[1-9]\d*|0)U?")
_FLOAT = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}")

Meaning: TypeAlias = Callable[..., tuple[Any, ...]]
"""The results of a text, as a function of the warp and of the operands in its lanes."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """An instruction that writes the register `target`, in lanes where the predicate `guard` is not `unless`. Operands
    are names of registers, or numbers.
    """

    instruction: Instruction
    target: str
    operands: tuple[Value, ...]
    guard: str = ""
    unless: bool = False

    def run(self, warp: Warp, registers: dict[str, Any]) -> None:
        given = [registers[x] if isinstance(x, str) else x for x in self.operands]
        values = [_of_type(x, dtype) for x, dtype in zip(given, self.instruction.operands, strict=True)]
        with np.errstate(all="ignore"):
            made = np.asarray(self.instruction.run(warp, *values))
        if self.guard:
            old = registers.get(self.target, made)
            made = np.where(registers[self.guard] != self.unless, made, _of_type(old, made.dtype))
        registers[self.target] = made


@dataclass(slots=True)
class _Registers:
    """The registers of a text while it is read: those that it declares, those that have values, and those that are
    written only where a predicate holds, or only where it does not.
    """

    declared: set[str]
    written: set[str]
    special: dict[str, Reader]
    halves: set[tuple[str, str, bool]]

    def statements(self, part: str, site: Site) -> list[_Statement] | None:
        """The statements of a part of the text, which has no predicate; None for an unknown one."""
        declaration, known, moved = _DECLARATION.fullmatch(part), _INSTRUCTION.fullmatch(part), _moves(part)
        if declaration is not None:
            self.declared |= set(re.split(r"\s*,\s*", declaration[1]))
        if declaration is not None or not part:
            return []
        if moved:
            if any(move.target not in self.declared or not self.written.issuperset(move.operands) for move in moved):
                return None
            return moved
        if known is None:
            return None
        targets, both = known[2].split("|"), predicates_of(known[1])
        made = both if len(targets) == 2 else (instruction_of(known[1], site),)
        given = tuple(map(_operand, re.split(r"\s*,\s*", known[3].replace("{", "").replace("}", ""))))
        reads = {x for x in given if isinstance(x, str)}
        self.special |= {x: read for x in reads if (read := register_of(x)) is not None}
        reads -= self.special.keys()
        if made is None or len(made) != len(targets) or not reads <= self.written:
            return None
        statements: list[_Statement] = []
        for instruction, target in zip(made, targets, strict=True):
            if instruction is None or len(given) != len(instruction.operands) or target not in self.declared:
                return None
            statements.append(_Statement(instruction, target, given))
        return statements

    def write(self, statement: _Statement) -> None:
        """Notes that a statement has written its register."""
        target, guard, unless = statement.target, statement.guard, statement.unless
        self.halves = {half for half in self.halves if half[1] != target}
        if guard:
            self.halves.add((target, guard, unless))
        if not guard or (target, guard, not unless) in self.halves:
            self.written.add(target)


def meaning_of(text: str, operands: int, results: Sequence[object], site: Site) -> Meaning | None:
    """The meaning of a text with this many operands, and results of NumPy's types. None where it has anything else than
    instructions that `instruction_of` knows, or a register that is read before it is written. Special registers,
    `%laneid`, are written.
    """
    statements: list[_Statement] = []
    names = [f"${number}" for number in range(len(results))]
    given_names = [f"${len(results) + number}" for number in range(operands)]
    registers = _Registers(set(names), set(given_names), {}, set())
    text = _COMMENT.sub(" ", text).strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    for part in map(str.strip, text.split(";")):
        (guard, unless), part = _guard_of(part)
        made = registers.statements(part, site)
        if made is None or (guard and guard not in registers.written):
            return None
        made = [replace(statement, guard=guard, unless=unless) for statement in made]
        for statement in made:
            registers.write(statement)
        statements += made
    if not registers.written.issuperset(names):
        return None

    def run(warp: Warp, *given: object) -> tuple[Value, ...]:
        values = dict(zip(given_names, given, strict=True))
        values |= {name: np.asarray(read(warp)) for name, read in registers.special.items()}
        for statement in statements:
            statement.run(warp, values)
        return tuple(_of_type(values[name], dtype) for name, dtype in zip(names, results, strict=True))

    return run


def _guard_of(text: str) -> tuple[tuple[str, bool], str]:
    """The predicate of an instruction, which is empty for none, with whether it is negated, and the instruction."""
    guard = _GUARD.match(text)
    return (("", False), text) if guard is None else ((guard[2], bool(guard[1])), text[guard.end() :])


def _moves(text: str) -> list[_Statement]:
    """A move of a word that registers share, to it or from it, the first in the lowest bits (PTX ISA, mov)."""
    if (pack := _PACK.fullmatch(text)) is not None:
        names = [name.strip() for name in pack[3].split(",")]
        part = np.dtype(f"u{int(pack[1]) // 8 // len(names)}")

        def packed(_: Warp, *parts: Value) -> Value:
            whole = np.stack(np.broadcast_arrays(*parts), axis=-1)
            return np.ascontiguousarray(whole).view(f"u{part.itemsize * len(names)}")[..., 0]

        return [_Statement(Instruction(packed, (part,) * len(names)), pack[2], tuple(names))]
    if (unpack := _UNPACK.fullmatch(text)) is None:
        return []
    names = [name.strip() for name in unpack[2].split(",")]
    size, word = int(unpack[1]) // 8 // len(names), np.dtype(f"u{int(unpack[1]) // 8}")

    def part_of(number: int) -> Instruction:
        def part(_: Warp, x: Value) -> Value:
            return (x >> x.dtype.type(8 * size * number)).astype(f"u{size}")

        return Instruction(part, (word,))

    return [_Statement(part_of(number), name, (unpack[3],)) for number, name in enumerate(names) if name != "_"]


def _operand(text: str) -> Value:
    """A number, or the name of a register."""
    if _INTEGER.fullmatch(text):
        return int(text.removesuffix("U"), 0)
    if _FLOAT.fullmatch(text):
        bits = len(text[2:]) * 4
        return np.array(int(text[2:], 16), f"u{bits // 8}").view(f"f{bits // 8}")
    return text


def _of_type(x: Value, dtype: Any) -> Value:
    """An operand with its bits as a type of their number, a constant converted to the type."""
    if isinstance(x, int):
        unsigned = np.array(x & (1 << 8 * dtype.itemsize) - 1, f"u{dtype.itemsize}")
        return unsigned.astype(dtype) if dtype.kind in "fb" else unsigned.view(dtype)
    return x.view(dtype) if x.dtype.itemsize == dtype.itemsize else x.astype(dtype)


def executes(op: ptx.InlineOp) -> bool:
    """Whether the simulator executes a text as it is, by its meaning."""
    text = op.text.data
    if text in HEAP_CALLS.values() or text == DISCARD:
        return True
    kinds = [element_kind(value.type) for value in op.res]
    types = [kind.dtype for kind in kinds if kind is not None]
    return len(types) == len(kinds) and meaning_of(text, len(op.args), types, site_of(op)) is not None


def _inline(op: ptx.InlineOp, t: Translator) -> Step:
    if op.text.data in HEAP_CALLS.values():
        return heap_call(op, t)
    if op.text.data == DISCARD:
        return discard(op, t)
    site, text = site_of(op), op.text.data
    shown = text if len(text) <= 60 else text[:57] + "..."
    operands = [(t.slot(value), t.kind(value).dtype) for value in op.args]
    results = [(t.slot(value), t.kind(value).dtype) for value in op.res]
    types, function = [dtype for _, dtype in results], t.texts.get(text)
    meaning = meaning_of(text, len(operands), types, site) if function is None else _of_user(function)
    if meaning is None:
        return _text_error(site, shown, op.refusal)

    def step(warp: Warp) -> None:
        registers, lanes = warp.registers, warp.lanes
        given = [np.broadcast_to(np.asarray(registers[slot], dtype), (lanes,)) for slot, dtype in operands]
        values = meaning(warp, *given)
        if len(values) != len(results):
            message = f"the function for {shown} gives {len(values)} results, the text has {len(results)}"
            warp.fault(Code.SIM_UNSUPPORTED, site, None, message)
        for (slot, dtype), value in zip(results, values, strict=True):
            registers[slot] = np.array(np.broadcast_to(np.asarray(value).astype(dtype), (lanes,)))

    return step


def _of_user(function: Callable[..., object]) -> Meaning:
    def run(_: Warp, *given: object) -> tuple[Value, ...]:
        out: Value = function(*given)
        return cast("tuple[Any, ...]", out) if isinstance(out, tuple) else () if out is None else (out,)

    return run


def _text_error(site: Site, shown: str, refusal: str) -> Step:
    def step(warp: Warp) -> None:
        lane = int(warp.lane_numbers()[0])
        hint = "use the operation of the instruction, run on a GPU, or give cute.arch.inline_ptx a function: sim="
        text = f"the simulator does not execute text: {shown}" + (f" ({refusal})" if refusal else "")
        warp.fault(Code.SIM_UNSUPPORTED, site, lane, text, hint)

    return step


PTX_INLINE: Rules = {ptx.InlineOp: _inline}
