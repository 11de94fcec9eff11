# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broken rules are refused with a message that points at the text."""

import pytest
from tilefold.compiler.frontend.diagnostics import Diagnostic, ProgramError
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pipeline import make_context

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


def refusal(text: str, expected: str) -> Diagnostic:
    """The message about a program that must be refused which holds this text, or else the first one."""
    with pytest.raises(ProgramError) as caught:
        parse_program(plain_source(text, "fault.cute"), make_context())
    said = caught.value.diagnostics
    return next((one for one in said if expected in f"{one.message} [{one.code}]"), said[0])


def marked(text: str) -> tuple[str, int, int, str]:
    """The text without its marks, the line and column (from 1) of the marked part, and that part."""
    before, _, rest = text.partition("«")
    part, mark, after = rest.partition("»")
    assert mark, f"no marks in:\n{text}"
    return before + part + after, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, part


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.of}-{fault.said[:40]}" for fault in FAULTS])
def test_fault(fault: Fault) -> None:
    text, line, column, part = marked(fault.text)
    said = refusal(text, fault.said)
    assert fault.said in f"{said.message} [{said.code}]"
    assert said.place is not None
    assert (said.place.file, said.place.line, said.place.column) == ("fault.cute", line, column), said.render()
    if part:
        assert said.place.end == column + len(part), said.render()


def test_a_block_may_have_warps_that_do_not_multiply() -> None:
    parse_program(plain_source(WARP_MORE, "twin.cute"), make_context())
