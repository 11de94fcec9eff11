# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broken rules are refused with a message that points at the text; no refusal of the dialects is left out."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from tilefold.compiler.frontend.diagnostics import Diagnostic, ProgramError
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pipeline import make_context
from tilefold.dialects import gpu

from tests.dialects.coordinate_faults import COORDINATES
from tests.dialects.copy_faults import COPY_FORMS
from tests.dialects.faults import COPIES, MEMORY, PTX, RUN, VIEWS, Fault
from tests.dialects.instruction_faults import INSTRUCTIONS
from tests.dialects.kernel_faults import KERNELS, TYPES
from tests.dialects.mma_faults import MMA_FAULTS
from tests.dialects.run_time_faults import RUN_TIME
from tests.dialects.tcgen05_faults import TCGEN05_FAULTS
from tests.dialects.tma_faults import TENSOR_MAPS
from tests.dialects.wgmma_faults import WARP_MORE, WGMMA_FAULTS

FAULTS: list[Fault] = [
    *VIEWS, *COORDINATES, *RUN_TIME, *COPIES, *COPY_FORMS, *MMA_FAULTS, *MEMORY, *PTX, *INSTRUCTIONS, *RUN, *KERNELS,
    *TYPES, *TENSOR_MAPS, *WGMMA_FAULTS, *TCGEN05_FAULTS,
]  # fmt: skip


REFUSE = ("refuse", "raise_at", "raise_error")
"""Functions that raise."""

ROOT = Path(gpu.__file__).parent
REFUSING = ("cute/attributes.py", "definitions.py", "gpu.py", "kernel.py", "ptx", "run", "tile")
"""The files whose refusals must each be reached by a fault."""


@cache
def _refusals() -> frozenset[tuple[str, int]]:
    """File and line of each statement that refuses a program: a raise, or a call of a function that raises."""
    return frozenset(_refusing())


def _refusing() -> Iterator[tuple[str, int]]:
    for part in REFUSING:
        path = ROOT / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            if file.name == "custom.py":  # tests/new_family reaches its refusals
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                call = node.value if isinstance(node, ast.Expr) else None
                function = call.func if isinstance(call, ast.Call) else None
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and name in REFUSE):
                    yield str(file), node.lineno


@cache
def _refuses(code: CodeType) -> bool:
    return any((code.co_filename, line) in _refusals() for _, _, line in code.co_lines())


@cache
def refusal(text: str) -> tuple[tuple[Diagnostic, ...], frozenset[tuple[str, int]]]:
    """The messages about a program that must be refused, and the lines that it reached of functions that refuse."""
    files = {file for file, _ in _refusals()}
    reached: set[tuple[str, int]] = set()

    def lines(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return lines

    def calls(frame: FrameType, _: str, __: Any) -> Any:
        return lines if frame.f_code.co_filename in files and _refuses(frame.f_code) else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        with pytest.raises(ProgramError) as caught:
            parse_program(plain_source(text, "fault.cute"), make_context())
    finally:
        sys.settrace(before)
    return tuple(caught.value.diagnostics), frozenset(reached)


def marked(text: str) -> tuple[str, int, int, str]:
    """The text without its marks, the line and column (from 1) of the marked part, and that part."""
    before, _, rest = text.partition("«")
    part, mark, after = rest.partition("»")
    assert mark, f"no marks in:\n{text}"
    return before + part + after, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, part


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.of}-{fault.said[:40]}" for fault in FAULTS])
def test_fault(fault: Fault) -> None:
    text, line, column, part = marked(fault.text)
    messages, _ = refusal(text)
    said = next((one for one in messages if fault.said in f"{one.message} [{one.code}]"), messages[0])
    assert fault.said in f"{said.message} [{said.code}]"
    assert said.place is not None
    assert (said.place.file, said.place.line, said.place.column) == ("fault.cute", line, column), said.render()
    if part:
        assert said.place.end == column + len(part), said.render()


def test_a_block_may_have_warps_that_do_not_multiply() -> None:
    parse_program(plain_source(WARP_MORE, "twin.cute"), make_context())


def test_every_refusal_is_reached_by_a_fault() -> None:
    missing = sorted(_refusals().difference(*(refusal(marked(fault.text)[0])[1] for fault in FAULTS)))
    assert not missing, "no fault reaches:\n" + "\n".join(f"{file}:{line}" for file, line in missing)
