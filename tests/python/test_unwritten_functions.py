# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`to_cute()` names each line of inline PTX whose function for the simulator the text of the kernel lacks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

import tilefold
from tilefold import cute

LANES = np.arange(32, dtype=np.int32)


@cute.kernel
def kernel(Out: cute.Tensor, text: cute.Constexpr[str], given: cute.Constexpr[Callable[..., Any]]):
    t, _, _ = cute.arch.thread_idx()
    Out[t] = cute.arch.inline_ptx(text, "=r,r,r", t, 5, results=cute.Int32, sim=given)


def exclusive(x: Any, y: Any) -> Any:
    return x ^ y


def _line() -> int:
    """The line of the inline PTX."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "Out[t] = cute.arch.inline_ptx" in line)


@pytest.mark.parametrize("text", ["lop3.b32 $0, $1, $2, $2, 0x3c;", "{ .reg .b32 r; xor.b32 $0, $1, $2; }"])
def test_text_that_the_simulator_knows(text: str, recwarn: pytest.WarningsRecorder) -> None:
    out = np.zeros(32, np.int32)
    file = kernel(out, text, exclusive).build(block=32).to_cute()
    assert not recwarn.list
    call: Any = tilefold.load(file).kernel()(out)
    call.launch(1, device="sim")
    assert out.tolist() == (LANES ^ 5).tolist()


@pytest.mark.parametrize("of_last", [False, True], ids=["of a built kernel", "of the last kernel"])
def test_text_that_the_simulator_does_not_know(of_last: bool) -> None:
    out = np.zeros(32, np.int32)
    built: Any = kernel(out, "@p xor.b32 $0, $1, $2;", exclusive).build(block=32)
    with pytest.warns(RuntimeWarning, match=r"the simulator rejects this inline PTX \(E3201\)") as caught:
        file = (kernel if of_last else built).to_cute()
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, _line())]
    call: Any = tilefold.load(file).kernel()(out)
    with pytest.raises(ProgramError, match="E3201"):
        call.launch(1, device="sim")
    kernel(out, "@p xor.b32 $0, $1, $2;", exclusive).launch(grid=1, block=32, device="sim")
    assert out.tolist() == (LANES ^ 5).tolist()


def test_only_to_cute_warns(recwarn: pytest.WarningsRecorder) -> None:
    out = np.zeros(32, np.int32)
    kernel(out, "@p xor.b32 $0, $1, $2;", exclusive).build(block=32).ir("cute")

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out, "@p xor.b32 $0, $1, $2;", exclusive).launch(grid=1, block=32, device="sim")

    host(out)
    assert not [warning for warning in recwarn.list if "E3201" in str(warning.message)]
    assert out.tolist() == (LANES ^ 5).tolist()
