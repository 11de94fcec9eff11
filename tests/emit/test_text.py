# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of the emitted text: kernels, shared memory, printf, loops, source lines, and the order of it all."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from tilefold.base.target import Target
from tilefold.compiler.emit import DATA_LAYOUT, emit_llvm
from tilefold.compiler.emit.lineinfo import FileNames
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.compiler.pipeline import make_context
from tilefold.compiler.reports.kernel_report import count_instructions
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from tests.emit.examples import ARGS, all_examples
from tests.emit.harness import SM80, kernel, llvm_of, parse, ptx_of
from tests.kernels.harness import program
from tests.sass import disassemble

ROOT = Path(__file__).parents[2]


def check(text: str, patterns: str) -> None:
    """Runs FileCheck: `patterns` holds its CHECK lines."""
    options = Options(match_filename="checks")
    checks = Parser(options, StringIO(patterns), *pattern_for_opts(options))
    assert Matcher(options, FInput("text", text), checks).run() == 0


def test_kernel_declares_its_block_alignment_and_types() -> None:
    text = kernel("", "%A: !ptx.ptr<global> align 128, %n: i32, %x: f16", threads="8, 4, 2")
    check(
        llvm_of(text),
        """
        CHECK: target datalayout = "e-p3:32:32
        CHECK: define ptx_kernel void @k(ptr addrspace(1) align 128 %a0, i32 %a1, half %a2)
        CHECK-SAME: "nvvm.reqntid"="8,4,2" {
        CHECK-NEXT: entry:
        CHECK-NEXT: ret void
        """,
    )
    check(ptx_of(text), "CHECK: .param .u64 .ptr .global .align 128 k_param_0\nCHECK: .reqntid 8, 4, 2")


def test_small_shared_memory_is_static_and_large_is_dynamic() -> None:
    body = "%s = ptx.smem.addr 48\nptx.st %n, %s align 4 : i32, !ptx.ptr<shared>"
    check(ptx_of(kernel(body, "%n: i32", shared=49152)), "CHECK: .shared .align 1024 .b8 k$shared[49152]")
    check(ptx_of(kernel(body, "%n: i32", shared=49153)), "CHECK: .extern .shared .align 1024 .b8 k$shared[]")
    check(
        llvm_of(kernel(body, "%n: i32", shared=64)),
        "CHECK: getelementptr (i8, ptr addrspace(3) @k$shared, i32 48)",
    )


def test_shared_addresses_are_32_bits_wide() -> None:
    text = kernel(
        """
        %t = ptx.sreg "tid.x"
        %four = arith.constant 4 : i32
        %o = arith.muli %t, %four : i32
        %s = ptx.smem.addr 0
        %p = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
        ptx.st %n, %p align 4 : i32, !ptx.ptr<shared>
        """,
        "%n: i32",
        shared=128,
    )
    check(ptx_of(text), "CHECK: st.shared.b32 [%r\nCHECK-NOT: .b64")


def test_registers_have_the_ranges_that_the_launch_guarantees() -> None:
    stores = "\n".join(
        f'%r{i} = ptx.sreg "{name}"\nptx.st %r{i}, %A align 4 : i32, !ptx.ptr<global>'
        for i, name in enumerate(("tid.x", "tid.y", "ntid.x", "ctaid.y", "nctaid.x"))
    )
    check(
        llvm_of(kernel(stores, "%A: !ptx.ptr<global> align 4", threads="96")),
        """
        CHECK: call range(i32 0, 96) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
        CHECK: store volatile i32 0
        CHECK: store volatile i32 96
        CHECK: call range(i32 0, 65535) i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
        CHECK: call range(i32 1, -2147483648) i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
        """,
    )


