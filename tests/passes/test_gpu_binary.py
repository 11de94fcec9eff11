# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`attach-nvvm-target` and `emit-gpu-binary`: from kernels in the `llvm` dialect to PTX, machine code and bitcode."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.dialects.gpu.binary import BinaryOp, ObjectAttr

from tests.passes.harness import apply, printed

PIPELINE = "one-shot-convert-to-llvm,attach-nvvm-target,emit-gpu-binary"
KERNEL = """
gpu.module @m {
  gpu.func @k(%n: i32) kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
    %t = gpu.thread_id y
    %c = arith.index_cast %t : index to i32
    %s = arith.addi %c, %n : i32
    gpu.printf "%d\\n", %s : i32
    gpu.barrier
    gpu.return
  }
}
"""


def objects(text: str, passes: str) -> list[ObjectAttr]:
    """What the only device program of a text is compiled to."""
    module = apply(text, passes)
    assert printed(apply(printed(module), "dce")) == printed(module)  # it reads back
    (binary,) = [op for op in module.walk() if isinstance(op, BinaryOp)]
    assert binary.sym_name.data == "m"
    return [each for each in binary.objects if isinstance(each, ObjectAttr)]


def test_a_kernel_becomes_ptx() -> None:
    (one,) = objects(KERNEL, PIPELINE)
    ptx = one.object.data.decode()
    assert one.format.data == "assembly"
    for part in (".target sm_80", ".visible .entry k(", ".reqntid 64, 2, 1", "%tid.y", "vprintf", "bar.sync"):
        assert part in ptx, ptx


def test_each_target_has_its_object() -> None:
    found = objects(KERNEL, PIPELINE.replace("emit", "attach-nvvm-target{chip=sm_90},emit"))
    assert [b".target sm_80" in each.object.data for each in found] == [True, False]
    assert b".target sm_90" in found[1].object.data


@pytest.mark.parametrize(
    ("option", "format", "magic"), [("bin", "bin", b"\x7fELF"), ("llvm", "offload", b"BC\xc0\xde")]
)
def test_other_forms(option: str, format: str, magic: bytes) -> None:
    (one,) = objects(KERNEL, f"{PIPELINE}{{compilation-target={option}}}")
    assert one.format.data == format
    assert one.object.data.startswith(magic)


def test_a_target_is_attached_once() -> None:
    once = printed(apply("gpu.module @m { }", "attach-nvvm-target"))
    assert '@m [#nvvm.target<chip = "sm_80">]' in once
    assert printed(apply(once, "attach-nvvm-target")) == once
    options = 'attach-nvvm-target{chip="sm_90" features="+ptx81" opt-level=3}'
    both = printed(apply(once, options))
    assert '#nvvm.target<chip = "sm_80">, #nvvm.target<O = 3, chip = "sm_90", features = "+ptx81">' in both
    assert printed(apply(both, "dce")) == both


TARGET = '[#nvvm.target<chip = "sm_80">]'
BRANCH = (
    "llvm.func @f(%c: i1, %a: i32) -> i32 {\nllvm.cond_br %c, ^to(%a : i32), ^to(%a : i32)\n"
    "^to(%x: i32):\nllvm.return %x : i32\n}"
)
EXP = "llvm.func @f(%x: f32) {\n%y = llvm.intr.exp(%x) : (f32) -> f32\nllvm.return\n}"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("@m { }", "the module has no target attributes"),
        ('@m [#nvvm.target<chip = "sm_1">] { }', "sm_1"),
        ('@m [#nvvm.target<chip = "sm_80", features = "+ptx12">] { }', "features '+ptx12' cannot be chosen"),
        ("@m [1 : i32] { }", "is not a #nvvm.target"),
        (f"@m {TARGET} {{ gpu.func @k() kernel {{\ngpu.return\n}} }}", "run one-shot-convert-to-llvm before"),
        (f"@m {TARGET} {{ llvm.func @k() {{\ngpu.barrier\nllvm.return\n}} }}", "run one-shot-convert-to-llvm before"),
        (f"@m {TARGET} {{ llvm.func @printf(!llvm.ptr, ...) -> i32 }}", "variadic"),
        (f'@m {TARGET} {{ llvm.func @"a b"() {{\nllvm.return\n}} }}', "cannot be a name in PTX"),
        (f"@m {TARGET} {{ {EXP} }}", "'llvm.intr.exp' has no instruction in PTX"),
        (f"@m {TARGET} {{ {BRANCH} }}", "both ways of a branch"),
        (f"@m {TARGET} {{ llvm.mlir.global internal @g() : i32 }}", "needs a value"),
    ],
)
def test_what_cannot_be_compiled_is_refused(module: str, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        apply(f"gpu.module {module}", "emit-gpu-binary")
    assert said in str(caught.value)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ProgramError, match="is not a compilation-target"):
        apply("gpu.module @m { }", "emit-gpu-binary{compilation-target=fatbin}")


def test_blocks_that_nothing_leads_to_may_have_arguments() -> None:
    text = f"gpu.module @m {TARGET} {{ llvm.func @k() attributes {{gpu.kernel, nvvm.kernel}} {{\nllvm.return\n"
    text += "^lost(%x: i32):\nllvm.br ^on(%x : i32)\n^on(%y: i32):\nllvm.return\n} }"
    (one,) = objects(text, "emit-gpu-binary")
    assert b".entry k(" in one.object.data
