# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in kernels: the code, the user's line and column, and what the message says."""

import inspect
import pickle
import re
import runpy
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

# ruff: noqa: SIM108, B007, B012
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
    for _ in cute.range(2):
        g[0] = 1  # error: E5007, a Tensor before the loop and another Tensor after an iteration
        g = cute.make_rmem_tensor((4,), cute.Float32)


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
    out[t] = len(xs)  # error: E5007, containers with different lengths or keys


def appended(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    xs: list[Any] = []
    for i in cute.range(t):
        xs.append(i * 2)  # error: E5007, containers with different lengths or keys after an iteration
    out[t] = xs[0]


class Guarded:
    """An object whose attributes control flow does not follow: it sets them in a way of its own."""

    value: Any = 0

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)


def attribute(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    found = Guarded()
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
        if x > 3:  # error: E5007, the function's result has no value here
            return cute.Int32(5)

    out[t] = chosen(t)


def comprehension(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = len([i for i in range(4) if t > i])  # error: E5003, Python evaluates a comprehension


def assertion(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    assert t < 32  # error: E5003, an assertion is checked while the kernel is built


def guard(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    match (t, 1):
        case (x, 1) if x > 3:  # error: E5003, Python evaluates match
            out[t] = 1
        case _:
            pass


def element_of_a_list(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[0] = {"größe": [1, 2]}["größe"][t]  # error: E5003, Python needs a number here


def operands_of_other_types(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    x = (t > 3 and None) is None  # error: E5006, the value of 'and' has no value here
    print(x)


def never_ends(out: Any) -> None:
    done = False
    while not done:  # error: E5010, more than 1048576 iterations
        pass


def recursion(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()

    def factorial(n: Any) -> Any:
        return 1 if n < 2 else n * factorial(n - 1)  # error: E5010, does a recursion never end

    out[t] = factorial(t)


def digits(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = round(out[t], 1)  # error: E5002, a value can be rounded to an integer only


def number_that_is_too_large(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    if cute.Int32(t) < 3_000_000_000:  # error: E5002, 3000000000 is not a number of type Int32
        out[t] = 1


def sorted_values(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = sorted([t, 3])[0]  # error: E5003, Python cannot branch on a


def formatted(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    print(f"{t:3d}")  # error: E5003, Python formats text while the kernel is built


def grown_set(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    xs = {1}
    for _ in cute.range(t):
        xs.add(2)  # error: E5007, 'xs' has no value here: it holds containers with different lengths
    out[t] = len(xs)


def reversed_range(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    for i in reversed(range(t)):  # error: E5003, Python cannot reverse
        out[i] = 1


def length_of_a_range(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = len(range(t))  # error: E5003, Python does not know


def part_of_a_global(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t > 3:  # error: E5006, the global 'TABLE' differs between paths
        TABLE["other"] = t


TABLE: dict[str, Any] = {}


async def coroutine(out: Any) -> None:  # error: E5005, 'async def' is not supported in a kernel
    out[0] = 1


def plain_helper(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = _helper(t)


def _helper(x: Any) -> Any:
    if x > 3:  # error: E5003, Python cannot branch on a
        return x
    return 0


def global_statement(out: Any) -> None:
    global FUNCTIONS  # error: E5005, 'global' is not supported in a kernel
    FUNCTIONS = out


def generator(out: Any) -> Any:
    yield out  # error: E5005, 'yield' is not supported in a kernel


def walrus(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t] = y if t > 3 and (y := t) else 2  # error: E5005, ':=' in an operand of 'and'


def break_in_finally(out: Any) -> None:
    for i in cute.range(3):
        try:
            out[i] = 1
        finally:
            break  # error: E5005, 'break' in 'finally'


def return_in_finally(out: Any) -> None:
    try:
        out[0] = 1
    finally:
        for _ in range(3):
            return  # error: E5005, 'return' in 'finally'


def returned(out: Any) -> Any:  # error: E5005, returns a value of type int
    return 5


def enumerated(out: Any) -> None:
    for i, j in enumerate(cute.range(3)):  # error: E5003, Python cannot iterate over
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
    for i in cute.range(1000, unroll_full=True):
        for j in cute.range(1000, unroll_full=True):  # error: E2007, copies of the loop's body
            out[i] = j


def refused_by_a_view(out: Any) -> None:
    cute.local_tile(out, (8,), (4,))  # error: E0215, out of range


def refused_while_it_runs(out: Any) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[t + 1] = 5  # error: E3202, out of range for extent 32


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
    assert pattern in caught.value.message  # the line in the excerpt has the pattern, too
    assert text.rstrip() in message


def test_the_marked_text_is_the_expression() -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(refused_by_a_view)(np.zeros(32, np.float32)).build(32)
    _, line, marker, *_ = str(caught.value).splitlines()
    assert line[marker.index("^") : marker.rindex("^") + 1] == "cute.local_tile(out, (8,), (4,))"


@cute.jit
def outer(x: Any) -> Any:
    y = 0
    if x > 5:
        y = _helper(x)
    return y


def test_calls_that_led_to_an_error_are_shown() -> None:
    def kernel(out: Any) -> None:
        t, _, _ = cute.arch.thread_idx()
        for _ in cute.range(t):
            out[t] = outer(t)

    with pytest.raises(TilefoldError) as caught:
        cute.kernel(kernel)(np.zeros(32, np.float32)).build(32)
    shown = [line.strip() for line in str(caught.value).splitlines() if "^" not in line]
    at = [i for i, line in enumerate(shown) if line.endswith("note: called here")]
    assert [shown[i + 1] for i in at] == ["y = _helper(x)", "out[t] = outer(t)"]


def test_columns_are_those_of_characters() -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(element_of_a_list)(np.zeros(32, np.float32)).build(32)
    _, line, marker, *_ = str(caught.value).splitlines()
    assert line[marker.index("^") : marker.rindex("^") + 1] == '{"größe": [1, 2]}["größe"][t]'


def test_loops_that_build_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilefold.builder.tracing.state.MAX_OPERATIONS", 500)

    def kernel(out: Any) -> None:
        t, _, _ = cute.arch.thread_idx()
        for i in count():
            out[t + i] = 1

    with pytest.raises(TilefoldError, match="more than 500 operations; does a loop that Python runs never"):
        cute.kernel(kernel)(np.zeros(32, np.float32)).build(32)


def test_hints_are_in_the_words_of_python() -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(refused_by_a_pass)(np.zeros(32, np.float32)).launch(grid=1, block=32, device="sim")
    assert "cute.range(..., unroll=4)" in caught.value.hint
    assert "{unroll" not in str(caught.value)

    @cute.kernel
    def beyond(out: Any) -> None:
        out[0] = cute.local_tile(out, (20,), (1,))[12]

    with pytest.raises(TilefoldError) as caught:
        beyond(np.zeros(32, np.float32)).launch(grid=1, block=1, device="sim", stage="cute")
    assert "that cute.bounds of the coordinates" in caught.value.hint

    @cute.kernel
    def newer(out: Any) -> None:
        out[0] = cute.arch.elect_one().to(cute.Float32)

    with pytest.raises(TilefoldError, match="for the target sm_90 or newer"):
        newer(np.zeros(1, np.float32)).build(32).ptx("sm_80")


_LAMBDA: Callable[[Any], None] = lambda _: None  # noqa: E731
NO_FUNCTIONS: list[tuple[Any, str]] = [
    (_LAMBDA, "write def"),
    (print, "decorate a function"),
    (staticmethod(_helper), "where it is"),
]


@pytest.mark.parametrize(("function", "hint"), NO_FUNCTIONS)
def test_what_is_no_function(function: Any, hint: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(function)(1.0).build(32)
    assert caught.value.code == "E5004"
    assert hint in caught.value.hint


def test_a_file_that_has_changed(tmp_path: Path) -> None:
    """The function is that of the file as Python read it, so its text must be, too."""
    file = tmp_path / "changes.py"
    text = (
        "from tilefold import cute\n\n\n@cute.kernel\ndef kernel(out):\n    if out is not None:\n        out[0] = 1\n"
    )
    file.write_text(text)
    names = runpy.run_path(str(file))
    names["kernel"](np.zeros(32, np.float32)).build(32)
    for other in (text.replace("= 1", "= 2"), "x = 1\n" + text, ""):
        file.write_text(text)
        names = runpy.run_path(str(file))
        file.write_text(other)
        with pytest.raises(TilefoldError) as caught:
            names["kernel"](np.zeros(32, np.float32)).build(32)
        assert caught.value.code == "E5004"


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