def test_clusters() -> None:
    text = kernel(
        """
        %s = ptx.smem.addr 0
        %bar = ptx.smem.addr 64
        %rank = ptx.sreg "cluster_ctarank"
        %size = ptx.sreg "cluster_nctarank"
        %one = arith.constant 1 : i32
        %other = arith.xori %rank, %one : i32
        %q = ptx.mapa %s, %other
        %q_bar = ptx.mapa %bar, %other
        ptx.barrier.cluster.arrive relaxed aligned
        ptx.barrier.cluster.wait aligned
        ptx.st %size, %q align 4 : i32, !ptx.ptr<shared_cluster>
        ptx.mbarrier.arrive.expect_tx %q_bar, %one
        ptx.mbarrier.arrive %q_bar
        ptx.mbarrier.wait %bar, %one scope "cluster"
        """,
        shared=128,
    ).replace("threads(32)", "threads(32) cluster(2)")
    check(
        llvm_of(text, Target("sm_90")),
        """
        CHECK: "nvvm.cluster_dim"="2,1,1"
        CHECK: call range(i32 0, 2) i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
        CHECK: call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3)
        CHECK: asm sideeffect "barrier.cluster.arrive.relaxed.aligned;", "~{memory}"() convergent
        CHECK: store volatile i32 2, ptr addrspace(7)
        """,
    )
    check(
        ptx_of(text, Target("sm_90")),
        """
        CHECK: .explicitcluster
        CHECK: .reqnctapercluster 2, 1, 1
        CHECK: mapa.shared::cluster.u32
        CHECK: barrier.cluster.arrive.relaxed.aligned;
        CHECK: barrier.cluster.wait.aligned;
        CHECK: st.shared::cluster.b32 [%r
        CHECK: mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r
        CHECK: mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r
        CHECK: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%r
        """,
    )


def test_printf_passes_promoted_arguments_and_its_format_as_bytes() -> None:
    text = kernel(
        'ptx.printf "%d \\22%lld\\22 %f\\n"(%a, %b, %c) : i8, i64, f16',
        "%a: i8, %b: i64, %c: f16",
    )
    check(
        llvm_of(text),
        r"""
        CHECK: declare i32 @vprintf(ptr, ptr)
        CHECK: @k$text0 = private unnamed_addr addrspace(4) constant [14 x i8] c"%d \22%lld\22 %f\0A\00"
        CHECK: alloca { i32, i64, double }, align 8
        CHECK: sext i8 %a0 to i32
        CHECK: fpext half %a2 to double
        CHECK: call i32 @vprintf(
        """,
    )


@pytest.mark.parametrize("format", ['"\\n}\\nret;', "\\5C\\5C00", "a\\22, align 1\\n@x = global i32 0\\n;", "é ☃"])
def test_printf_cannot_break_out_of_its_string(format: str) -> None:
    escaped = format.replace('"', "\\22")
    ptx = ptx_of(kernel(f'ptx.printf "{escaped}"() :'))
    assert ptx.count("\n}\n") == 1
    assert "@x" not in ptx


def test_an_assertion_prints_its_place_where_assertions_are_kept() -> None:
    text = kernel('cf.assert %holds, "i is \\22beyond\\22"\nptx.bar.sync 0', "%holds: i1")
    check(
        llvm_of(text),
        r"""
        CHECK: declare void @__assertfail(ptr, ptr, i32, ptr, i64)
        CHECK: c"i is \22beyond\22\00"
        CHECK: c"k.cute\00"
        CHECK: br i1 %a0, label %[[HOLDS:[a-z0-9]+]], label %[[FAILS:[a-z0-9]+]]
        CHECK: [[FAILS]]:
        CHECK-NEXT: call void @__assertfail({{.*}}, i32 3, ptr {{.*}}, i64 1)
        CHECK-NEXT: br label %[[HOLDS]]
        """,
    )
    check(
        ptx_of(text),
        r"""
        CHECK: @%p{{[0-9]+}} bra [[HOLDS:[^;]+]];
        CHECK: call.uni __assertfail
        CHECK: [[HOLDS]]:
        CHECK: bar.sync 0;
        """,
    )
    without = kernel("ptx.bar.sync 0", "%holds: i1").replace("bar.sync 0", "bar.sync 0 ")
    assert llvm_of(text, assertions=False) == llvm_of(without, assertions=False)


