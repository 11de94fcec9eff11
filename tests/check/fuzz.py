# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random and broken fills and checks: `python -m tests.check.fuzz --count 100000`.

Each text must be evaluated or refused as an ExpressionError with a place in the text, soon. The arguments have every
element type and every rank, so that a result has as well.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from inspect import signature
from math import inf
from random import Random
from traceback import format_exception
from typing import Any

import ml_dtypes
import numpy as np
from tilefold.dialects.run.grammar import ExpressionError
from tilefold.runtime.check import check_results, fill_argument
from tilefold.runtime.check.evaluate import Function
from tilefold.runtime.check.fill import make_generators
from tilefold.runtime.check.functions import FUNCTIONS

from tests.words import foreign

MAX_SECONDS = 20.0  # on a busy machine; most texts take some milliseconds

DTYPES = tuple(np.dtype(each) for each in (
    np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64,
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
))  # fmt: skip
_SHAPES = ((1,), (4,), (3, 4), (4, 3), (2, 3, 4), (1, 1), (2, 1, 2, 2))
_FILLS = make_generators("A", (2,), np.dtype(np.float32), 0)
_NUMBERS = (
    *("0", "1", "2", "3", "-1", "-2", "0.5", "1e30", "-1e300", "7", "64", "9223372036854775807"),
    *("-9223372036854775807", "18446744073709551615", "0xffffffff", "1e-320", "inf", "-inf", "4294967296"),
)
_COMPARISONS = ("==", "~=", "!=", "<", "<=", ">", ">=")
_BINARY = ("+", "-", "*", "/", "//", "%", "**", "@", "==", "!=", "<", "<=", ">", ">=")
_KEYWORDS = ("axis", "seed", "keepdims", "shape", "offset", "eps", "std", "lo", "a", "nothing")
_TOKENS = (*_NUMBERS, *_BINARY, *"()[]:,.=A~", "and", ".T", "~=", "'", "\\", "\n", "é")


def arguments(random: Random) -> dict[str, Any]:
    """Arguments of a launch: an array of any type and rank for each of A to D, and two numbers."""
    found: dict[str, Any] = {}
    common = random.choice(_SHAPES)
    for name in "ABCD":
        shape, dtype = random.choice((common, common, common, random.choice(_SHAPES))), random.choice(DTYPES)
        values = np.array([random.choice((0, 1, 2, 3, 100)) for _ in range(int(np.prod(shape)))])
        values = values.astype(dtype).reshape(shape)
        found[name] = np.asfortranarray(values) if random.random() < 0.5 else values
    return {**found, "n": random.choice((0, 3, -5)), "x": random.choice((0.0, 1.5, float("nan"), float("inf")))}


def expression(random: Random, functions: Mapping[str, Function], depth: int = 3) -> str:
    """An expression whose parts fit together as often as not."""
    if depth == 0 or random.random() < 0.15:
        return random.choice((*"ABCDABCDABCD", "n", "x", random.choice(_NUMBERS)))
    inner = expression(random, functions, depth - 1)
    match random.randrange(8):
        case 0 | 1:
            return f"({inner} {random.choice(_BINARY)} {expression(random, functions, depth - 1)})"
        case 2:
            return f"{inner}[{', '.join([_index(random) for _ in range(random.choice((1, 1, 1, 2, 3)))])}]"
        case 3:
            return f"({inner}).T"
        case 4:
            return f"(-{inner})"
        case 5 if random.random() < 0.1:
            return f"({', '.join(random.choices(_NUMBERS, k=random.randrange(1, 4)))},)"
        case _:
            return _call(random, functions, depth)


