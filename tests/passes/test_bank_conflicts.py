# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What accesses to shared memory are said to cost is what the simulator counts."""

import re
from pathlib import Path

import pytest
from tilefold.dialects.ptx import EntryOp
from tilefold.passes.bank_conflicts import SharedAccess, shared_accesses
from tilefold.runtime.sim.faults import site_of
from xdsl.dialects.builtin import ModuleOp

from tests.emit.harness import kernel, parse
from tests.kernels.harness import ALL_LAUNCHES, LAUNCH_IDS, launches, program, simulated


def _accesses(module: ModuleOp, name: str) -> list[SharedAccess]:
    return shared_accesses(next(op for op in module.walk() if isinstance(op, EntryOp) and op.sym_name.data == name))


@pytest.mark.parametrize(("path", "number"), ALL_LAUNCHES, ids=LAUNCH_IDS)
def test_examples_cost_what_the_simulator_counts(path: Path, number: int) -> None:
    module = program(path).at("instr")
    assert module is not None
    said = _accesses(module, launches(path)[number].kernel.rpartition("::")[2])
    counted = [a for a in simulated(path, number, "instr").result.counters.accesses if a.space == "shared"]
    under_predicates = re.search(r"tile\.copy .* if %|scf\.if", path.read_text()) is not None
    executed = {(count.location, count.op) for count in counted}  # of those in branches, the ones that were taken
    said = [access for access in said if (site_of(access.op).location, access.op.name) in executed]
    for access, count in zip(said, counted, strict=True):
        assert (site_of(access.op).location, access.op.name, access.width) == (count.location, count.op, count.width)
        if access.unknown:
            assert access.unknown == "which threads take part is known only when the kernel runs"
            assert under_predicates
            continue
        assert access.wavefronts * count.requests == count.transactions * access.warps
        assert access.least * count.requests == count.minimum * access.warps


def _cost(body: str, threads: str = "64") -> list[tuple[int, int, int] | str]:
    """Warps, wavefronts and the least of each access of a kernel, or why they are not known."""
    head = """
    %t = ptx.sreg "tid.x"
    %b = ptx.sreg "ctaid.x"
    %s = ptx.smem.addr 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %c16 = arith.constant 16 : i32
    %c48 = arith.constant 48 : i32
    %c128 = arith.constant 128 : i32
    """
    text = kernel(head + body, "%A: !ptx.ptr<global> align 16, %n: i32, %c: i1", threads, 49152)
    found = _accesses(parse(text), "k")
    return [access.unknown or (access.warps, access.wavefronts, access.least) for access in found]


def _store(offset: str, operation: str = "") -> str:
    return f"{operation}\n%p = ptx.ptr_add %s, {offset} : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>\n" + (
        "ptx.st %n, %p align 4 : i32, !ptx.ptr<shared>"
    )


@pytest.mark.parametrize(("offset", "expected"), [
    ("%o = arith.muli %t, %c4 : i32", (2, 2, 2)),
    ("%o = arith.muli %t, %c16 : i32", (2, 8, 2)),
    ("%o = arith.muli %t, %c128 : i32", (2, 64, 2)),
    ("%o = arith.muli %b, %c4 : i32", (2, 2, 2)),  # all lanes write one word
    ("%q = arith.muli %t, %c4 : i32\n%r = arith.muli %n, %c48 : i32\n%o = arith.addi %q, %r : i32", (2, 2, 2)),
    ("%q = arith.muli %t, %c16 : i32\n%r = arith.muli %b, %c4 : i32\n%o = arith.xori %q, %r : i32", (2, 8, 2)),
    ("%q = arith.muli %t, %c16 : i32\n%r = arith.muli %b, %c4 : i32\n%x = arith.xori %q, %r : i32\n"
     "%o = arith.addi %x, %q : i32", "the address is known only when the kernel runs"),  # carries depend on %b
    ("%q = arith.muli %t, %c4 : i32\n%r = arith.muli %t, %n : i32\n%o = arith.addi %q, %r : i32",
     "the address is known only when the kernel runs"),
])  # fmt: skip
def test_offsets(offset: str, expected: tuple[int, int, int] | str) -> None:
    assert _cost(_store("%o", offset)) == [expected]


def test_lanes_that_take_part() -> None:
    offset = "%o = arith.muli %t, %c128 : i32"
    first = "%f = arith.cmpi ult, %t, %c16 : i32"
    assert _cost(f"{first}\nscf.if %f {{\n{_store('%o', offset)}\n}}") == [(1, 16, 1)]
    other = f"{first}\nscf.if %f {{\n}} else {{\n{_store('%o', offset)}\n}}"
    assert _cost(other) == [(2, 48, 2)]
    assert _cost(f"scf.if %c {{\n{_store('%o', offset)}\n}}") == [(2, 64, 2)]
    assert _cost(_store("%o", offset), threads="(40)".strip("()")) == [(2, 40, 2)]
    some = "%a = arith.muli %t, %n : i32\n%f = arith.cmpi ult, %a, %c16 : i32"
    unknown = "which threads take part is known only when the kernel runs"
    assert _cost(f"{some}\nscf.if %f {{\n{_store('%o', offset)}\n}}") == [unknown]
    loop = f"scf.for %i = %c0 to %t step %c1 : i32 {{\n{_store('%o', offset)}\n}}"
    assert _cost(loop) == [unknown]


def test_loops() -> None:
    """A ring of three stages of 16 KiB, counted by a value that the loop carries."""
    ring = f"""
    %size = arith.constant 16384 : i32
    %q = arith.muli %t, %c16 : i32
    %e = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0) -> (i32) : i32 {{
      %r = arith.muli %stage, %size : i32
      %o = arith.addi %q, %r : i32
      {_store("%o")}
      %next = arith.addi %stage, %c1 : i32
      %last = arith.cmpi eq, %next, %c3 : i32
      %then = arith.select %last, %c0, %next : i32
      scf.yield %then : i32
    }}
    """
    assert _cost(ring) == [(2, 8, 2)]
    pointer = f"""
    %q = arith.muli %t, %c4 : i32
    %z, %e = scf.while (%i = %c0, %m = %q) : (i32, i32) -> (i32, i32) {{
      %g = arith.cmpi slt, %i, %n : i32
      scf.condition(%g) %i, %m : i32, i32
    }} do {{
    ^bb0(%i: i32, %m: i32):
      {_store("%m")}
      %j = arith.addi %i, %c1 : i32
      %w = arith.addi %m, %c48 : i32
      scf.yield %j, %w : i32, i32
    }}
    """
    assert _cost(pointer) == [(2, 2, 2)]


def test_values_that_the_warp_shares() -> None:
    loaded = "%v = ptx.ld %A align 4 : !ptx.ptr<global> -> i32\n%q = arith.muli %v, %c128 : i32\n"
    assert _cost(_store("%o", loaded + "%o = arith.addi %q, %t : i32")) == [(2, 2, 2)]
    apart = "%a = ptx.ptr_add %A, %t : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
    other = apart + "%o = ptx.ld %a align 4 : !ptx.ptr<global> -> i32"
    assert _cost(_store("%o", other)) == ["the address is known only when the kernel runs"]