@pytest.mark.parametrize("op", ['ptx.printf "{}"() :', 'cf.assert %holds, "{}"'], ids=["printf", "assertion"])
def test_printed_text_cannot_steer_the_terminal(op: str) -> None:
    llvm = llvm_of(kernel(op.format("\\1B[31m\\07"), "%holds: i1"))
    assert r'c"\5Cx1b[31m\5Cx07\00"' in llvm.replace(r"\\", r"\5C")


def test_loops_are_unrolled_only_where_they_are_marked() -> None:
    text = kernel(
        """
        %z = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %four = arith.constant 4 : i32
        scf.for %i = %z to %n step %one : i32 {
          scf.for %j = %z to %four step %one : i32 {
            ptx.bar.sync 0
          } {unroll}
          scf.for %j = %z to %n step %one : i32 {
            ptx.bar.sync 1
          } {unroll = 1 : i64}
        }
        """,
        "%n: i32",
    )
    check(
        llvm_of(text),
        """
        CHECK: br label %for{{[0-9]+}}, !llvm.loop [[FIRST:![0-9]+]]
        CHECK: br label %for{{[0-9]+}}, !llvm.loop [[SECOND:![0-9]+]]
        CHECK: br label %for{{[0-9]+$}}
        CHECK: [[FULL:![0-9]+]] = !{!"llvm.loop.unroll.full"}
        CHECK: [[FIRST]] = distinct !{[[FIRST]], [[FULL]]}
        CHECK: [[NONE:![0-9]+]] = !{!"llvm.loop.unroll.disable"}
        CHECK: [[SECOND]] = distinct !{[[SECOND]], [[NONE]]}
        """,
    )


def test_source_lines_are_written_when_asked_for() -> None:
    text = kernel("ptx.bar.sync 0\nptx.cp.async.commit_group")
    plain = emit_llvm(parse(text), SM80)
    assert "!dbg" not in plain
    ptx = compile_llvm(emit_llvm(parse(text), SM80, lineinfo=True), SM80)
    check(
        ptx,
        """
        CHECK: .loc 1 3 5
        CHECK-NEXT: bar.sync 0;
        CHECK: .loc 1 4 5
        CHECK-NEXT: cp.async.commit_group;
        CHECK: .file 1 "k.cute"
        """,
    )
    assert without_lines(ptx) == ptx_of(text)


def without_lines(ptx: str) -> str:
    return "".join(line for line in ptx.splitlines(keepends=True) if not line.startswith(("\t.loc\t", "\t.file\t")))


@pytest.mark.parametrize("name", ["attention", "gemm_sm90", "reduce", "six_threads", "softmax"])
@pytest.mark.sampled(2)
def test_lines_change_no_instruction(name: str) -> None:
    target = Target("sm_90a")
    found = program(ROOT / "examples" / f"{name}.cute")
    with_lines, plain = found.ptx(target), found.ptx(target, lines=False)
    assert without_lines(with_lines) == plain
    assert with_lines.count(".loc") > 20
    if "setmaxnreg" not in plain:
        codes = [assemble(ptx, target).code for ptx in (with_lines, plain)]
        one, other = (re.findall(r"^ +/\*[0-9a-f]{4,}\*/.*", disassemble(code), re.MULTILINE) for code in codes)
        assert one == other


def test_files_are_named_without_folders_as_far_as_they_differ() -> None:
    names = FileNames()
    paths = ["/x/a/gemm.py", "/x/b/gemm.py", "/x/a/gemm.py", "lib/rows.py", "gemm.py"]
    assert [names.name(path) for path in paths] == ["gemm.py", "b/gemm.py", "gemm.py", "rows.py", "./gemm.py"]
    assert names.paths["b/gemm.py"] == "/x/b/gemm.py"


def test_operations_of_another_file_than_their_kernel_have_its_lines() -> None:
    module = parse(kernel("ptx.bar.sync 0\nptx.cp.async.commit_group"))
    barrier = next(op for op in module.walk() if op.name == "ptx.bar.sync")
    barrier.location = FileLineColLoc(StringAttr("/usr/lib/helpers.py"), IntAttr(40), IntAttr(7))
    check(
        compile_llvm(emit_llvm(module, SM80, lineinfo=True), SM80),
        """
        CHECK: .loc [[OTHER:[0-9]+]] 40 7
        CHECK-NEXT: bar.sync 0;
        CHECK: .loc [[HOME:[0-9]+]] 4 5
        CHECK-NEXT: cp.async.commit_group;
        CHECK-DAG: .file [[OTHER]] "helpers.py"
        CHECK-DAG: .file [[HOME]] "k.cute"
        """,
    )


