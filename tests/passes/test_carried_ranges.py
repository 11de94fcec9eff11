# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinates that loops and branches hand on have 32 bits where they provably fit, and mean the same."""

from collections.abc import Callable

import numpy as np
import pytest
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.pipeline import pipeline_to
from tilefold.dialects.arith.semantics import compare
from tilefold.dialects.ptx import EntryOp
from tilefold.passes.analysis.range_facts import restrict_ranges
from tilefold.passes.analysis.ranges import Ranges
from xdsl.dialects import scf

from tests.emit.cpu import SM80, run_kernel
from tests.kernels.harness import STAGES, program_of, simulate
from tests.passes.harness import apply, execute, kernel
from tests.work import calls
from tilefold.driver.launches import Changes, read_launches

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
        launch = read_launches(found.module, found.source, Changes())[0]
        assert simulate(found, launch, stage).array("B").tolist() == [value(i) for i in range(16)]


def test_what_a_comparison_says() -> None:
    """Of every pair of small ranges: the value kept is in the range that is left."""
    for predicate in range(10):
        for low, high, least, most in np.ndindex(4, 4, 4, 4):
            known, other = (low - 1, low - 1 + high), (least - 1, least - 1 + most)
            for a in range(known[0], known[1] + 1):
                for b in range(other[0], other[1] + 1):
                    holds = compare(predicate, a, b, 32)
                    left = restrict_ranges(known, predicate, other, left=True, holds=holds)
                    right = restrict_ranges(other, predicate, known, left=False, holds=holds)
                    assert left[0] <= a <= left[1]
                    assert right[0] <= b <= right[1]


OVERRUN = """\
gpu.module @m {{
tile.kernel @k(%E: !tile.tensor<i64, gmem, align<16>, "16:1">, %B: !tile.tensor<i64, gmem, align<16>, "16:1">)
    threads(8) {{
  %t = gpu.thread_id x
  %c8 = arith.constant 8 : index
  %t8 = arith.addi %t, %c8 : index
  %first = tile.load %E(%t)
  %last = tile.load %E(%t8)
  {cast} %first : i64 to {type}
  {end} %last : i64 to {type}
  %step = arith.constant {step} : {type}
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n, %i = scf.for %k = %lo to %hi step %step iter_args(%a = %zero, %b = %zero) -> (i64, i64){colon} {{
    %more = arith.addi %a, %one : i64
    %now = {widen}
    scf.yield %more, %now : i64, i64
  }}
  tile.store %n, %B(%t)
  tile.store %i, %B(%t8)
  return
}}
}}
"""


@pytest.mark.parametrize(("type", "bits"), [("i8", 8), ("i32", 32), ("i64", 64), ("index", 64)])
@pytest.mark.parametrize("step", [1, 2, 7, 100])
@pytest.mark.sampled(6)
def test_loops_that_count_to_the_end_of_their_type(type: str, bits: int, step: int) -> None:
    cast = {"index": "arith.index_cast", "i64": "arith.bitcast"}.get(type, "arith.trunci")
    widen = {"index": "arith.index_cast %k : index to i64", "i64": "arith.addi %k, %zero : i64"}
    text = OVERRUN.format(
        type=type, step=step, cast=f"%lo = {cast}", end=f"%hi = {cast}",
        colon="" if type == "index" else f" : {type}", widen=widen.get(type, f"arith.extsi %k : {type} to i64"),
    )  # fmt: skip
    most = (1 << (bits - 1)) - 1
    ranges = [range(most - distance, most - distance // 9, step) for distance in (0, 1, 5, 8, 33, 70, 100, 9)]
    ends = np.array([r.start for r in ranges] + [r.stop for r in ranges], np.int64)
    expected = [len(r) for r in ranges] + [r[-1] if r else 0 for r in ranges]
    for stage in STAGES:
        out = np.zeros(16, np.int64)
        module = apply(text, ",".join(pipeline_to(stage)))
        execute(module, {"E": ends, "B": out}, threads=8, outputs=["B"])
        assert out.tolist() == expected, stage
    out = np.zeros(16, np.int64)
    module = apply(text, ",".join(pipeline_to("instr")))
    run_kernel(emit_llvm(module, SM80), "k", (1, 1, 1), (8, 1, 1), [ends, out])
    assert out.tolist() == expected


def test_loops_within_loops_take_little_work() -> None:
    """Ranges of what nested loops carry are tried again with each of the loop around; that ends."""
    lines = [f"%c{k} = arith.constant {k} : index" for k in range(20)]
    lines += [f"scf.for %i{d} = %c0 to %c4 step %c1 iter_args(%a{d} = {f'%a{d - 1}' if d else '%c0'}) -> (index) {{"
              for d in range(6)]  # fmt: skip
    lines = [f"%r{line.split('%i')[1].split()[0]} = {line}" if "scf.for" in line else line for line in lines]
    value = "%a5"
    for k in range(6):
        lines += [f"%m{k} = arith.addi {value}, %c{k + 1} : index", f"%p{k} = arith.cmpi sge, %m{k}, %c{k + 3} : index"]
        lines.append(f"%q{k} = arith.select %p{k}, %c0, %m{k} : index")
        value = f"%q{k}"
    for d in reversed(range(6)):
        lines += [f"%y{d} = arith.muli {value}, %c2 : index", f"scf.yield %y{d} : index", "}"]
        value = f"%r{d}"
    lines += ["%o = arith.index_cast %r0 : index to i64", "tile.store %o, %B(0)"]
    body = "\n".join(lines)
    text = kernel(body, '%B: !tile.tensor<i64, gmem, align<16>, "8:1">', "1")
    assert calls(lambda: apply(text, ",".join(pipeline_to("instr")))) < 12_500_000
