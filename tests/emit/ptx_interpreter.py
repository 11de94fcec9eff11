# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes PTX without a GPU: what LLVM's back end makes of arithmetic, by what the PTX ISA says of each instruction.

A kernel has no exchanges between threads here, so all threads of a grid that are at an instruction
execute it at once, the first in the text before others. An instruction or modifier that is not known is an error, never
skipped.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.emit.numbers import (
    FORMATS,
    decoded,
    encoded,
    extreme,
    fused,
    of_integers,
    rounded,
    to_integers,
    wrap,
    wrapped,
)
from tests.emit.ptx_integers import INTEGER_INSTRUCTIONS, QUOTIENT
from tests.emit.ptx_machine import Machine, integer_type

Instruction = Callable[[Machine, list[str], list[str]], None]
"""Executes an instruction, given the parts of its name after the first, and its operands."""

_LINE = re.compile(r"^([a-z]\w*)((?:::?\w+|\.\w+)*)\s*(.*);$")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_GUARDED = re.compile(r"(?:@(!?)(%\w+)\s+)?(\w+)[.\w:]*\s*([^;]*);")
_KINDS = ("f16", "bf16", "f32", "f64")


class NotInterpreted(Exception):  # noqa: N818
    """The PTX has an instruction that is not known here."""


def run_ptx(ptx: str, blocks: int, threads: int, arguments: list[Any]) -> None:
    """Executes the only kernel of a text; its arguments are numbers and arrays, which it changes in place."""
    body = ptx[ptx.index("{\n", ptx.index(".entry")) :]
    machine = Machine(blocks, threads, arguments)
    lines: list[str] = []
    labels: dict[str, int] = {}
    for line in body.splitlines():
        text = line.split("//")[0].strip()
        if text.endswith(":"):
            labels[text[:-1]] = len(lines)
        elif text and text not in "{}" and not text.startswith("."):
            lines.append(text)
    at = np.zeros(machine.count, np.int64)
    while (here := int(at.min())) < len(lines):
        _step(machine, lines[here], labels, at, len(lines))
    for array, content in zip(arguments, machine.memory, strict=True):
        if np.ndim(array):
            array.reshape(-1).view(np.uint8)[:] = content


def _step(machine: Machine, line: str, labels: Mapping[str, int], at: NDArray[np.int64], end: int) -> None:
    """Executes a line in the threads that are first in the text, and moves them on: `at` is where each one is."""
    match = _GUARDED.fullmatch(line)
    if match is None:
        raise NotInterpreted(line)
    negated, guard, name, rest = match.groups()
    active = at == at.min()
    at[active] += 1
    if guard:
        active &= machine.predicates[guard] != bool(negated)
    if name == "ret":
        at[active] = end
    elif name == "bra":
        at[active] = labels[rest]
    elif active.any():
        machine.only(active)
        _execute(machine, line.removeprefix(f"@{negated}{guard}").strip())


def _execute(machine: Machine, line: str) -> None:
    match = _LINE.match(line)
    if match is None or match[1] not in _INSTRUCTIONS:
        raise NotInterpreted(line)
    operands = [text.strip() for text in _OPERAND.findall(match[3])]
    try:
        with np.errstate(all="ignore"):
            _INSTRUCTIONS[match[1]](machine, match[2].split(".")[1:], operands)
    except (KeyError, IndexError, ValueError) as error:
        raise NotInterpreted(f"{line}: {error!r}") from error


def _names(text: str) -> list[str]:
    return [name.strip() for name in text[1:-1].split(",")] if text.startswith("{") else [text]