@pytest.mark.parametrize(("product", "total", "instructions"), [
    ("", "", ["mul.rn.f32", "add.rn.f32"]),
    (" fastmath<contract>", "", ["mul.f32", "add.rn.f32"]),
    (" fastmath<contract>", " fastmath<contract>", ["fma.rn.f32"]),
])  # fmt: skip
def test_sums_of_products_are_contracted_where_both_allow_it(product: str, total: str, instructions: list[str]) -> None:
    body = f"""
        %p = arith.mulf %a, %b{product} : f32
        %s = arith.addf %p, %b{total} : f32
        ptx.st %s, %A align 4 : f32, !ptx.ptr<global>
        """
    ptx = ptx_of(kernel(body, "%A: !ptx.ptr<global> align 4, %a: f32, %b: f32"))
    assert re.findall(r"(?:mul|add|fma)\.\S*f32", ptx) == instructions


def test_data_layout_is_that_of_the_back_end() -> None:
    assert ptx_of(kernel("ptx.bar.sync 0"))  # making the target machine compares them
    assert "p3:32:32" in DATA_LAYOUT


_PROGRAM = """
import sys
from tests.emit.examples import ARGS, SHARED, all_examples
from tests.emit.harness import kernel, ptx_of
body = "\\n".join(f"scf.if %i1 {{\\n{body}\\n}}" for _, body in all_examples()[::7])
fast = "%q = arith.addf %f32, %f32 fastmath<fast> : f32\\nptx.st %q, %B align 4 : f32, !ptx.ptr<global>"
sys.stdout.write(ptx_of(kernel(body + "\\n" + fast, ARGS, shared=SHARED)))
"""


def test_same_program_gives_same_ptx_in_every_process() -> None:
    texts = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(texts[0]) > 1000
    assert texts[0] == texts[1]


def test_waiting_for_an_mbarrier_is_a_loop() -> None:
    wait = "%bar = ptx.smem.addr 8\nptx.mbarrier.wait %bar, %i32\nptx.mbarrier.wait %bar, %i32"
    for target, instruction in ((SM80, "test_wait"), (Target("sm_90"), "try_wait")):
        ptx = ptx_of(kernel(wait, ARGS, shared=16), target)
        loop = rf"AGAIN:\s+mbarrier\.{instruction}\.parity\.shared\.b64 done, \[(%r\d+)\], %r\d+;\s+@!done bra AGAIN;"
        assert len(re.findall(loop, ptx)) == 2
        assert assemble(ptx, target).kernels["k"].registers > 0


def test_threads_can_compile_at_once() -> None:
    text = llvm_of(kernel(all_examples()[0][1], ARGS))
    targets = [Target("sm_80"), Target("sm_90a")] * 4
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(compile_llvm, [text] * len(targets), targets))
    assert together == [compile_llvm(text, target) for target in targets]


@pytest.mark.parametrize("name", ['a"b.cute', "a\nret;.cute", "dir/\\.cute", "é/{self}.cute"])
def test_file_name_cannot_break_out_of_its_directive(name: str) -> None:
    module = parse_program(plain_source(kernel("ptx.bar.sync 0"), name), make_context())
    ptx = compile_llvm(emit_llvm(module, SM80, lineinfo=True), SM80)
    assert count_instructions(ptx) == {"k": {"bar.sync": 1, "ret": 1}}
    assert assemble(ptx, SM80).kernels["k"].registers > 0


def test_emission_does_not_depend_on_what_was_compiled_before() -> None:
    text = kernel(all_examples()[0][1], ARGS)
    first = ptx_of(text)
    ptx_of(kernel("ptx.bar.sync 0", name="other"), Target("sm_100a"))
    assert ptx_of(text) == first