def _call(random: Random, functions: Mapping[str, Function], depth: int) -> str:
    name = random.choice((*functions,))
    count = sum(each.default is each.empty for each in signature(functions[name]).parameters.values())
    if random.random() < 0.1:
        count = random.randrange(4)
    given = [expression(random, functions, depth - 1) for _ in range(count)]
    if name in ("reshape", "broadcast_to") and random.random() < 0.8:
        given[1:] = [random.choice(("(2, 3, 4)", "(-1,)", "(4, 1)", "12", "(4, 3)", "4", "(5, 3, 4)"))]
    if random.random() < 0.2:
        given.append(f"{random.choice(_KEYWORDS)}={random.choice((*_NUMBERS, '(0, 1)', '(2, 2)', 'A'))}")
    return f"{name}({', '.join(given)})"


def _index(random: Random) -> str:
    if random.random() < 0.5:
        return random.choice(("0", "0", "0", "1", "-1", "5", "A", "n", "1.5", "4294967296"))
    bounds = ("", "", "", "0", "1", "-1", "7", random.choice(("9223372036854775807", "x", "n")))
    return f"{random.choice(bounds)}:{random.choice(bounds)}" + random.choice(("", f":{random.choice(bounds)}"))


def condition(random: Random) -> str:
    """What a check states: one comparison or several."""
    sides = [
        f"{expression(random, FUNCTIONS)} {random.choice(_COMPARISONS)} {expression(random, FUNCTIONS)}"
        for _ in range(random.choice((1, 1, 2)))
    ]
    return " and ".join(sides)


def broken(random: Random, text: str) -> str:
    """`text` with some of its parts lost, doubled or replaced."""
    for _ in range(random.randrange(1, 4)):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.randrange(6))
        text = text[:start] + random.choice((random.choice(_TOKENS), text[start:end] * 2, "")) + text[end:]
    return text


def check(random: Random, text: str, given: Mapping[str, Any]) -> None:
    """Judges a condition. Raises AssertionError for what may not happen."""
    rtol, atol = random.choice((None, 0.0, 1e-3)), random.choice((None, 0.0, float("inf")))
    for result in check_results(text, given, rtol=rtol, atol=atol):
        assert result.passed == str(result).endswith(": ok")


def fill(random: Random, text: str, given: Mapping[str, Any]) -> None:
    """Fills an argument. Raises AssertionError for what may not happen."""
    shape, dtype = random.choice((*_SHAPES, ())), random.choice(DTYPES)
    filled = fill_argument(text, "E", shape, dtype, given)
    assert (filled.values.shape, filled.values.dtype) == (shape, dtype)


def treat(random: Random, seconds: float = inf) -> None:
    """Evaluates one text, for which it may take so many `seconds`; what it raises is a finding."""
    given = arguments(random)
    fills = random.random() < 0.4
    text = expression(random, {**FUNCTIONS, **_FILLS}) if fills else condition(random)
    if random.random() < 0.2:
        text = broken(random, text)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning of NumPy's would be printed as if it were ours
            (fill if fills else check)(random, text, given)
    except ExpressionError as error:
        if not 0 <= error.start <= error.end <= len(text) + 1 or foreign(error.message):
            raise AssertionError(f"{text!r}: {error.start}..{error.end}: {error}") from None
    except Exception as error:
        raise AssertionError(f"{text!r} of {given}") from error
    taken = time.perf_counter() - began
    assert taken < seconds, f"{text!r} took {taken:.1f} s"


def run(seed: int, count: int, seconds: float = inf) -> list[str]:
    """Evaluates `count` texts; what happened to those that failed."""
    random = Random(seed)
    failures: list[str] = []
    for _ in range(count):
        try:
            treat(random, seconds)
        except AssertionError as error:
            failures.append("".join(format_exception(error)))
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluates many texts; 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.check.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, metavar="N", help="how many texts (default: 100000)")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="the first text (default: the time)")
    options = parser.parse_args(arguments)
    seed = time.time_ns() if options.seed is None else options.seed
    failures = run(seed, options.count, MAX_SECONDS)
    for happened in failures[:20]:
        print(happened)
    print(f"{options.count} texts, seed {seed}: {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
