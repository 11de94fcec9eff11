# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code and what is reported of it."""

import io
import re
import sys

import pytest
from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import AssembleError, assemble, read_code_sizes
from tilefold.compiler.reports.kernel_report import count_instructions, make_report, print_report
from tilefold.dialects.ptx import EntryOp

from tests.emit.harness import SM80, kernel, parse, ptx_of

TWO = kernel(
    "%s = ptx.smem.addr 0\nptx.st %n, %s align 4 : i32, !ptx.ptr<shared>\nptx.bar.sync 0",
    "%n: i32",
    shared=4096,
).replace("  }\n}\n", "  }\n  ptx.entry @empty() threads(1) {\n    ptx.ret\n  }\n}\n")


def test_resources_are_those_of_each_kernel() -> None:
    cubin = assemble(ptx_of(TWO), SM80)
    assert set(cubin.kernels) == {"k", "empty"}
    used, empty = cubin.kernels["k"], cubin.kernels["empty"]
    assert (used.static_shared, empty.static_shared) == (4096, 0)
    assert used.registers >= 2
    assert (used.spill_stores, used.spill_loads, used.stack) == (0, 0, 0)
    assert min(used.code, empty.code) >= 128
    assert cubin.code.startswith(b"\x7fELF")


def test_a_missing_assembler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = sys.modules["tilefold.compiler.machine.assemble"]
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", None)
    monkeypatch.setattr(loaded, "_load_nvjitlink", loaded.__dict__["_load_nvjitlink"].__wrapped__)
    with pytest.raises(AssembleError, match="pip install") as caught:
        assemble("", SM80)
    assert caught.value.code == Code.ASSEMBLE_UNAVAILABLE.id


def test_spills_and_stack_are_counted() -> None:
    """A fragment whose index is known only at run time lives on the stack."""
    text = kernel(
        """
        %r = ptx.local.alloc 64 align 4
        %z = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %four = arith.constant 4 : i32
        scf.for %i = %z to %n step %one : i32 {
          %o = arith.muli %i, %four : i32
          %p = ptx.ptr_add %r, %o : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
          ptx.st %i, %p align 4 : i32, !ptx.ptr<local>
        }
        %q = ptx.ptr_add %r, %n : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
        %x = ptx.ld %q align 4 : !ptx.ptr<local> -> i32
        ptx.st %x, %A align 4 : i32, !ptx.ptr<global>
        """,
        "%A: !ptx.ptr<global> align 4, %n: i32",
    )
    assert assemble(ptx_of(text), SM80).kernels["k"].stack == 64


def test_instructions_are_counted_per_kernel_with_and_without_predicates() -> None:
    ptx = """
.visible .entry a(
)
{
\t.reg .pred \t%p<2>;
\t// a comment; with a semicolon
\tmov.u32 \t%r1, %tid.x;
\t@%p1 bra \t$L__BB0_2;
\t@!%p1 bra \t$L__BB0_2;
$L__BB0_2:
\t{ // callseq 0, 0
\tcall.uni (retval0), vprintf, (param0, param1);
\t}
\tret;

}
.visible .entry b()
{
\tret;
}
"""
    assert count_instructions(ptx) == {
        "a": {"bra": 2, "mov.u32": 1, "call.vprintf": 1, "ret": 1},
        "b": {"ret": 1},
    }


def test_shared_memory_is_the_kernels_own() -> None:
    """The assembler's log has 1280 bytes."""
    text = TWO.replace("shared(4096)", "shared(256)")
    entries = [op for op in parse(text).walk() if isinstance(op, EntryOp)]
    ptx = ptx_of(text)
    made = make_report(ptx, assemble(ptx, SM80), SM80, entries).kernels[0]
    assert (made.static_shared, made.dynamic_shared, made.occupancy.shared) == (256, 0, 164 * 1024 // (256 + 1024))


def test_report_shows_every_number() -> None:
    text = TWO.replace("threads(32) shared(4096)", "threads(64) min_blocks(2) shared(99999)")
    text = text.replace("%n: i32", "%n: i32, %A: !ptx.ptr<global> align 4")
    text = text.replace("ptx.bar.sync 0", "ptx.bar.sync 0\nptx.st %n, %A align 4 : i32, !ptx.ptr<global>")
    ptx = ptx_of(text)
    file = io.StringIO()
    entries = [op for op in parse(text).walk() if isinstance(op, EntryOp)]
    print_report(make_report(ptx, assemble(ptx, SM80), SM80, entries), file)
    text = file.getvalue()
    assert "resources on sm_80" in text
    for words in (
        "registers",
        "spill stores",
        "static shared memory",
        "99999",
        "blocks per multiprocessor",
        "limited by",
        "shared memory of k",
        "wavefronts",
        "global memory of k",
        "sectors",
        "st.shared.b32",
        "bar.sync",
        "PTX instructions of k",
    ):
        assert words in text


def test_report_shows_clusters_and_tma_copies() -> None:
    arguments = '%A: !ptx.ptr<global> align 16, %x: i32, %a: !ptx.tensor_map of "bf16 A dims (64, 64) strides (128) '
    arguments += 'box (32, 16) swizzle 64B", %b: !ptx.tensor_map of "f32 A dims (64) box (64)"'
    body = "%s = ptx.smem.addr 0\nptx.cp.async.bulk.tensor.store %a[%x, %x], %s\n" * 2
    text = kernel(body.replace("%s = ", "%s1 = ", 1).replace("], %s\n", "], %s1\n", 1), arguments, shared=4096)
    text, target = text.replace("threads(32)", "threads(32) cluster(2, 2)"), Target("sm_90a")
    ptx, file = ptx_of(text, target), io.StringIO()
    entries = [op for op in parse(text).walk() if isinstance(op, EntryOp)]
    report = make_report(ptx, assemble(ptx, target), target, entries)
    assert {name: copies for name, (_, copies) in report.kernels[0].maps.items()} == {"a": 2, "b": 0}
    print_report(report, file)
    shown = file.getvalue()
    assert re.search(r"blocks per cluster +│ +4 ", shown)
    assert re.search(r"│ a +│ +bf16 │ +32 x 16 │ +64 bytes │ +1024 │ +2 │", shown)
    assert re.search(r"│ b +│ +f32 │ +64 │ +│ +256 │ +0 │", shown)


def test_refused_ptx_is_reported_with_its_line() -> None:
    broken = ptx_of(kernel("ptx.bar.sync 0")).replace("bar.sync", "bar.sinc")
    with pytest.raises(AssembleError, match=r"line \d+; error .*Unknown modifier '\.sinc'") as caught:
        assemble(broken, SM80)
    assert caught.value.code == "E2301"
    assert "fatal" in caught.value.log


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(58), b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_what_is_no_machine_code_has_no_sizes(data: bytes) -> None:
    assert read_code_sizes(data) == {}
