# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinates that loops and branches hand on have 32 bits where they provably fit, and mean the same."""

from collections.abc import Callable

import numpy as np
import pytest
from tilefold.compiler.pipeline import pipeline_to
from tilefold.dialects.ptx import EntryOp
from tilefold.passes.fold_constants import compare
from tilefold.passes.range_facts import restricted
from tilefold.passes.ranges import Ranges
from xdsl.dialects import scf

from tests.kernels.harness import STAGES, program_of, simulate
from tests.passes.harness import apply
from tilefold.launches import Changes, launches_of

KERNEL = """\
!t = !tile.tensor<i32, gmem, align<16>, "16:1">
gpu.module @kernels {
  tile.kernel @k(%B: !t, %n: i32) threads(1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %count = arith.index_cast %n : i32 to index
    %end = scf.for %i = %c0 to LIMIT step %c1 iter_args(%s = FIRST) -> (index) {
      %v = arith.index_cast %s : index to i32
      tile.store %v, %B(%i)
      NEXT
      scf.yield %following : index
    }
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "B" : !t = "full(-1)"
  run.arg "n" : i32 = "16"
}
"""
RING = """%more = arith.addi %s, %c1 : index
      %last = arith.cmpi PREDICATE, %more, %c3 : index
      %following = arith.select %last, CHOICE : index"""
EQUAL = RING.replace("PREDICATE", "eq").replace("CHOICE", "%c0, %more")
LESS = RING.replace("PREDICATE", "ult").replace("CHOICE", "%more, %c0")
BRANCH = """%more = arith.addi %s, %c1 : index
      %last = arith.cmpi sge, %more, %c3 : index
      %following = scf.if %last -> (index) {
        scf.yield %c0 : index
      } else {
        scf.yield %more : index
      }"""
REMAINDER = "%m = arith.addi %s, %c1 : index\n%following = arith.remui %m, %c3 : index"
WIDER = """%a = arith.ceildivui %i, %c3 : index
      %b = arith.maxui %a, %c2 : index
      %following = arith.minui %b, %c3 : index"""
CASES: list[tuple[str, str, str, tuple[int, int] | None, Callable[[int], int]]] = [
    ("%c16", "%c0", EQUAL, (0, 2), lambda i: i % 3),
    ("%count", "%c2", EQUAL, (0, 2), lambda i: (i + 2) % 3),
    ("%c16", "%c0", LESS, (0, 2), lambda i: i % 3),
    ("%count", "%c0", BRANCH, (0, 2), lambda i: i % 3),
    ("%c16", "%c2", REMAINDER, (0, 2), lambda i: (i + 2) % 3),
    ("%c16", "%c2", WIDER, (2, 3), lambda i: 2 if i < 8 else 3),
    ("%c16", "%c1", "%following = arith.addi %s, %c3 : index", (1, 49), lambda i: 1 + 3 * i),
    ("%c16", "%c1", "%following = arith.muli %s, %c2 : index", None, lambda i: 1 << i),
]


def _text(limit: str, first: str, following: str) -> str:
    return KERNEL.replace("LIMIT", limit).replace("FIRST", first).replace("NEXT", following)


@pytest.mark.parametrize(("limit", "first", "following", "expected", "_"), CASES)
def test_range(limit: str, first: str, following: str, expected: tuple[int, int] | None, _: object) -> None:
    passes = pipeline_to("index")
    module = apply(_text(limit, first, following), ",".join(passes))
    entry = next(op for op in module.walk() if isinstance(op, EntryOp))
    loop = next(op for op in entry.walk() if isinstance(op, scf.ForOp))
    ranges = Ranges(entry)
    assert ranges.of(loop.results[0]) == ranges.of(loop.body.block.args[1])
    assert ranges.of(loop.results[0]) == (expected or (-(2**63), 2**63 - 1))
    converted = apply(_text(limit, first, following), ",".join([*passes, "convert-index"]))
    carried = next(op for op in converted.walk() if isinstance(op, scf.ForOp)).results[0]
    assert str(carried.type) == ("i64" if expected is None else "i32")


@pytest.mark.parametrize("stage", STAGES)
def test_values(stage: str) -> None:
    for limit, first, following, _, value in CASES:
        found = program_of(_text(limit, first, following))
        launch = launches_of(found.module, found.source, Changes())[0]
        assert simulate(found, launch, stage).array("B").tolist() == [value(i) for i in range(16)]


def test_what_a_comparison_says() -> None:
    """Of every pair of small ranges: the value kept is in the range that is left."""
    for predicate in range(10):
        for low, high, least, most in np.ndindex(4, 4, 4, 4):
            known, other = (low - 1, low - 1 + high), (least - 1, least - 1 + most)
            for a in range(known[0], known[1] + 1):
                for b in range(other[0], other[1] + 1):
                    holds = compare(predicate, a, b, 32)
                    left = restricted(known, predicate, other, left=True, holds=holds)
                    right = restricted(other, predicate, known, left=False, holds=holds)
                    assert left[0] <= a <= left[1]
                    assert right[0] <= b <= right[1]
