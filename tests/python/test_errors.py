# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in kernels: the code, the user's line and column, and what the message says."""

import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.layout.errors import TilefoldError

from tilefold import cute

# ruff: noqa: SIM108, B007
# pyright: reportPossiblyUnboundVariable=false, reportConstantRedefinition=false

# Each function has a comment `# error: CODE, pattern` on the line of its mistake.


def only_one_branch(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t > 3:
        x = 1
    out[t] = x  # error: E5007, 'x' has no value here: it has a value on one path only


def types_of_branches(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t > 3:
        x = cute.Float32(1.5)
    else:
        x = cute.Float16(2.0)
    out[t] = x  # error: E5007, of type Float32 on one path and of type Float16 on the other


def types_of_iterations(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    x = cute.Int32(0)
    for _ in cute.range(t):
        x = x * 0.5  # error: E5007, Int32 before the loop and of type Float32 after an iteration
    out[t] = x


def carried_tensor(out: Any) -> None:
    g = cute.local_tile(out, (4,), (0,))
    for i in cute.range(2):
        g[0] = 1  # error: E5007, a Tensor before the loop and another Tensor after an iteration
        g = cute.local_tile(out, (4,), (i,))


def after_a_loop(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    for i in cute.range(t):
        last = i
    out[t] = last  # error: E5007, only the loop at line


def counter_after_a_loop(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    for i in cute.range(t):
        pass
    out[t] = i  # error: E5007, 'i' has no value here


def other_lists(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    xs: list[Any] = []
    if t > 3:
        xs = [t]
    out[t] = len(xs)  # error: E5007, containers of other lengths or keys


def appended(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    xs: list[Any] = []
    for i in cute.range(t):
        xs.append(i * 2)  # error: E5007, containers of other lengths or keys after an iteration
    out[t] = xs[0]


class Plain:
    """An object whose attributes control flow does not follow."""

    value: Any = 0


def attribute(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    found = Plain()
    for i in cute.range(t):
        found.value = i * 2
    out[t] = found.value  # error: E5008, a value is used outside the loop at line


def value_of_a_condition(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    x = out if t > 3 else None  # error: E5006, a Tensor on one path and None on the other
    print(x)


def not_every_path_returns(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()

    def chosen(x: Any) -> Any:
        if x > 3:  # error: E5007, what the function returns has no value here
            return cute.Int32(5)

    out[t] = chosen(t)


def comprehension(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = len([i for i in range(4) if t > i])  # error: E5003, cannot decide what Python does


def plain_helper(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = _helper(t)


def _helper(x: Any) -> Any:
    if x > 3:  # error: E5003, cannot decide what Python does
        return x
    return 0


def global_statement(out: Any) -> None:
    global FUNCTIONS  # error: E5005, 'global' cannot become part of a kernel
    FUNCTIONS = out


def generator(out: Any) -> Any:
    yield out  # error: E5005, 'yield' cannot become part of a kernel


def walrus(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = 1 if t > 3 and (y := t) else 2  # error: E5005, ':=' in an operand of 'and'


def returned(out: Any) -> Any:  # error: E5005, returns a value of type int
    return 5


def enumerated(out: Any) -> None:
    for i, j in enumerate(cute.range(3)):  # error: E5003, cannot be iterated by Python
        out[i] = j


def fractions(out: Any) -> None:
    for i in cute.range(1.5):  # type: ignore  # error: E5002, the stop of a range is an integer, not float
        out[i] = i


def no_step(out: Any) -> None:
    for i in cute.range(0, 4, 0):  # error: E5002, the step of a range is 0
        out[i] = i


def unrolled_with_break(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    for i in cute.range(t, unroll=2):  # error: E2007, cannot be unrolled
        if i > 3:
            break


def unrolled_too_far(out: Any) -> None:
    for i in cute.range(4, unroll=5000):  # error: E2007, unroll is 5000
        out[i] = i


@cute.kernel
def _other(out: cute.Tensor):
    out[0] = 1.0


def launched_within(out: Any) -> None:
    _other(np.zeros(3, np.float32)).launch(1, 32, device="sim")  # error: E5005, launched within another kernel


def refused_by_a_pass(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    for i in cute.range(t, unroll_full=True):  # error: E2007, how often it runs is not known
        out[i] = 1


def refused_by_a_view(out: Any) -> None:
    cute.local_tile(out, (5,), (0,))  # error: E0314, tiles of 5 do not divide


def refused_while_it_runs(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t + 1] = 5  # error: E3202, out of bounds


FUNCTIONS = [v for n, v in dict(globals()).items() if n[0].islower() and getattr(v, "__module__", "") == __name__]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_message_is_at_the_line(function: Callable[..., Any]) -> None:
    shown = _helper if function is plain_helper else function
    lines, start = inspect.getsourcelines(shown)
    number, text = next((i, line) for i, line in enumerate(lines, start) if "# error: " in line)
    code, _, pattern = text.partition("# error: ")[2].strip().partition(", ")
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(function)(np.zeros(32, np.float32)).launch(grid=1, block=32, device="sim")
    assert caught.value.code == code
    message = str(caught.value)
    assert re.match(rf"{re.escape(__file__)}:{number}:\d+: error\[{code}\]: ", message), message
    assert pattern in message
    assert function is returned or text.rstrip() in message


def test_the_marked_text_is_the_expression() -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(refused_by_a_view)(np.zeros(32, np.float32)).build(32)
    _, line, marker, *_ = str(caught.value).splitlines()
    assert line[marker.index("^") : marker.rindex("^") + 1] == "cute.local_tile(out, (5,), (0,))"


def test_what_python_raises_goes_through_with_a_note() -> None:
    def kernel(out: Any) -> None:
        t, _, _ = cute.arch.thread_idx()
        if t > 3:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        cute.kernel(kernel)(np.zeros(32, np.float32)).build(32)
    notes = " ".join(caught.value.__notes__)
    assert "each branch of an 'if' on a value of the kernel is built" in notes
    assert "while the kernel 'kernel' was built" in notes


def test_a_name_that_does_not_exist_is_a_name_error() -> None:
    def kernel(out: Any) -> None:
        out[0] = missing  # type: ignore  # noqa: F821

    with pytest.raises(NameError, match="missing"):
        cute.kernel(kernel)(np.zeros(32, np.float32)).build(32)


def test_errors_come_from_other_processes_as_they_are() -> None:
    @cute.kernel
    def kernel(out: Any) -> None:
        out[0] = "text"

    for call in (kernel(np.zeros(1)), kernel([1]).build):
        with pytest.raises(TilefoldError) as caught:
            _ = call.launch(1, 1, device="sim") if isinstance(call, cute.KernelCall) else call(0)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.__dict__) == (
            type(caught.value), str(caught.value), caught.value.__dict__
        )  # fmt: skip
