# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`lower-tensors` changes nothing that a program writes."""

import pytest

from tests.passes.harness import check_same


@pytest.mark.parametrize(
    "program", ["tests/mutants/programs/registers.cute", "examples/hgemm.cute", "examples/transpose.cute"]
)
def test_programs_do_the_same(program: str) -> None:
    check_same(program, "fold-layouts,expand-gemms,expand-copies,expand-maps,lower-tensors")
