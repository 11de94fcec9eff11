# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that would keep LLVM busy for minutes: refused before it begins, or stopped."""

from collections.abc import Callable
from itertools import cycle, pairwise

import pytest
from tilefold.base.errors import Code
from tilefold.compiler.machine import nvptx
from tilefold.compiler.machine.nvptx import LlvmError, compile_isolated, compile_llvm
from tilefold.passes.errors import LoweringError

from tests.emit.harness import SM80, kernel, llvm_of

ARGUMENTS = "%a: !ptx.ptr<global> align 16, %n: i32, %o: i64"
STORE = "ptx.st %n, %a align 4 : i32, !ptx.ptr<global>"


def unrolled(copies: int, body: str) -> str:
    """The text of a kernel with so many copies of a body."""
    return kernel(
        f"""
        %zero = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %copies = arith.constant {copies} : i32
        scf.for %i = %zero to %copies step %one : i32 {{
          {body}
        }} {{unroll}}
        """,
        ARGUMENTS,
    )


def loops(count: int) -> str:
    """So many loops, one after the other."""
    return "\n".join(f"scf.for %j{i} = %zero to %n step %one : i32 {{\n{STORE}\n}}" for i in range(count))


def pointers(count: int) -> str:
    """LLVM IR of as many sums of a pointer and an offset that is known at run time only, each on the one before."""
    names = ["%a", *(f"%p{i}" for i in range(count))]
    lines = [
        f"{new} = ptx.ptr_add {old}, %o : !ptx.ptr<global>, i64 -> !ptx.ptr<global>" for old, new in pairwise(names)
    ]
    return llvm_of(kernel("\n".join([*lines, STORE.replace("%a", names[-1])]), ARGUMENTS))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (unrolled(1001, loops(2)), "2002 loops"),
        (unrolled(8192, "\n".join([STORE] * 64)), "532485 operations"),
    ],
)
def test_a_kernel_with_too_much_work_is_refused(text: str, number: str) -> None:
    with pytest.raises(LoweringError, match=f"kernel 'k' has {number} once its loops are unrolled") as caught:
        llvm_of(text)
    assert caught.value.code == Code.LLVM_EFFORT.id
    assert "unroll less" in caught.value.hint


def test_loops_that_are_unrolled_are_none_afterwards() -> None:
    inner = f"scf.for %j = %zero to %one step %one : i32 {{\n{STORE}\n}} {{unroll}}"
    assert "store" in llvm_of(unrolled(4096, inner))


def test_llvm_is_stopped_where_it_takes_too_long() -> None:
    with pytest.raises(LlvmError, match=r"LLVM was stopped after 0\.001 seconds") as caught:
        compile_llvm(chain(1200, "%n"), SM80, timeout=0.001)
    assert caught.value.code == Code.LLVM_TIMEOUT.id
    assert "split the kernel" in caught.value.hint


def chain(count: int, operand: str) -> str:
    """LLVM IR of as many sums, products and exclusive ors, each of the one before and an operand."""
    names = ["%n", *(f"%v{i}" for i in range(count))]
    lines = [
        f"{new} = arith.{op} {old}, {operand} : i32"
        for op, (old, new) in zip(cycle(("addi", "muli", "xori")), pairwise(names), strict=False)
    ]
    constant = "%c = arith.constant 1664525 : i32"
    return llvm_of(kernel("\n".join([constant, *lines, STORE.replace("%n", names[-1])]), ARGUMENTS))


def branches(count: int) -> str:
    """LLVM IR of as many branches, each on the value of the one before."""
    names = ["%n", *(f"%v{i}" for i in range(count))]
    lines = [
        f"""%p{old[1:]} = arith.cmpi slt, {old}, %n : i32
        {new} = scf.if %p{old[1:]} -> (i32) {{
          %a{old[1:]} = arith.addi {old}, %n : i32
          scf.yield %a{old[1:]} : i32
        }} else {{
          %b{old[1:]} = arith.muli {old}, %n : i32
          scf.yield %b{old[1:]} : i32
        }}"""
        for old, new in pairwise(names)
    ]
    return llvm_of(kernel("\n".join([*lines, STORE.replace("%n", names[-1])]), ARGUMENTS))


@pytest.mark.parametrize("write", [
    lambda: chain(10_000, "%n"), lambda: chain(10_000, "%c"), lambda: pointers(10_000), lambda: branches(1000),
], ids=["sums", "sums of constants", "addresses", "branches"])  # fmt: skip
@pytest.mark.sampled(1)
def test_thousands_of_sums_are_not_compared_with_each_other(write: Callable[[], str]) -> None:
    """Comparing 10,000 took LLVM minutes. Without that it takes less time than this text's way to it."""
    text = write()
    assert ".entry k" in compile_llvm(text, SM80)


def test_another_process_compiles_to_the_same_text() -> None:
    for text in (pointers(20), pointers(nvptx.MAX_SUMS + 1)):
        assert compile_isolated(text, SM80) == compile_llvm(text, SM80)


def test_many_sums_are_translated_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvptx, "_ptx_of", None)  # of this process
    assert ".entry k" in compile_llvm(pointers(nvptx.MAX_SUMS + 1), SM80)
    with pytest.raises(TypeError):
        compile_llvm(pointers(nvptx.MAX_SUMS - 1), SM80)
