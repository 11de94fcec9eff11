# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants that differ in what a kernel can ask have different keys; those that do not have one."""

import gc
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from tilefold.layout.algebra.core import Layout, make_layout
from tilefold.runtime.arrays.constants import constant_key, is_exact
from tilefold.runtime.errors import LaunchError


@dataclass
class Config:
    x: object
    rest: object = ()


@dataclass(frozen=True)
class Frozen:
    x: object


class Color(Enum):
    RED = 1
    BLUE = 2


class Plain:
    pass


class Equal:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)


class Point(NamedTuple):
    x: int
    y: int


A_MILLION = np.zeros(10**6, np.float32)
PLAIN = Plain()

DIFFERENT: Sequence[Callable[[], Any]] = (
    lambda: 1, lambda: 1.0, lambda: True, lambda: 0.0, lambda: -0.0, lambda: 0j, lambda: -0j, lambda: "1", lambda: b"1",
    lambda: None, lambda: float("nan"), lambda: (1,), lambda: (1.0,), lambda: (True,), lambda: [1], lambda: [True],
    lambda: {1}, lambda: frozenset({1}), lambda: {True}, lambda: {1: 2}, lambda: {1: 2.0}, lambda: {2: 1},
    lambda: {1: 2, 3: 4}, lambda: {3: 4, 1: 2}, lambda: OrderedDict({1: 2}), lambda: Point(1, 2), lambda: (1, 2),
    lambda: Config(1), lambda: Config(1.0), lambda: Config([1]), lambda: Frozen(1), lambda: Frozen(True),
    lambda: np.float32(1), lambda: np.float64(1), lambda: np.int64(1), lambda: np.zeros(3), lambda: np.zeros(3, "f4"),
    lambda: np.zeros((3, 1)), lambda: -np.zeros(3), lambda: A_MILLION, lambda: A_MILLION + (np.arange(10**6) == 500000),
    lambda: Color.RED, lambda: Color.BLUE, lambda: int, lambda: Plain, lambda: PLAIN, lambda: make_layout((4, 2)),
    lambda: make_layout((2, 4)), lambda: len, lambda: partial(max, 1), lambda: partial(max, 1.0), lambda: gc,
)  # fmt: skip


def test_keys_differ_as_constants_do() -> None:
    keys = [constant_key("x", make()) for make in DIFFERENT]
    again = [constant_key("x", make()) for make in DIFFERENT]
    for number, (key, same) in enumerate(zip(keys, again, strict=True)):
        assert key == same, number
        assert hash(key) == hash(same), number
        assert [i for i, other in enumerate(keys) if other == key] == [number]


def test_what_is_told_apart_by_class_and_value() -> None:
    exact: list[Any] = [make() for make in DIFFERENT if is_exact(make())]
    assert {type(each) for each in exact} == {int, bool, str, bytes, type(None), type, type(len), Layout}
    assert all(type(x) is not type(y) or x != y for i, x in enumerate(exact) for y in exact[:i])


def test_a_plain_object_is_kept_alive() -> None:
    """Else a new object at the same address would be taken for it."""
    kept = {constant_key("x", Plain()) for _ in range(100)}
    gc.collect()
    assert len(kept) == 100
    assert constant_key("x", Plain()) not in kept


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("constant", "words"),
    [
        (Equal(), "'x' is a constant of type Equal, which has no hash"),
        ([(Equal(),)], "'x' is a constant of type Equal, which has no hash"),
        (LOOP, "'x' nests containers more than 32 deep"),
        (np.array([object()]), "'x' is a constant, but an array of type ndarray"),
    ],
)
def test_constants_without_a_key(constant: object, words: str) -> None:
    with pytest.raises(LaunchError, match=words) as error:
        constant_key("x", constant)
    assert error.value.code == "E3106"
    assert error.value.hint
