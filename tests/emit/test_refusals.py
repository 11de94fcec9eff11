# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What emission refuses, before LLVM sees it, and how LLVM's own failures are reported."""

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target, TargetError, known_targets
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.nvptx import LlvmError, compile_isolated, compile_llvm
from tilefold.dialects.kernel import LaunchBounds
from tilefold.dialects.ptx import EntryOp, RetOp
from tilefold.passes.errors import LoweringError
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float128Type, IntegerType, StringAttr, VectorType, f32, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Operation, Region

from tests.emit.harness import SM80, kernel, llvm_of, parse, ptx_of


def _entry(ops: list[Operation], name: str = "k", end: bool = True) -> EntryOp:
    """A kernel that no parser and no verifier has seen."""
    return EntryOp(name, [], [], LaunchBounds((32, 1, 1)), Region(Block([*ops, *([RetOp()] if end else [])])))


def _refused(entry: EntryOp, code: str) -> str:
    with pytest.raises(LoweringError) as caught:
        emit_llvm(entry, SM80)
    assert caught.value.code == code
    return caught.value.message


def test_operation_without_rule() -> None:
    message = _refused(_entry([TestOp()]), "E2201")
    assert message == "'test.op' has no translation to PTX"


@pytest.mark.parametrize(
    "type",
    [
        IntegerType(7),
        IntegerType(128),
        Float128Type(),
        VectorType(f32, [2, 2]),
        VectorType(f32, [100_000]),
        VectorType(IntegerType(7), [4]),
    ],
    ids=str,
)
def test_type_that_registers_do_not_hold(type: Attribute) -> None:
    bit = arith.ConstantOp.from_int_and_width(1, 1)
    block = Block(arg_types=[type])
    block.add_ops([bit, arith.SelectOp(bit, block.args[0], block.args[0]), RetOp()])
    message = _refused(EntryOp("k", ["a"], [0], LaunchBounds((32, 1, 1)), Region(block)), "E2201")
    assert "which PTX registers cannot hold" in message


def test_kernel_without_return() -> None:
    assert "must end in 'ptx.ret'" in _refused(_entry([arith.ConstantOp.from_int_and_width(1, 32)], end=False), "E2201")


def test_branch_with_results_but_one_region() -> None:
    one = arith.ConstantOp.from_int_and_width(1, 32)
    bit = arith.ConstantOp.from_int_and_width(1, 1)
    branch = scf.IfOp(bit, [i32], [scf.YieldOp(one)])
    assert "needs both regions" in _refused(_entry([one, bit, branch]), "E2201")


def test_loop_that_yields_too_little() -> None:
    one = arith.ConstantOp.from_int_and_width(1, 32)
    body = Block([scf.YieldOp()], arg_types=[i32, i32])
    assert "yields 0 values, not 1" in _refused(_entry([one, scf.ForOp(one, one, one, [one], body)]), "E2201")


@pytest.mark.parametrize("name", ["vprintf", "_", "WARP_SZ"])
def test_name_that_ptx_has_already(name: str) -> None:
    assert "cannot be the name of a kernel" in _refused(_entry([], name), "E2202")


@pytest.mark.parametrize(
    "name",
    ['k"() { ret void }', "k\n}", "k;", "", "1k", "k$shared", "a" * 256, "ö", "k.1", "@k", "k(", "llvm.trap"],
)
def test_name_cannot_break_out_of_the_text(name: str) -> None:
    entry = _entry([])
    entry.properties["sym_name"] = StringAttr(name)
    assert "must consist of letters, digits and underscores" in _refused(entry, "E1003")


def test_extension_to_a_type_that_is_not_wider() -> None:
    text = kernel("%y = arith.extf %x : f16 to bf16", "%x: f16")
    with pytest.raises(LoweringError, match="must be wider"):
        llvm_of(text)


def test_constant_index_outside_the_vector() -> None:
    text = kernel("%y = vector.extract %x[4] : f32 from vector<4xf32>", "%x: vector<4xf32>")
    with pytest.raises(LoweringError, match="index 4 is outside"):
        llvm_of(text)


def test_function_that_f64_does_not_have() -> None:
    with pytest.raises(LoweringError, match=r"'math.exp' has no instruction for f64"):
        llvm_of(kernel("%y = math.exp %x : f64", "%x: f64"))


