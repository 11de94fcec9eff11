# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signals that arrive within a function that holds them back: their handlers run once it has ended."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Thread

import pytest
from tilefold.base.held_signals import holding_signals

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@contextmanager
def handlers(handler: Callable[[int, object], object]) -> Generator[None, None, None]:
    """Within it, `handler` is that of all SIGNALS."""
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
        assert all(signal.getsignal(number) is handler for number in SIGNALS), "a handler has not come back"
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def test_handlers_run_once_after_the_function() -> None:
    events: list[object] = []

    @holding_signals
    def work(value: int) -> int:
        for number in (*SIGNALS, signal.SIGINT):
            signal.raise_signal(number)
        events.append("worked")
        return value + 1

    with handlers(lambda number, frame: events.append((number, frame is not None))):
        assert work(2) == 3
    assert events[0] == "worked"
    assert sorted(map(str, events[1:])) == sorted(str((int(number), True)) for number in SIGNALS)


def test_every_handler_runs_even_if_each_raises() -> None:
    ran: set[int] = set()

    def refuse(number: int, _: object) -> None:
        ran.add(number)
        raise KeyboardInterrupt(number)

    @holding_signals
    def work() -> None:
        for number in SIGNALS:
            signal.raise_signal(number)

    with handlers(refuse):
        with pytest.raises(KeyboardInterrupt):
            work()
        assert ran == set(SIGNALS)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_an_error_of_the_function_comes_with_the_interrupt() -> None:
    @holding_signals
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        raise ValueError

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)


def test_functions_within_others_hold_signals_as_long_as_the_outermost() -> None:
    events: list[object] = []

    @holding_signals
    def inner() -> None:
        signal.raise_signal(signal.SIGINT)
        events.append("inner")

    @holding_signals
    def outer() -> None:
        inner()
        events.append("outer")

    with handlers(lambda number, _: events.append(number)):
        outer()
    assert events == ["inner", "outer", signal.SIGINT]


def test_choices_of_the_system_and_other_threads_are_left_alone() -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    seen: list[tuple[object, object]] = []
    try:
        look = holding_signals(lambda: seen.append((signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGINT))))
        look()
        thread = Thread(target=look)
        thread.start()
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    (here, held), there = seen
    assert here is signal.SIG_IGN
    assert held is not signal.getsignal(signal.SIGINT)
    assert there == (signal.SIG_IGN, signal.getsignal(signal.SIGINT))