def _ld(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    if modifiers[0] == "param":
        m.write(operands[0], modifiers[-1], m.parameters[int(operands[1][1:-1].rpartition("_")[2])])
        return
    _, width = integer_type(modifiers[-1])
    array, at = m.place(operands[1], modifiers[0])
    for index, name in enumerate(_names(operands[0])):
        places = at[:, None] + np.arange(width // 8) + index * width // 8
        content = np.zeros((m.count, 8), np.uint8)
        content[:, : width // 8] = array[places]
        m.write(name, modifiers[-1], content.view(np.uint64)[:, 0])


def _st(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    _, width = integer_type(modifiers[-1])
    array, at = m.place(operands[0], modifiers[0])
    for index, name in enumerate(_names(operands[1])):
        places = at[:, None] + np.arange(width // 8) + index * width // 8
        content = np.array(m.bits(name)).view(np.uint8).reshape(m.count, 8)[:, : width // 8]
        array[places[m.active]] = content[m.active]


def _mov(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    target, source = operands
    if modifiers == ["pred"]:
        m.predicates[target] = m.predicate(source)
        return
    _, width = integer_type(modifiers[-1].replace("f", "b"))
    targets, sources = _names(target), _names(source)
    part = np.uint64(width // max(len(targets), len(sources)))
    mask = np.uint64((1 << int(part)) - 1)
    whole = np.zeros(m.count, np.uint64)
    for index, name in enumerate(sources):
        whole |= (m.bits(name) & (mask if len(sources) > 1 else ~np.uint64(0))) << np.uint64(index) * part
    for index, name in enumerate(targets):
        m.registers[name] = whole >> np.uint64(index) * part & mask if len(targets) > 1 else whole


_ROUNDINGS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
)


def _cvt(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    target, source = modifiers[-2:]
    rest = modifiers[:-2]
    if target in ("f16x2", "bf16x2") and source == "f32":
        type = target[:-2]
        high, low = (rounded(m.read(text, "f32"), type) for text in operands[1:])
        m.write_pair(operands[0], type, low, high)
    elif target in _EIGHT:
        type = _EIGHT[target]
        high, low = (encoded(rounded(m.read(text, "f32"), type), type) for text in operands[1:])
        m.registers[operands[0]] = low | high << np.uint64(8)
    elif source in _EIGHT:
        raw = m.bits(operands[1])
        low, high = (decoded(raw >> np.uint64(8 * place) & np.uint64(0xFF), _EIGHT[source]) for place in (0, 1))
        m.write_pair(operands[0], "f16", low, high)
    else:
        m.write(operands[0], target, _converted(m.read(operands[1], source), target, source, rest))


_EIGHT = {"e4m3x2": "f8E4M3FN", "e5m2x2": "f8E5M2"}


def _converted(value: Any, target: str, source: str, rest: list[str]) -> Any:
    """cvt of one number (PTX ISA, cvt)."""
    if target in FORMATS and source in FORMATS:
        if rest and rest[0] in _ROUNDINGS:
            return _ROUNDINGS[rest[0]](value)
        if rest not in ([], ["rn"]) or (not rest) != (FORMATS[target].bits > FORMATS[source].bits):
            raise ValueError(f"cvt.{rest}")
        return rounded(value, target)
    if source in FORMATS:
        sign, width = integer_type(target)
        if rest != ["rzi"] or width < 32:
            raise ValueError(f"cvt.{rest} to {target}")
        return to_integers(value, source, width, sign == "s")
    if target in FORMATS:
        if rest not in (["rn"], ["rz"]):
            raise ValueError(f"cvt.{rest}")
        width = integer_type(source)[1] if source.startswith("u") else 0
        near = of_integers(value.astype(np.int64), target, width)
        if rest == ["rz"]:  # the number before where the nearest one is beyond
            exact = [int(n) for n in value.tolist()]
            before = np.nextafter(near.astype(np.float32), np.float32(0)).astype(np.float64)
            beyond = [abs(int(x)) > abs(n) for x, n in zip(near.tolist(), exact, strict=True)]
            assert target == "f32"
            return np.where(beyond, before, near)
        return near
    if rest:
        raise ValueError(f"cvt.{rest}")
    return value


def _float_of(modifiers: list[str]) -> str | None:
    type = modifiers[-1].removesuffix("x2")
    return type if type in _KINDS else None


def _arithmetic(function: Callable[..., Any], whole: Callable[..., Any] | None = None) -> Instruction:
    """An instruction whose result is `function` of numbers, rounded, or `whole` of integers."""

    def run(m: Machine, modifiers: list[str], operands: list[str]) -> None:
        target, *sources = operands
        type = _float_of(modifiers)
        if type is None:
            if whole is None:
                raise ValueError("no integers")
            m.write(target, modifiers[-1], whole(*[m.read(text, modifiers[-1]) for text in sources]))
        elif modifiers[-1].endswith("x2"):
            pairs = [m.pair(text, type) for text in sources]
            low, high = (rounded(function(*[pair[half] for pair in pairs]), type) for half in (0, 1))
            m.write_pair(target, type, low, high)
        elif len(modifiers) > 1 and modifiers[-2] in _KINDS:  # what is not added is narrower, as in add.f32.f16
            *narrow, last = sources
            values = [*(m.read(text, type) for text in narrow), m.read(last, modifiers[-2])]
            m.write(target, modifiers[-2], rounded(function(*values), modifiers[-2]))
        else:
            m.write(target, type, rounded(function(*[m.read(text, type) for text in sources]), type))

    return run


def _fma(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    type = next((name for name in modifiers if name.removesuffix("x2") in _KINDS), "").removesuffix("x2")
    if not type:
        raise ValueError("no integers")

    def function(a: Any, b: Any, c: Any) -> Any:
        return fused(a, b, c, type)

    _arithmetic(function)(m, modifiers, operands)


def _mul(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    if _float_of(modifiers) is not None:
        _arithmetic(np.multiply)(m, modifiers, operands)
        return
    how, type = modifiers[0], modifiers[-1]
    sign, width = integer_type(type)
    target, *sources = operands
    a, b = ([int(n) for n in m.read(text, type).tolist()] for text in sources[:2])
    wide = [x * y for x, y in zip(a, b, strict=True)]
    if how == "hi":
        wide = [n >> width for n in wide]
    if len(sources) > 2:
        wide = [n + int(c) for n, c in zip(wide, m.bits(sources[2]).tolist(), strict=True)]
    size = 2 * width if how == "wide" else width
    result = np.array([wrapped(n, size) for n in wide], np.int64)
    m.write(target, f"{sign}{size}", result.view(np.uint64) if sign != "s" else result)


def _extreme(greater: bool) -> Instruction:
    def run(m: Machine, modifiers: list[str], operands: list[str]) -> None:
        pick = extreme(greater, of_numbers="NaN" not in modifiers)

        def number(*values: Any) -> Any:
            first, *others = values
            for other in others:
                first = pick(first, other)
            return first

        _arithmetic(number, np.maximum if greater else np.minimum)(m, modifiers, operands)

    return run


_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
})  # fmt: skip


def _setp(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    target, left, right = operands[:3]
    predicate, type = modifiers[0], modifiers[-1]
    if len(modifiers) != 2 or len(operands) != 3:
        raise ValueError("combined with a predicate")
    names = target.split("|")
    if type.endswith("x2"):
        rows = list(zip(m.pair(left, type[:-2]), m.pair(right, type[:-2]), strict=True))
    else:
        rows = [(m.read(left, type), m.read(right, type))]
    for name, (a, b) in zip(names, rows, strict=True):
        m.predicates[name] = _compared(predicate, a, b, type.removesuffix("x2") in _KINDS)


def _compared(predicate: str, a: Any, b: Any, floats: bool) -> NDArray[np.bool_]:
    if not floats:
        return _COMPARE[predicate](a, b)
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("num", "nan"):
        return unordered == (predicate == "nan")
    if predicate not in _COMPARE or predicate in ("lo", "ls", "hi", "hs"):
        return unordered | _COMPARE[predicate.removesuffix("u")](a, b)
    return ~unordered & _COMPARE[predicate](a, b)


def _selp(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    target, a, b, chosen = operands
    m.registers[target] = np.where(m.predicates[chosen], m.bits(a), m.bits(b))


def _logic(function: Callable[..., Any]) -> Instruction:
    def run(m: Machine, modifiers: list[str], operands: list[str]) -> None:
        target, *sources = operands
        if modifiers == ["pred"]:
            m.predicates[target] = function(*[m.predicate(text) for text in sources])
        else:
            m.write(target, modifiers[-1], function(*[m.read(text, modifiers[-1]) for text in sources]))

    return run


def _shift(left: bool) -> Instruction:
    def run(m: Machine, modifiers: list[str], operands: list[str]) -> None:
        type = modifiers[-1]
        _, width = integer_type(type)
        value, by = m.read(operands[1], type), m.read(operands[2], "u32")
        by = np.minimum(by, np.uint64(width)).astype(value.dtype)
        inside = np.minimum(by, value.dtype.type(width - 1))
        moved = value << inside if left else value >> inside
        beyond = np.where(value < 0, -1, 0).astype(value.dtype) if type[0] == "s" and not left else value.dtype.type(0)
        m.write(operands[0], type, np.where(by >= value.dtype.type(width), beyond, moved))

    return run


def _bfe(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    type = modifiers[-1]
    at, count = (int(text) for text in operands[2:])
    field = m.read(operands[1], type.replace("s", "u")) >> np.uint64(at) & np.uint64((1 << count) - 1)
    m.write(operands[0], type, wrap(field.view(np.int64), count) if type[0] == "s" else field)


def _prmt(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    low, high = m.read(operands[1], "u32"), m.read(operands[2], "u32")
    both, selector = low | high << np.uint64(32), int(operands[3].removesuffix("U"), 0)
    if modifiers != ["b32"] or selector & 0x8888:
        raise ValueError("prmt of signs")
    result = np.zeros(m.count, np.uint64)
    for place in range(4):
        byte = both >> np.uint64(8 * (selector >> 4 * place & 7)) & np.uint64(0xFF)
        result |= byte << np.uint64(8 * place)
    m.write(operands[0], "b32", result)


def _copysign(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    sign, size = (m.read(text, modifiers[-1]) for text in operands[1:])
    m.write(operands[0], modifiers[-1], np.copysign(size, sign))


def _neg(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    if modifiers == ["s16"]:
        raise ValueError("ptxas does not wrap it (tilefold.compiler.machine.ptxas_negation), nor abs of integers")
    _arithmetic(np.negative, np.negative)(m, modifiers, operands)


def _exact(function: Callable[..., Any]) -> Instruction:
    """An instruction that must be rounded correctly."""

    def run(m: Machine, modifiers: list[str], operands: list[str]) -> None:
        if modifiers[-1][0] in "su":
            QUOTIENT(m, modifiers, operands)
            return
        if modifiers[:-1] != ["rn"]:
            raise ValueError("another rounding")
        _arithmetic(function)(m, modifiers, operands)

    return run


_INSTRUCTIONS: Mapping[str, Instruction] = MappingProxyType({
    "ld": _ld, "st": _st, "mov": _mov, "cvt": _cvt, "setp": _setp, "selp": _selp, "bfe": _bfe, "prmt": _prmt,
    "add": _arithmetic(np.add, np.add), "sub": _arithmetic(np.subtract, np.subtract), "mul": _mul, "mad": _mul,
    "fma": _fma, "rcp": _exact(np.reciprocal), "div": _exact(np.divide), "sqrt": _exact(np.sqrt),
    "neg": _neg, "abs": _arithmetic(np.abs), "copysign": _copysign,
    "min": _extreme(False), "max": _extreme(True), "and": _logic(np.bitwise_and), "or": _logic(np.bitwise_or),
    "xor": _logic(np.bitwise_xor), "not": _logic(np.invert), "shl": _shift(True), "shr": _shift(False),
    **INTEGER_INSTRUCTIONS,
})  # fmt: skip