@pytest.mark.parametrize("body", ['ptx.cp.async "cg" 16 %s, %A', "ptx.cp.async.commit_group", "ptx.cp.async.wait_all"])
def test_instruction_that_is_newer_than_the_target(body: str) -> None:
    text = kernel(f"%s = ptx.smem.addr 0\n{body}", "%A: !ptx.ptr<global> align 16", shared=16)
    assert llvm_of(text, SM80)
    with pytest.raises(LoweringError, match=r"cp.async.* needs sm_80 .*; sm_75 is older") as caught:
        llvm_of(text, Target("sm_75"))
    assert caught.value.code == "E2102"


@pytest.mark.parametrize(
    ("arch", "limit"), [("sm_75", 64), ("sm_80", 163), ("sm_89", 99), ("sm_90a", 227), ("sm_120", 99)]
)
def test_shared_memory_over_the_limit(arch: str, limit: int) -> None:
    target = Target(arch)
    assert llvm_of(kernel("", shared=limit * 1024), target)
    with pytest.raises(TargetError, match=f"at most {limit * 1024} on {arch}") as caught:
        llvm_of(kernel("", shared=limit * 1024 + 1), target)
    assert caught.value.code == "E2103"


@pytest.mark.parametrize("body", [f"%l = ptx.local.alloc {2**40} align 4", f"%l = ptx.local.alloc 4 align {2**40}"])
def test_fragment_that_no_thread_can_have(body: str) -> None:
    with pytest.raises(LoweringError, match="does not fit a thread's local memory"):
        llvm_of(kernel(body))


def test_huge_alignment_of_an_access_means_no_more_than_a_large_one() -> None:
    text = kernel(f"%x = ptx.ld %A align {2**62} : !ptx.ptr<global> -> i32", f"%A: !ptx.ptr<global> align {2**62}")
    assert "ld.global.b32" in ptx_of(text)


def test_too_many_arguments() -> None:
    assert llvm_of(kernel("", ", ".join(f"%x{i}: i64" for i in range(512))))
    assert llvm_of(kernel("", ", ".join(f"%x{i}: i32" for i in range(1024))))
    with pytest.raises(LoweringError, match="take 4104 bytes"):
        llvm_of(kernel("", ", ".join(f"%x{i}: i64" for i in range(513))))


def test_address_outside_shared_memory() -> None:
    with pytest.raises(LoweringError, match="offset 64 is outside the 64 bytes"):
        llvm_of(kernel("%s = ptx.smem.addr 64", shared=64))


@pytest.mark.parametrize("name", ["sm_70", "sm_91", "90", "sm_90b", "", "gfx90a", "sm_80 +ptx99"])
def test_unknown_target_lists_the_known_ones(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target(name)
    assert caught.value.code == "E2101"
    assert all(known in caught.value.hint for known in known_targets())


def test_text_that_llvm_refuses() -> None:
    with pytest.raises(LlvmError, match="expected") as caught:
        compile_llvm("define void @k( {", SM80)
    assert (caught.value.code, caught.value.llvm_ir) == ("E2203", "define void @k( {")


def test_isolated_compilation_gives_the_same_ptx() -> None:
    text = llvm_of(kernel("ptx.bar.sync 0"))
    assert compile_isolated(text, SM80) == compile_llvm(text, SM80)


def test_isolated_compilation_survives_a_crash_of_llvm() -> None:
    crash = llvm_of(kernel("", "%x: f64, %A: !ptx.ptr<global> align 8")).replace(
        "ret void",
        "%y = call double @llvm.pow.f64(double %a0, double %a0)\nstore double %y, ptr addrspace(1) %a1\nret void",
    )
    with pytest.raises(LlvmError, match="LLVM ended with status") as caught:
        compile_isolated(crash, SM80)
    assert caught.value.code == "E2204"


def test_isolated_compilation_reports_what_llvm_refuses() -> None:
    with pytest.raises(LlvmError) as caught:
        compile_isolated("nonsense", SM80)
    assert caught.value.code == "E2203"


def test_isolated_compilation_ends_in_time() -> None:
    with pytest.raises(LlvmError) as caught:
        compile_isolated(llvm_of(kernel("ptx.bar.sync 0")), SM80, timeout=0.001)
    assert caught.value.code == "E2205"


def test_refusal_names_the_line() -> None:
    module = parse(kernel("ptx.bar.sync 0\nptx.cp.async.commit_group"))
    with pytest.raises(TilefoldError) as caught:
        emit_llvm(module, Target("sm_75"))
    assert isinstance(caught.value, LoweringError)
    assert str(caught.value.operation.location) == 'loc("k.cute":4:5)'
