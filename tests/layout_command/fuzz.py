# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random and broken expressions: `python -m tests.layout_command.fuzz --count 100000`.

Each text must be evaluated or refused as wrong text, soon; what was evaluated must print, and read back as itself.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from math import inf
from random import Random
from traceback import format_exception
from typing import Any

from tilefold.base.errors import Code, LayoutError, LayoutSyntaxError
from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.layout.text.evaluate import Evaluator
from tilefold.layout.text.layouts import parse_layout
from tilefold.layout.text.operations import OPERATIONS, OperandKind
from tilefold.layout.text.printing import cxx_style, lines, plain_style

MAX_SECONDS = 5.0  # on a busy machine; most texts take less than a millisecond

_SMALL = ("0", "1", "2", "3", "4", "8", "16", "-1", "-8")
_INTEGERS = (*_SMALL, "?", "?{i64}", "?{div=8}", "4294967296", "9223372036854775807")
_TOKENS = (*_INTEGERS, *"()[]<>:,;_Xo=A '", "@0", "S<3,4,3>")
_ATOMS = ("'UniversalCopy<uint32_t>'", "'SM75_U32x1_LDSM_N'", "'SM80_16x8x8_F32F16F16F32_TN'", "'x'")


def shape(random: Random, depth: int = 2) -> str:
    """A small shape, mostly of static extents."""
    if depth == 0 or random.random() < 0.4:
        return random.choice(("1", "2", "3", "4", "8", "?", "16"))
    return f"({','.join([shape(random, depth - 1) for _ in range(random.randrange(1, 4))])})"


def layout(random: Random) -> str:
    """A layout that is mostly well formed."""
    extents = shape(random)
    stride = "".join([random.choice(_SMALL) if c.isdigit() or c == "?" else c for c in extents])
    text = f"{extents}:{stride}"
    match random.randrange(6):
        case 0:
            return f"S<{random.randrange(3)},{random.randrange(3)},3> o {random.randrange(9)} o {text}"
        case 1:
            return f"{shape(random)}:{random.choice(('1@0', '2@1@0', '1'))}"
        case 2:
            return f"make_identity_layout({extents})"
        case _:
            return text


def argument(random: Random, kind: OperandKind, depth: int) -> str:
    """An argument of a kind, or now and then of another."""
    word = kind.name.removeprefix("a ").removeprefix("an ")
    if random.random() < 0.05:
        return expression(random, depth)
    if "layout" in word and "shape" not in word and "tuple" not in word:
        return expression(random, depth) if random.random() < 0.3 else layout(random)
    if "name" in word:
        return random.choice(_ATOMS)
    if "atom" in word:
        return f"{'copy' if 'copy' in word else 'mma'}_atom({random.choice(_ATOMS)})"
    if "copy" in word:
        return "make_tiled_copy(copy_atom('UniversalCopy<uint32_t>',16),(8,4):(1,8),2:1)"
    if "MMA" in word:
        return "make_tiled_mma(mma_atom('SM80_16x8x8_F32F16F16F32_TN'))"
    if "integer" in word:
        return random.choice(_INTEGERS)
    return random.choice((shape(random), layout(random), "_", "(_,2)", "(1,X)", "[2:1;_]"))


def expression(random: Random, depth: int = 2) -> str:
    """An expression whose calls have about the right arguments."""
    if depth == 0 or random.random() < 0.1:
        return layout(random)
    if random.random() < 0.15:
        suffix = random.choice(("(3)", "(_,1)", "[0]", " o 2:1", f" o {layout(random)}", "(0)[1]"))
        return f"({expression(random, depth - 1)}){suffix}"
    name = random.choice(tuple(OPERATIONS))
    operation = OPERATIONS[name]
    least, most = operation.arity()
    count = random.randrange(least, (most if most is not None else least + 2) + 1)
    return f"{name}({', '.join([argument(random, operation.kind(i), depth - 1) for i in range(count)])})"


def broken(random: Random, text: str) -> str:
    """`text` with some of its parts lost, doubled or replaced."""
    for _ in range(random.randrange(1, 4)):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.randrange(6))
        new = random.choice((random.choice(_TOKENS), text[start:end] * 2, "", chr(random.randrange(1, 0x250))))
        text = text[:start] + new + text[end:]
    return text


def check(text: str, seconds: float = inf) -> None:
    """Evaluates one text, for which it may take so many `seconds`. Raises AssertionError for what may not happen;
    errors other than the user's come out.
    """
    began = time.perf_counter()
    try:
        results = Evaluator().run(text)
    except LayoutSyntaxError as error:
        assert 0 <= error.offset <= error.end <= len(text), f"{error} is outside"  # noqa: PT017 (no test expects it)
        return
    for result in results:
        _check_value(result.value)
    assert time.perf_counter() - began < seconds, "too slow"


def _check_value(value: Any) -> None:
    try:
        text = "\n".join(lines(value, plain_style))
        assert lines(value, cxx_style)
    except LayoutError as error:
        if error.code != Code.TEXT_INTEGER_RANGE:  # an integer that leaves 64 bits
            raise
        return
    if isinstance(value, Layout | ComposedLayout) and "()" not in text:
        assert parse_layout(text) == value, text


def run(seed: int, count: int, seconds: float = inf) -> list[tuple[str, str]]:
    """Checks `count` texts; the texts that failed, each with what happened."""
    random = Random(seed)
    failures: list[tuple[str, str]] = []
    for _ in range(count):
        text = expression(random)
        if random.random() < 0.5:
            text = broken(random, text)
        try:
            check(text, seconds)
        except Exception as error:  # whatever it is, it is a finding, and the next text is tried
            failures.append((text, "".join(format_exception(error))))
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks many texts; 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.layout_command.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, metavar="N", help="how many texts (default: 100000)")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="the first text (default: the time)")
    args = parser.parse_args(arguments)
    seed = time.time_ns() if args.seed is None else args.seed
    failures = run(seed, args.count, MAX_SECONDS)
    for text, happened in failures[:20]:
        print(f"{text!r}\n{happened}")
    print(f"{args.count} texts, seed {seed}: {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
