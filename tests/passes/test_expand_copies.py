# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-copies` changes nothing that a program writes."""

from tests.passes.harness import check_same


def test_narrow_accesses_registers_that_lie_apart_and_zeros() -> None:
    check_same("tests/mutants/programs/copies.cute", "fold-layouts,expand-copies")


def test_tma_copies() -> None:
    check_same("examples/tma_copy.cute", "fold-layouts,expand-copies")
