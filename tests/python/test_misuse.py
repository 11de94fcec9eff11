# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of any kind end in an error with a code: a short run of `tests.python.misuse`, and mistakes of the host."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.python.misuse import main
from tilefold import cute


def test_no_argument_ends_in_an_error_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "600"]) == 0, capsys.readouterr().out


def test_what_ends_in_an_error_of_python_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(expression: str) -> None:
        raise TypeError(f"{expression} of 'Tensor'")

    monkeypatch.setattr("tests.python.misuse.build", build)
    assert main(["--count", "3"]) == 1
    assert "3 expressions, 3 ended wrongly" in capsys.readouterr().out


def test_mistakes_of_the_host_have_codes() -> None:
    layout: Any = cute.make_layout((4, 8))
    for wrong, code in (
        (lambda: cute.stride(None), "E5002"),
        (lambda: cute.cosize(3), "E5002"),
        (lambda: cute.make_layout(np.zeros(3)), "E5002"),
        (lambda: cute.select((1, 2), object()), "E5002"),
        (lambda: cute.group_modes((1, 2), None, "a"), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.group_modes(cute.make_layout((2, 3)), 1.5), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.blocked_product(layout, (1, 2)), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: layout["a"], "E0208"),
        (lambda: cute.Swizzle("a", 1, 2), "E0210"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.if_(True, "a"), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.Int(3), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.absolute([]), "E5002"),
    ):
        with pytest.raises(TilefoldError) as caught:
            wrong()
        assert caught.value.code == code


def test_errors_of_the_user_stay_pythons() -> None:
    """What the user's own functions raise, also where ours call them, goes through."""

    def raises() -> Any:
        raise ValueError("mine")

    @cute.kernel(preprocessor=False)
    def called(n: cute.Int32):
        cute.if_(n > 1, raises)

    @cute.kernel(preprocessor=False)
    def of_numpy(n: cute.Int32):
        np.zeros("a")  # pyright: ignore[reportCallIssue, reportArgumentType]

    with pytest.raises(ValueError, match="mine"):
        called(1).build(1)
    with pytest.raises(TypeError):
        of_numpy(1).build(1)
