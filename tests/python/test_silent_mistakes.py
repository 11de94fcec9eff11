# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes that Python lets pass: comparisons that are never true, tensors as conditions, calls without a launch."""

import gc
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.python.test_mistakes import build
from tilefold import cute

VALUES = ("n", "A[0]", "n > 1", "x", "x[0, 0]", "x > 0")
FOREIGN = ("'1'", "b'1'", "[1]", "(1, 2)", "{1: 2}", "object()", "np", "cute.Float32", "1j", "len", "...")


@pytest.mark.parametrize("other", FOREIGN)
@pytest.mark.parametrize("sign", ["==", "!=", "<", ">=", "+", "*", "//", "&", "**"])
def test_nothing_foreign_compares_with_a_value(sign: str, other: str) -> None:
    """On both sides of every operator an object that is no number is an error of ours, at the line."""
    for value in VALUES:
        for expression in (f"({value}) {sign} ({other})", f"({other}) {sign} ({value})"):
            with pytest.raises(TilefoldError) as caught:
                build(expression)
            is_repeated = sign == "*" and value not in ("x", "x > 0")  # a list, by a number, which Python asks for
            assert caught.value.code in (("E5002", "E5003") if is_repeated else ("E5002",)), expression
            assert str(caught.value).startswith("user.py:1:"), expression


def test_the_message_names_the_object_and_the_cure() -> None:
    for expression, message, hint in (
        ("A[0] == '1'", "Float32(?) is compared with an object of type str", "write the number without quotes"),
        ("x != [1]", "Float32(4,8) is compared with an object of type list", "compare it with a number"),
        ("n in ['1', 2]", "Int32(?) is compared with an object of type str", "without quotes"),
        ("A == 1", "'==' does not compare the elements of a tensor", "t.load() == u.load()"),
        ("A != r", "'==' does not compare the elements of a tensor", "t[i, j] == u[i, j]"),
    ):
        with pytest.raises(TilefoldError, match="E5002") as caught:
            build(expression)
        assert message in caught.value.message
        assert hint in caught.value.hint


def test_nothing_is_equal_to_none_and_objects_that_compare_decide() -> None:
    """`None` stands for an argument that is not given, which a value never is."""
    for expression in ("n == None", "A == None", "x == None", "n != None and 1"):
        build(expression)

    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # pyright: ignore[reportAssignmentType]

    @cute.kernel
    def compares(out: cute.Tensor):
        assert (out[0] == Equal()) is True
        assert (Equal() == out[0]) is True

    compares(np.zeros(1, np.float32)).build(1)


@pytest.mark.parametrize("thing", ["A", "r", "A.iterator", "A.iterator.raw_ptr()", "cute.make_identity_tensor((4, 4))"])
@pytest.mark.parametrize(
    "form", ["bool({})", "not {}", "{} and 1", "{} or 1", "1 if {} else 2", "[1 for _ in [1] if {}]"]
)
def test_a_tensor_is_no_condition(form: str, thing: str) -> None:
    with pytest.raises(TilefoldError, match="E5003") as caught:
        build(form.format(thing))
    assert "is neither true nor false" in caught.value.message
    assert "`x is not None`" in caught.value.hint
    assert str(caught.value).startswith("user.py:1:")


def test_a_statement_on_a_tensor_names_its_line() -> None:
    def branch(out: Any) -> None:
        if out:
            out[0] = 1

    def loop(out: Any) -> None:
        while out:
            out[0] = 1

    for function in (branch, loop):
        with pytest.raises(TilefoldError, match="E5003") as caught:
            cute.kernel(function)(np.zeros(4, np.float32)).build(1)
        assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno + 1}:")


def test_a_text_holds_no_value() -> None:
    def contained(out: Any) -> None:
        if out[0] in "12":
            out[0] = 1

    with pytest.raises(TilefoldError, match="E5002") as caught:
        cute.kernel(contained)(np.zeros(4, np.float32)).build(1)
    assert "never in a str" in caught.value.message


# calls that are not launched


@cute.kernel
def k(A: cute.Tensor, *more: Any):
    A[0] = 1.0


@cute.kernel
def plain(A: cute.Tensor):
    A[0] = 1.0


