# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What accesses to shared and global memory are said to cost is what the simulator counts."""

import re
from pathlib import Path

import pytest
from tilefold.base.spaces import GMEM, SMEM
from tilefold.compiler.reports.access_costs import access_costs
from tilefold.dialects.ptx import EntryOp

from tests.emit.harness import kernel, parse
from tests.kernels.harness import ALL_LAUNCHES, LAUNCH_IDS, launches, program, simulated, target_of
from tests.passes.costs import accesses, compare


@pytest.mark.parametrize(("path", "number"), ALL_LAUNCHES, ids=LAUNCH_IDS)
@pytest.mark.sampled(8)
def test_examples_cost_what_the_simulator_counts(path: Path, number: int) -> None:
    module = program(path).at("instr", target_of(path))
    assert module is not None
    said = accesses(module, launches(path)[number].kernel.rpartition("::")[2])
    under_predicates = re.search(r"tile\.copy .* if %|scf\.if", path.read_text()) is not None
    for access in compare(said, simulated(path, number, "instr").result.counters):
        assert under_predicates
        assert re.fullmatch(
            "(?:which threads take part|the address) is known only when the kernel runs", access.unknown
        )


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
    shared = [access for access in accesses(parse(text), "k") if access.space is SMEM]
    return [access.unknown or (access.warps, access.transactions, access.least) for access in shared]


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


def _global(body: str, args: str = "%A: !ptx.ptr<global> align 4, %n: i32") -> list[str]:
    """What each access to global memory of a kernel of 64 threads is said to cost."""
    head = """
    %t = ptx.sreg "tid.x"
    %b = ptx.sreg "ctaid.x"
    %s = ptx.smem.addr 0
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %c48 = arith.constant 48 : i32
    %t4 = arith.muli %t, %c4 : i32
    %t16 = arith.muli %t, %c16 : i32
    """
    text = kernel(head + body, args, "64", 1024)
    entry = next(op for op in parse(text).walk() if isinstance(op, EntryOp))
    return [str(cost) for cost in access_costs(entry) if cost.space is GMEM]


def _load(offset: str, operations: str = "", bytes: int = 4) -> str:
    type = "i32" if bytes == 4 else f"vector<{bytes // 4}xi32>"
    return f"""{operations}
    %p = ptx.ptr_add %A, {offset} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %x = ptx.ld %p align {bytes} : !ptx.ptr<global> -> {type}"""


NSW = "overflow<nsw>"
ALIGNMENT = "the alignment is known only when the kernel runs"


@pytest.mark.parametrize(("body", "said"), [
    (_load("%t4"), "4 sectors each time a warp executes it, coalesced"),
    (_load("%t16", bytes=16), "16 sectors each time a warp executes it, coalesced"),
    (_load("%t16"), "16 sectors each time a warp executes it where 4 would do: not coalesced"),
    (_load("%o", "%o = arith.muli %t, %c48 : i32"),
     "32 sectors each time a warp executes it where 4 would do: not coalesced"),
    (_load("%b4", "%b4 = arith.muli %b, %c4 : i32"), "1 sector each time a warp executes it, coalesced"),
    (_load("%o", f"%r = arith.muli %n, %c4 {NSW} : i32\n%o = arith.addi %t4, %r {NSW} : i32"),
     f"4 to 5 sectors each time a warp executes it where 4 would do: {ALIGNMENT}"),
    (_load("%o", f"%r = arith.muli %n, %c8 {NSW} : i32\n%o = arith.addi %t16, %r {NSW} : i32"),
     "16 to 17 sectors each time a warp executes it where 4 would do: not coalesced"),
    (_load("%o", "%r = arith.muli %n, %c4 : i32\n%o = arith.addi %t4, %r : i32"),  # a lane may wrap where others do not
     "its sectors are not known at compile time: the address is known only when the kernel runs"),
    (_load("%o", "%r = arith.muli %n, %c4 : i32\n%o = arith.muli %t, %r : i32"),
     "its sectors are not known at compile time: the address is known only when the kernel runs"),
    (f"%y = arith.muli %t, %n : i32\n%f = arith.cmpi ult, %y, %c16 : i32\nscf.if %f {{\n{_load('%t4')}\n}}",
     "its sectors are not known at compile time: which threads take part is known only when the kernel runs"),
    (f"%f = arith.cmpi ult, %t, %c16 : i32\nscf.if %f {{\n{_load('%t4')}\n}}",
     "2 sectors each time a warp executes it, coalesced"),
    (f"scf.for %i = %zero to %c4 step %one : i32 {{\n"  # four bytes of the sixteen that a thread has
     f"{_load('%o', '%i4 = arith.muli %i, %c4 : i32 %o = arith.addi %t16, %i4 : i32')}\n}}",
     "16 sectors each time a warp executes it where 4 would do: not coalesced"),
    ("%a = ptx.ptr_add %A, %t4 : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
     'ptx.red "add" %a, %t : !ptx.ptr<global>, i32',
     "4 sectors each time a warp executes it, coalesced"),
    ('%old = ptx.atom "add" %A, %t : !ptx.ptr<global>, i32', "1 sector each time a warp executes it, coalesced"),
])  # fmt: skip
def test_sectors(body: str, said: str) -> None:
    assert _global(body) == [said]


NARROW = "%h = arith.trunci %t : i32 to i8\n%c = arith.constant 100 : i8\n%w = arith.muli %h, %c : i8\n"


@pytest.mark.parametrize(("operations", "factor", "bits"), [
    ("%big = arith.constant 1103515245 : i32\n%m = arith.muli %t, %big : i32", 1103515245, 32),
    (f"{NARROW}%m = arith.extsi %w : i8 to i32", 100, 8),
    (f"{NARROW}%m = arith.extui %w : i8 to i32", 100, 0),
])  # fmt: skip
def test_a_product_that_wraps_is_not_taken_to_go_on(operations: str, factor: int, bits: int) -> None:
    """The offset has bits that depend on the wrapping; of a product that is extended with its sign from `bits`."""
    shifted = "%five = arith.constant 5 : i32\n%q = arith.shrui %m, %five : i32\n%z = arith.constant 252 : i32"
    body = _load("%o", f"{operations}\n{shifted}\n%o = arith.andi %q, %z : i32")
    (said,) = accesses(parse(kernel(f'%t = ptx.sreg "tid.x"\n{body}', "%A: !ptx.ptr<global> align 4", "32")), "k")

    def product(thread: int) -> int:
        low = thread * factor % (1 << (bits or 8))
        return low - (1 << bits) if bits and low >> bits - 1 else low

    assert said.transactions == len({(product(t) % (1 << 32) >> 5 & 252) // 32 for t in range(32)})
