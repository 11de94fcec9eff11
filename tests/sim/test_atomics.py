# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations, what orders threads beyond a block's barrier, and pairs of kernels that must and must not race."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.runtime.options import SimOptions

from tests.sim.harness import SimEngine, SimulationError, entry, fault, launch, seeded

POINTERS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
HEAD = """
%t = gpu.thread_id x
%b = gpu.block_id x
%i = arith.index_cast %t : index to i32
%j = arith.index_cast %b : index to i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%four = arith.constant 4 : i32
%o = arith.muli %i, %four : i32
%p = ptx.ptr_add %B, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%first = arith.cmpi eq, %i, %zero : i32
"""


def text(body: str, threads: int = 32) -> str:
    return entry(HEAD + body, POINTERS, str(threads))


def run(body: str, a: Any, b: Any, blocks: int = 1, threads: int = 32, seed: int | None = None) -> None:
    engine = SimEngine(seeded(seed), sink=lambda _: None, shuffle_blocks=seed is not None)
    launch(text(body, threads), (blocks, 1, 1), (threads, 1, 1), engine, A=a, B=b)


KINDS: dict[str, Callable[[NDArray[np.int32]], Any]] = {
    "add": lambda x: x.sum(dtype=np.int32), "min": np.min, "max": np.max, "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce,
    "umin": lambda x: x.view(np.uint32).min().astype(np.int32),
    "umax": lambda x: x.view(np.uint32).max().astype(np.int32),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_one_place_one_after_the_other(kind: str) -> None:
    values = np.random.default_rng(2).integers(-(2**31), 2**31, 32).astype(np.int32)
    a, b = np.full(1, 77, np.int32), values.copy()
    body = f"""
        %v = ptx.ld %p align 4 : !ptx.ptr<global> -> i32
        %old = ptx.atom "{kind}" %A, %v : !ptx.ptr<global>, i32
        ptx.st %old, %p align 4 : i32, !ptx.ptr<global>"""
    run(body, a, b)
    steps = [KINDS[kind](np.array([77, *values[:count]], np.int32)) for count in range(33)]
    assert b.tolist() == [int(step) for step in steps[:32]]  # each got what was there before
    assert a[0] == steps[32]


def test_exchange_and_compare() -> None:
    a, b = np.array([5], np.int32), np.zeros(32, np.int32)
    run('%old = ptx.atom "exch" %A, %i : !ptx.ptr<global>, i32\nptx.st %old, %p align 4 : i32, !ptx.ptr<global>', a, b)
    assert a[0] == 31
    assert b.tolist() == [5, *range(31)]
    a[0] = 0
    body = """
        %n = arith.addi %i, %one : i32
        %old = ptx.atom.cas %A, %i, %n : !ptx.ptr<global>, i32
        ptx.st %old, %p align 4 : i32, !ptx.ptr<global>"""
    run(body, a, b)
    assert a[0] == 32
    assert b.tolist() == list(range(32))


@pytest.mark.parametrize(("type", "dtype"), [
    ("f32", np.float32), ("f64", np.float64), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16),
])  # fmt: skip
def test_floats_are_added_in_order(type: str, dtype: Any) -> None:
    a, b = np.zeros(1, dtype), np.zeros(32, np.int32)
    body = f'%x = arith.sitofp %i : i32 to {type}\nptx.red "add" %A, %x : !ptx.ptr<global>, {type}'
    run(body, a, b)
    total = dtype(0)
    for lane in range(32):
        total = dtype(float(total) + lane)
    assert a[0] == total


def test_vectors_are_added_element_by_element() -> None:
    a, b = np.zeros(4, np.float32), np.zeros(32, np.int32)
    body = """
        %x = arith.sitofp %i : i32 to f32
        %v = vector.broadcast %x : f32 to vector<4xf32>
        ptx.red "add" %A, %v : !ptx.ptr<global>, vector<4xf32>"""
    run(body, a, b)
    assert a.tolist() == [496.0] * 4


def test_atomic_operations_do_not_race_but_others_do() -> None:
    counters = {"A": np.zeros(1, np.int32), "B": np.zeros(64, np.int32)}
    count = 'ptx.red "add" %A, %one : !ptx.ptr<global>, i32\n'
    run(count, counters["A"], counters["B"], blocks=3, threads=64)
    assert counters["A"][0] == 192
    for body in (
        count + "%v = ptx.ld %A align 4 : !ptx.ptr<global> -> i32",
        "%v = ptx.ld %A align 4 : !ptx.ptr<global> -> i32\n" + count,
        f"scf.if %first {{\nptx.st %one, %A align 4 : i32, !ptx.ptr<global>\n}}\n{count}",
        f"{count}scf.if %first {{\nptx.st %one, %A align 4 : i32, !ptx.ptr<global>\n}}",
    ):
        assert "race" in fault(text(body), "E3205", **counters).message
    acquire = "%v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32\n"
    for read in (acquire, "ptx.st.release %one, %A : i32, !ptx.ptr<global>\n"):
        run(count + read + count, counters["A"], counters["B"], threads=64)


