# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of Python in kernels that docs/python.md lists mean what they mean in Python, as in test_control_flow.py."""

import math
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.python.test_control_flow import THREADS, call
from tilefold import cute

# pyright: reportPossiblyUnboundVariable=false, reportUnnecessaryComparison=false, reportConstantRedefinition=false


STATE: dict[str, Any] = {}


def values_of_and_and_or(t: Any, n: Any) -> Any:
    x = n or t or 9
    y = (t > 3 and n) or t
    z = (t * 0.5) and 3
    return x + y * 100 + z * 1000 + (1 if t and n else 2) + bool(t and n)


def membership(t: Any, n: Any) -> Any:
    found = 1 if t in (1, 5, n) else 0
    if t not in [3, 4] and n in {"a": n, "b": 3}.values():
        found += 10
    found += 100 if t in range(3, 20, 2) else 0
    found += 1000 if t in range(20, n, n - 8) else 0
    found += 10000 if 0 < t in range(n) else 0
    return found + (5 if "a" in {"a": t} and None not in (t, n) else 0)


def steps_of_any_sign(t: Any, n: Any) -> Any:
    total = 0
    for i in range(20, 0, -(t + 1)):
        total = total * 2 % 101 + i
    for i in range(20, t, n - 8):
        if i == 13:
            break
        total = total * 2 % 101 + i
    for i in range(3, 20 - t, t - 40):
        total += i
    for i in range(0, 20, n + 1):
        total = total * 3 % 101 + i
    return total


def rounding(t: Any, n: Any) -> Any:
    x = (t - 16) / 4
    q, r = divmod(t - 16, n + 2)
    queue = deque([t, n], maxlen=2)
    for i in range(n):
        queue[0] += i
    return round(x) + 100 * math.floor(x) + 10000 * math.ceil(x) + round(t) + q * 7 + r * 3 + math.trunc(x) + queue[0]


def else_of_try(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        try:
            if i == t:
                continue
            total += i
        except KeyError:
            total = -1
        else:
            total += 100
        finally:
            total += 1000
    try:
        if t > 3:
            return total
    finally:
        for i in range(n):
            if i > 3:
                break
            total += 1
    try:
        return total + 7
    except ValueError:
        return 3
    else:
        return 4


def suppressed(t: Any, n: Any) -> Any:
    with suppress(KeyError):
        return STATE["no such key"]
    with suppress(ValueError):
        raise ValueError
    with nullcontext():
        if t > n:
            return 1
        else:
            return 2


def always_returns(t: Any, n: Any) -> Any:
    for i in range(n):
        for j in cute.range_constexpr(3):
            if i * j == t:
                break
        else:
            continue
        return i * 10 + j
    else:
        while n > 0:
            n -= 1
            if n == 3:
                return 77
        else:
            i = 0
            while True:
                i += 1
                for j in range(i):
                    if j * j > t:
                        return j


def raises_at_the_end(t: Any, n: Any) -> Any:
    def chosen(kind: str, x: Any) -> Any:
        if kind == "a":
            if x > 3:
                return 1
            return 2
        elif kind == "b":
            return x
        raise ValueError(kind)

    return chosen("a", t) + chosen("b", n)


def matches(t: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        match (i + t) % 5:
            case 0:
                continue
            case 3 | 4 if n > 5:
                total += 100
            case k if k > 3:
                break
            case k:
                total += k
    match None:
        case None:
            total += 1000
    match total:
        case -1 | 0:
            return 5
        case _:
            return total


def matches_objects(t: Any, n: Any) -> Any:
    match [t, n, "b"]:
        case [x, y, "a"]:
            return x + y
        case [x, *rest]:
            if x > n:
                return x
            return rest[0] * 100
        case _:
            return 0


def named_in_conditions(t: Any, n: Any) -> Any:
    if (x := t + 1) > 3 and n > 0:
        return x
    if 2 < (y := n + 1) < 9:
        return y + x
    xs = [last := i * t for i in range(3)]
    return sum(xs) + last + (z * 2 if (z := t + 1) > 3 else z)


@dataclass
class Point:
    """A variable of two parts."""

    x: Any
    y: Any = 0


class Base:
    """What `super()` finds."""

    def scaled(self, x: Any) -> Any:
        return x * 2


class Derived(Base):
    """Has private names, and calls what it overrides within control flow."""

    def __init__(self) -> None:
        self.__factor = 3

    @cute.jit
    def scaled(self, x: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        __most = 0
        if x > 3:
            __most = super().scaled(x) * self.__factor
        for _ in range(2):
            __most += 1
        return __most

    def adder(self) -> Callable[[Any], Any]:
        @cute.jit
        def added(x: Any) -> Any:
            __sum = 0
            if x > self.__factor:
                __sum = x
            return __sum

        return added


def methods_with_private_names(t: Any, n: Any) -> Any:
    return Derived().scaled(t) + Derived().adder()(n) * 1000


def classes_and_generators_within(t: Any, n: Any) -> Any:
    class Clamp:
        def __init__(self, most: Any) -> None:
            self.most = most

        def __call__(self, x: Any, least: Any = t if n > 3 else 1) -> Any:
            if x > self.most:
                return self.most
            return max(x, least)

    def squares(count: int) -> Generator[Any, None, None]:
        for i in range(count):
            yield i * t

    @contextmanager
    def doubled(x: Any) -> Generator[Any, None, None]:
        yield x * 2

    with doubled(n) as twice:
        if twice > t:
            return Clamp(5)(t) + sum(squares(3))
    return -twice


def parts_of_globals(t: Any, n: Any) -> Any:
    STATE["sum"] = 0
    for i in range(n):
        STATE["sum"] += i
    if t > 3:
        STATE["sum"] += 100
    return STATE["sum"]


FUNCTIONS = [v for k, v in dict(globals()).items() if k[0].islower() and getattr(v, "__module__", "") == __name__]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_kernel_computes_what_python_does(function: Callable[[Any, Any], Any]) -> None:
    for n in (0, 1, 7):
        expected = [_number(function, t, n) for t in range(THREADS)]
        for stage in ("cute", "instr"):
            out = np.full(THREADS, -7, np.int32)
            call(function, out, n).launch(grid=1, block=THREADS, device="sim", stage=stage)
            assert out.tolist() == expected, (n, stage)


def _number(function: Callable[[Any, Any], Any], t: int, n: int) -> int:
    return int(function(t, n))