class Holder:
    @cute.kernel
    def method(self, A: cute.Tensor):
        A[0] = 1.0

    @cute.jit
    def launches(self, A: cute.Tensor):
        plain(A).launch(1, 1)


A = np.zeros(4, np.float32)
tuned = cute.autotune(configs=[{}], grid=1, block=1)(plain)


def bare() -> None:
    plain(A)  # dropped


def several_arguments() -> None:
    k(A, 1)  # dropped


def without_parentheses() -> None:
    plain(A).launch  # noqa: B018  # dropped  # pyright: ignore[reportUnusedExpression]


def of_an_object() -> None:
    holder = Holder()
    holder.method(A)  # dropped


def in_a_loop() -> None:
    for kernel in {"plain": plain}.values():
        kernel(A)  # dropped


def choosing() -> None:
    tuned(A)  # dropped


def on_two_lines() -> None:
    plain(  # dropped
        A
    )


def in_an_except_clause() -> None:
    try:
        raise ValueError
    except ValueError:
        plain(A)  # dropped


def _dropped(function: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function()
        gc.collect()
    return [each for each in seen if "is not launched" in str(each.message)]


FORGOTTEN = (
    bare, several_arguments, without_parentheses, of_an_object, in_a_loop, choosing, on_two_lines, in_an_except_clause,
)  # fmt: skip


@pytest.mark.parametrize("function", FORGOTTEN, ids=lambda f: f.__name__)
def test_a_call_that_is_dropped_warns_at_its_line(function: Callable[[], None]) -> None:
    (seen,) = _dropped(function)
    lines = Path(__file__).read_text().splitlines()
    first = function.__code__.co_firstlineno
    line = next(number for number in range(first, first + 9) if "# dropped" in lines[number - 1])
    assert (seen.filename, seen.lineno) == (__file__, line)
    assert issubclass(seen.category, RuntimeWarning)
    name = re.match(r"the kernel '(\w+)' is not launched: \1\(...\) only binds", str(seen.message))
    assert name is not None
    assert f"write {name[1]}(...).launch(" in str(seen.message)


def _made() -> Any:
    return plain(A)


def _fails() -> None:
    with pytest.raises(TilefoldError):
        plain(A).build(4096)
    with pytest.raises(TilefoldError):
        plain(A).launch(grid=0, block=1)


def _stops() -> None:
    call = plain(A)
    assert call is not None
    raise ValueError


def _catches() -> None:
    with suppress(ValueError):
        _stops()


def _makes_none() -> None:
    cute.KernelCall()  # which no kernel has made
    with pytest.raises(TilefoldError):
        plain(A, 1)  # pyright: ignore[reportUnusedCallResult]


def _keeps() -> None:
    call = plain(A)
    calls = [plain(A), call]
    calls.pop()
    del calls, call


KEPT: list[Callable[[], object]] = [
    lambda: plain(A).launch(1, 1, device="sim"), lambda: plain(A).check(1, 1), lambda: plain(A).build(1),
    lambda: plain(A).costs(1, 1), lambda: plain(A).build(1).ptx(), lambda: tuned(A).launch(device="sim"),
    lambda: tuned(A).build({}), lambda: k(A, 1).launch(1, 1, device="sim"), lambda: k(A, 1).check(1, 1),
    lambda: Holder().launches(A), lambda: repr(plain(A)), lambda: [plain(A)], _made, _fails, _catches, _keeps,
    _makes_none,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(KEPT)))
def test_a_call_that_is_used_or_kept_is_no_mistake(number: int) -> None:
    def statement() -> None:
        KEPT[number]()

    assert not _dropped(statement)


def test_a_prompt_keeps_its_last_result() -> None:
    """There the statement shows the call and `_` holds it; the next result lets go of it."""
    names: dict[str, Any] = {"plain": plain, "A": A}

    def prompt() -> None:
        for line in ("plain(A)", "1", "2"):
            exec(compile(line, "<stdin>", "single"), names)

    shown: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "displayhook", shown.append)
        assert not _dropped(prompt)
    assert len(shown) == 3


def test_the_end_of_a_program_is_no_mistake(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nfrom tilefold import cute\n\n\n@cute.kernel\ndef k(A: cute.Tensor):\n    A[0] = 1.0\n\n\n"
        "kept = k(np.zeros(1, np.float32))\nothers = [k(np.zeros(1, np.float32))]\n"
    )
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")