def test_unwritten_memory_cannot_be_changed() -> None:
    body = '%s = ptx.smem.alloc 4 align 4\nptx.red "add" %s, %one : !ptx.ptr<shared>, i32'
    fault(text(body), "E3204", A=np.zeros(1, np.int32), B=np.zeros(32, np.int32))


LAST_BLOCK = """
%mine = arith.muli %j, %four : i32
%q = ptx.ptr_add %B, %mine : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
scf.if %first {{
  ptx.st %j, %q align 4 : i32, !ptx.ptr<global>
  {fence}
  %old = ptx.atom "add" %A, %one{order} : !ptx.ptr<global>, i32
  %three = arith.constant 3 : i32
  %last = arith.cmpi eq, %old, %three : i32
  scf.if %last {{
    {fence}
    %sum = scf.for %n = %zero to %four step %one iter_args(%s = %zero) -> (i32) : i32 {{
      %at = arith.muli %n, %four : i32
      %r = ptx.ptr_add %B, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
      %v = ptx.ld %r align 4 : !ptx.ptr<global> -> i32
      %x = arith.addi %s, %v : i32
      scf.yield %x : i32
    }}
    ptx.st %sum, %B align 4 : i32, !ptx.ptr<global>
  }}
}}
"""
"""Each block leaves a number; the last one to count adds them up."""


@pytest.mark.parametrize(("fence", "order"), [('ptx.fence "acq_rel"', ""), ("", ' order "acq_rel"')])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_last_block_sees_what_the_others_released(fence: str, order: str, seed: int | None) -> None:
    a, b = np.zeros(1, np.int32), np.zeros(32, np.int32)
    run(LAST_BLOCK.format(fence=fence, order=order), a, b, blocks=4, seed=seed)
    assert b[0] == 6


@pytest.mark.parametrize(("fence", "order"), [("", ""), ("", ' order "release"'), ("", ' order "acquire"')])
def test_without_a_release_and_an_acquire_blocks_race(fence: str, order: str) -> None:
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(32, np.int32)}
    fault(text(LAST_BLOCK.format(fence=fence, order=order)), "E3205", grid=(4, 1, 1), **arrays)


SEMAPHORE = """
%s = ptx.smem.alloc 128 align 128
%q = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
scf.while () : () -> () {
  %v = ptx.ld.acquire %A : !ptx.ptr<global> -> i32
  %more = arith.cmpi ne, %v, %j : i32
  scf.condition(%more)
} do {
  scf.yield
}
%x = ptx.ld %p align 4 : !ptx.ptr<global> -> i32
%y = arith.addi %x, %one : i32
ptx.st %y, %p align 4 : i32, !ptx.ptr<global>
ptx.bar.sync 0
scf.if %first {
  %n = arith.addi %j, %one : i32
  ptx.st.release %n, %A : i32, !ptx.ptr<global>
}
"""
"""The blocks take turns at the same elements, as those of a serial split do."""


def test_blocks_take_turns_at_a_semaphore() -> None:
    a, b = np.zeros(1, np.int32), np.zeros(64, np.int32)
    run(SEMAPHORE, a, b, blocks=5, threads=64)
    assert a[0] == 5
    assert b.tolist() == [5] * 64


def test_a_semaphore_that_does_not_release_races() -> None:
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(64, np.int32)}
    body = SEMAPHORE.replace(
        "ptx.st.release %n, %A : i32, !ptx.ptr<global>", 'ptx.red "add" %A, %one : !ptx.ptr<global>, i32'
    )
    fault(text(body, 64), "E3205", grid=(2, 1, 1), block=(64, 1, 1), **arrays)


def test_a_warp_waits_for_another_warps_store() -> None:
    body = """
        %limit = arith.constant 32 : i32
        %low = arith.cmpi ult, %i, %limit : i32
        scf.if %low {
          scf.while () : () -> () {
            %v = ptx.ld.acquire %A scope "cta" : !ptx.ptr<global> -> i32
            %more = arith.cmpi eq, %v, %zero : i32
            scf.condition(%more)
          } do {
            ptx.nanosleep %one
            scf.yield
          }
          %other = arith.addi %i, %limit : i32
          %at = arith.muli %other, %four : i32
          %q = ptx.ptr_add %B, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          %x = ptx.ld %q align 4 : !ptx.ptr<global> -> i32
          ptx.st %x, %p align 4 : i32, !ptx.ptr<global>
        } else {
          ptx.st %i, %p align 4 : i32, !ptx.ptr<global>
          ptx.bar.warp.sync -1
          ptx.st.release %one, %A scope "cta" : i32, !ptx.ptr<global>
        }"""
    a, b = np.zeros(1, np.int32), np.zeros(64, np.int32)
    run(body, a, b, threads=64)
    assert b.tolist() == [*range(32, 64), *range(32, 64)]


