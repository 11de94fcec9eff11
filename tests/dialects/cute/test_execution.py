# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation of the `cute` dialect is executed: as it stands and after the passes, on the host and in a kernel.

In each form (static, dynamic, known at run time alone) and at each step the program prints what the algebra computes.
"""

from contextlib import redirect_stdout
from io import StringIO
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import LayoutError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pass_runner import parse_passes, run_passes
from tilefold.compiler.pipeline import PASSES
from tilefold.layout.algebra.core import Layout, size
from tilefold.layout.text.layouts import parse_layout

from tests.dialects.cute.cases import CASES
from tests.dialects.cute.examples import OPERATIONS, example
from tests.dialects.cute.forms import KINDS, LANES, Case, Form
from tests.dialects.cute.test_faults import OPERATIONS as REFUSED
from tilefold.driver.host_program import STAGES, Host
from tilefold.driver.lowering import Program, load

LOWERED = "cute-fold-static,cute-expand-ops,cute-to-base"
STEPS = ("", "cute-fold-static", LOWERED, f"{LOWERED},base-prepare")
"""The passes that have run before the program does."""

PRINTING = {
    "builtin.module", "func.func", "func.return", "arith.constant",
    "llvm.func", "llvm.mlir.global", "llvm.mlir.addressof", "llvm.getelementptr", "llvm.call",
}  # fmt: skip
"""What is left of a program whose results are known: constants, and the calls of printf that show them."""


DYNAMIC = tuple(case for case in CASES if case.numbers and not case.refused)
"""The cases that have dynamic forms."""


def name_of(case: Case) -> str:
    """How a test is called."""
    return case.name


def wanted(case: Case, *, dynamic: bool) -> str:
    """What the program is to print."""
    result: Any = case.wanted()
    values = cast(list[Any], result) if isinstance(result, list) else [result]
    text = "".join(f"{shown(case, value)}\n" for value in values)
    if not dynamic or not case.dynamic:
        return text
    found = parse_layout(case.dynamic)
    assert isinstance(result, Layout)
    assert [found(i) for i in range(size(found))] == [result(i) for i in range(size(result))]
    return f"{case.dynamic}\n"


def shown(case: Case, value: Any) -> str:
    """A value's text. Layouts of tiles are layouts; tiles alone are not written as tuples are."""
    is_tile = case.operands[0].startswith("tile ") and value == case.value(0)
    return (KINDS["tile"] if is_tile else KINDS["coord"]).show(value)


def printed(program: Program, stage: str = "cute") -> str:
    """What a program prints."""
    out = StringIO()
    with redirect_stdout(out):
        assert Host(program, {}).simulate("main", stage)
    return out.getvalue()


def after(text: str, passes: str) -> Program:
    """A program after passes."""
    program = load(plain_source(text, "test"))
    run_passes(program.context, program.module, parse_passes(passes, PASSES), source=program.source)
    return program


@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.sampled(30)
def test_static(case: Case) -> None:
    text, expected = case.program(Form.STATIC), wanted(case, dynamic=False)
    for passes in STEPS:
        assert printed(after(text, passes)) == expected, passes
    assert {op.name for op in after(text, STEPS[-1]).module.walk()} <= PRINTING


@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.sampled(20)
def test_dynamic(case: Case) -> None:
    expect_runs(case, Form.DYNAMIC)
    if not case.refused:
        left = after(case.program(Form.DYNAMIC), STEPS[-1]).module
        assert {op.name for op in left.walk() if op.name.startswith("arith.")} <= {"arith.constant"}


@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.sampled(20)
def test_known_at_run_time_alone(case: Case) -> None:
    expect_runs(case, Form.RUN_TIME)


@pytest.mark.parametrize("case", DYNAMIC, ids=name_of)
@pytest.mark.sampled(20)
def test_known_at_run_time_alone_in_a_kernel(case: Case) -> None:
    program = load(plain_source(case.program(Form.KERNEL), "test"))
    for stage in STAGES:
        assert printed(program, stage) == wanted(case, dynamic=True), stage


@pytest.mark.parametrize("case", DYNAMIC, ids=name_of)
@pytest.mark.sampled(10)
def test_each_thread_has_its_own_values(case: Case) -> None:
    each = [case.with_numbers([number + lane for number in case.numbers]) for lane in range(LANES)]
    alone = [printed(after(one.program(Form.RUN_TIME), "")).splitlines(keepends=True) for one in each]
    expected = "".join(line for lines in zip(*alone, strict=True) for line in lines)
    program = load(plain_source(case.program(Form.LANES), "test"))
    assert [printed(program, stage) for stage in STAGES] == [expected] * len(STAGES)


@given(st.sampled_from(DYNAMIC), st.data())
def test_other_values_are_computed_alike_at_each_step(case: Case, data: st.DataObject) -> None:
    """Even those for which an operation has no meaning: a coordinate outside, a tile that does not divide."""
    count = len(case.numbers)
    numbers = data.draw(st.lists(st.integers(1, 40), min_size=count, max_size=count))
    chosen = case.with_numbers(numbers)
    text, kernel = chosen.program(Form.RUN_TIME), load(plain_source(chosen.program(Form.KERNEL), "test"))
    direct = printed(after(text, ""))
    assert [printed(after(text, passes)) for passes in STEPS[1:]] == [direct] * len(STEPS[1:])
    assert [printed(kernel, stage) for stage in STAGES] == [direct] * len(STAGES)


def expect_runs(case: Case, form: Form) -> None:
    """Runs a form at each step, or expects that there is none."""
    if case.refused:
        with pytest.raises((ProgramError, LayoutError), match=case.refused):
            after(case.program(form), "")
        return
    text, expected = case.program(form), wanted(case, dynamic=True)
    for passes in STEPS:
        assert printed(after(text, passes)) == expected, passes


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_covered(name: str) -> None:
    """Each has an example in its docstring, which round trips, an error case, and a case that is executed."""
    cases = [case for case in CASES if f"cute.{case.op}" == name]
    assert example(OPERATIONS[name]).count(name) == 1
    assert any(name == refused for refused, *_ in REFUSED), f"{name} needs an error case in test_faults.py"
    assert cases, f"{name} needs a case in cases.py"
    assert any(case.numbers for case in cases), f"{name} needs a case with a dynamic integer, even if it is refused"


def test_cases_are_of_the_dialect() -> None:
    assert {f"cute.{case.op}" for case in CASES} == set(OPERATIONS)
    assert len({case.name for case in CASES}) == len(CASES)
