# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that would keep LLVM busy for minutes: refused before it begins, or stopped."""

from itertools import pairwise

import pytest
from tilefold.base.errors import Code
from tilefold.compiler.machine import nvptx
from tilefold.compiler.machine.nvptx import LlvmError, compile_llvm
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


def test_llvm_is_stopped_where_it_compares_thousands_of_addresses() -> None:
    with pytest.raises(LlvmError, match="LLVM was stopped after 2 seconds") as caught:
        compile_llvm(pointers(4000), SM80, timeout=2.0)
    assert caught.value.code == Code.LLVM_TIMEOUT.id
    assert "split the kernel" in caught.value.hint


def test_another_process_compiles_to_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pointers(20)
    here = compile_llvm(text, SM80)
    monkeypatch.setattr(nvptx, "MAX_SUMS", 10)
    monkeypatch.setattr(nvptx, "_ptx_of", None)  # of this process
    assert compile_llvm(text, SM80) == here
