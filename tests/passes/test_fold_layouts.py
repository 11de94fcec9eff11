# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fold-layouts` changes nothing that a program writes."""

import pytest

from tests.passes.harness import check_same


@pytest.mark.parametrize("program", ["tests/mutants/programs/slices.cute", "examples/ragged_copy.cute"])
def test_programs_do_the_same(program: str) -> None:
    check_same(program, "fold-layouts")