NAMED = """
%s = ptx.smem.alloc 256 align 128
%q = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%limit = arith.constant 32 : i32
%low = arith.cmpi ult, %i, %limit : i32
scf.if %low {{
  ptx.st %i, %q align 4 : i32, !ptx.ptr<shared>
  {producer}
}} else {{
  {consumer}
  %m = arith.subi %i, %limit : i32
  %at = arith.muli %m, %four : i32
  %r = ptx.ptr_add %s, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  %v = ptx.ld %r align 4 : !ptx.ptr<shared> -> i32
  ptx.st %v, %p align 4 : i32, !ptx.ptr<global>
}}
"""
"""One warp writes shared memory, another reads it."""


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
@pytest.mark.parametrize("producer", ["ptx.bar.arrive 1 threads 64", "ptx.bar.sync 1 threads 64"])
def test_a_barrier_of_two_warps_of_three_orders_them(producer: str, seed: int | None) -> None:
    body = NAMED.format(producer=producer, consumer="ptx.bar.sync 1 threads 64")
    alloc = "%s = ptx.smem.alloc 256 align 128\n"
    two = "%two = arith.constant 64 : i32\n%taking = arith.cmpi ult, %i, %two : i32\n"
    a, b = np.zeros(1, np.int32), np.zeros(96, np.int32)
    run(f"{alloc}{two}scf.if %taking {{\n{body.replace(alloc, '')}\n}}", a, b, threads=96, seed=seed)
    assert b[32:64].tolist() == list(range(32))


def refusal(program: str, seed: int, arrays: dict[str, Any]) -> str:
    with pytest.raises(SimulationError) as caught:
        launch(program, block=(64, 1, 1), engine=SimEngine(SimOptions(seed=seed)), **arrays)
    return caught.value.message


def test_who_only_arrives_does_not_learn() -> None:
    body = NAMED.format(producer="ptx.bar.sync 1 threads 64", consumer="ptx.bar.arrive 1 threads 64")
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(64, np.int32)}
    order = [0, 1, 2, 3]  # the schedule decides whether the bytes are there when the consumer reads them
    said = [refusal(text(body, 64), seed, arrays) for seed in order]
    assert all("race" in each or "unwritten" in each for each in said)


def test_numbers_of_threads_that_differ() -> None:
    body = NAMED.format(producer="ptx.bar.sync 1 threads 64", consumer="ptx.bar.sync 1 threads 32")
    error = fault(text(body, 64), "E3207", block=(64, 1, 1), A=np.zeros(1, np.int32), B=np.zeros(64, np.int32))
    assert "with different numbers of threads, 64 and 32" in error.message


REDUCED = """
%limit = arith.constant {limit} : i32
%holds = arith.cmpi ult, %i, %limit : i32
{reduce}
ptx.st %r, %p align 4 : i32, !ptx.ptr<global>
"""


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize(("limit", "all_of", "any_of"), [(0, 0, 0), (40, 0, 1), (96, 1, 1)])
def test_barriers_that_reduce_a_predicate(limit: int, all_of: int, any_of: int, seed: int | None) -> None:
    for reduce, expected in (
        ('%r = ptx.bar.red "popc" %holds, 1 threads 96 : i32', limit),
        ('%q = ptx.bar.red "and" %holds, 0 : i1\n%r = arith.extui %q : i1 to i32', all_of),
        ('%q = ptx.bar.red "or" %holds, 2 : i1\n%r = arith.extui %q : i1 to i32', any_of),
    ):
        a, b = np.zeros(1, np.int32), np.zeros(96, np.int32)
        run(REDUCED.format(limit=limit, reduce=reduce), a, b, threads=96, seed=seed)
        assert b.tolist() == [expected] * 96


def test_a_reducing_barrier_in_a_branch() -> None:
    body = """
        %limit = arith.constant 8 : i32
        %low = arith.cmpi ult, %i, %limit : i32
        scf.if %low {
          %r = ptx.bar.red "popc" %low, 0 : i32
        }
        ptx.fence "acq_rel"
        """
    error = fault(text(body, 32), "E3207", block=(32, 1, 1), A=np.zeros(1, np.int32), B=np.zeros(32, np.int32))
    assert "8 of the warp's 32 lanes do" in error.message


def test_a_barrier_that_too_few_reach() -> None:
    error = fault(text("ptx.bar.sync 1 threads 96", 64), "E3207", block=(64, 1, 1), A=np.zeros(1), B=np.zeros(64))
    assert "waits at barrier 1 forever" in error.message
