# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PTX of the examples: as wide as layouts and alignments allow, and nothing of the layout algebra left."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.machine.assemble import assemble
from tilefold.passes.analysis.local_memory import local_fragments
from tilefold.passes.analysis.loop_hints import stays_a_loop

from tests.kernels.harness import EXAMPLES, example, kernel_ptx, loops, program, ptx, ptx_counts, target_of
from tilefold.driver.lowering import load

FOUR_WAYS = ("index_arithmetic", "layout_algebra", "tv_composition", "tiled_copy")
POWERS_OF_TWO = [
    *(("four_ways", kernel) for kernel in FOUR_WAYS),
    ("tiled_copy", "tiled_copy"),
    ("ldmatrix", "ldmatrix"),
    ("ldmatrix", "ldmatrix_trans"),
    ("transpose", "swizzled_f32"),
    ("transpose", "swizzled_f16"),
]
ARCHS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120")


def body(kernel: str) -> list[str]:
    """The instructions of a kernel with its registers numbered anew, which shows whether two kernels are one."""
    numbers: dict[str, str] = {}
    lines = kernel[kernel.index("{") :].splitlines()
    text = "\n".join(line for line in lines if line.startswith("\t") and not line.startswith("\t."))
    text = re.sub(r"\w+_param_", "param_", text)
    return re.sub(r"%[a-z]+\d+", lambda m: numbers.setdefault(m[0], f"%{len(numbers)}"), text).splitlines()


@pytest.mark.parametrize("kernel", FOUR_WAYS)
def test_four_ways_take_two_wide_loads_and_stores(kernel: str) -> None:
    counts = ptx_counts(example("four_ways"))[kernel]
    memory = {
        name: count for name, count in counts.items() if name.startswith(("ld.", "st.", "bra")) and "param" not in name
    }
    assert memory == {"ld.global.v4.b32": 2, "st.global.v4.b32": 2}


def test_four_ways_are_one_program() -> None:
    first, *others = (body(kernel_ptx(example("four_ways"), kernel)) for kernel in FOUR_WAYS)
    for other in others:
        assert other == first


def test_the_tiled_copy_uses_cp_async_of_16_bytes() -> None:
    text = kernel_ptx(example("tiled_copy"), "tiled_copy")
    assert len(re.findall(r"cp\.async\.ca\.shared\.global\s+\[[^]]+\], \[[^]]+\], 16;", text)) == 16
    counts = ptx_counts(example("tiled_copy"))["tiled_copy"]
    assert counts["ld.shared.v4.b32"] == counts["st.global.v4.b32"] == 16
    assert "ld.global" not in text


def test_ldmatrix_moves_four_matrices() -> None:
    for kernel, trans in (("ldmatrix", ""), ("ldmatrix_trans", ".trans")):
        counts = ptx_counts(example("ldmatrix"))[kernel]
        assert counts[f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16"] == 16
        assert not any(name.startswith("ld.shared") for name in counts)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.sampled(8)
def test_fragments_are_registers_and_loops_are_unrolled(path: Path) -> None:
    for kernel, counts in ptx_counts(path).items():
        if "call.vprintf" not in counts:  # printf takes its arguments on the stack
            assert ".local" not in kernel_ptx(path, kernel), kernel
    for entry in program(path).entries(target_of(path)):
        if not any(map(stays_a_loop, entry.walk())):
            assert not loops(kernel_ptx(path, entry.sym_name.data)), entry.sym_name.data


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_division_is_left_and_factors_are_immediates(path: Path) -> None:
    text = ptx(path)
    if path.stem == "gemm_grouped":  # the rows of tiles of a group are known at run time only
        return
    assert not re.search(r"\b(?:div|rem)\.", text)
    if path.stem == "ragged_copy":  # its strides are known at run time only
        return
    for line in re.findall(r"^\s+(?:mul|mad)\.(?!rn\.)[^;]*;", text, re.MULTILINE):  # .rn is of floats
        assert re.search(r", -?\d+[,;]", line), f"a product of two registers: {line.strip()}"


@pytest.mark.parametrize(("name", "kernel"), POWERS_OF_TWO)
def test_strides_of_powers_of_two_are_shifts_masks_and_adds(name: str, kernel: str) -> None:
    for line in kernel_ptx(example(name), kernel).splitlines():
        multiplied = re.match(r"\s+(mul|mad)\.(\S+).*, (\d+)(?:,[^,]*)?;", line)
        if multiplied:  # LLVM writes a shift that widens to 64 bits as one instruction, mul.wide
            assert f"{multiplied[1]}.{multiplied[2]}".startswith("mul.wide."), line.strip()
            assert int(multiplied[3]).bit_count() == 1, line.strip()


_NOTHING: Mapping[str, str] = MappingProxyType({})
_TENSOR_CORE = "gemm_sm100", "gemm_sm100_dynamic", "gemm_blockscaled", "attention_sm100"
_WARPGROUPS = "gemm_sm90", "gemm_fp8_scaled", "gemm_grouped", "attention_sm90"
LACKING: Mapping[tuple[str, str], tuple[str, str, Mapping[str, str]]] = MappingProxyType({
    ("gemm", arch): ("E2103", f"the block needs 147456 bytes of shared memory; {arch} has 101376", {"STAGES": "2"})
    for arch in ("sm_86", "sm_89", "sm_120")
} | {
    (name, arch): ("E2102", f"SM90_TMA_LOAD needs sm_90 and PTX 8.0; {arch} is older", _NOTHING)
    for name in ("tma_copy", *_WARPGROUPS) for arch in ("sm_80", "sm_86", "sm_89")
} | {
    (name, "sm_100a"): ("E2102", "an instruction of sm_90a only, not of sm_100a", _NOTHING) for name in _WARPGROUPS
} | {
    (name, "sm_120"): ("E2102", "is an instruction of single architectures; sm_120 stands", _NOTHING)
    for name in _WARPGROUPS
} | {
    (name, arch): ("E2102", f"needs sm_90 and PTX 8.0; {arch} is older", _NOTHING)
    for name in _TENSOR_CORE for arch in ("sm_80", "sm_86", "sm_89")
} | {
    (name, arch): ("E2102", f"needs sm_100 and PTX 8.6; {arch} is older", _NOTHING)
    for name, archs in (
        ("tcgen05_mma", ("sm_80", "sm_86", "sm_89", "sm_90a")), ("umma", ("sm_90a",)),
        *((name, ("sm_90a",)) for name in _TENSOR_CORE),
    )
    for arch in archs
} | {
    ("umma", arch): ("E2102", f"fence.proxy.async needs sm_90 and PTX 8.0; {arch} is older", _NOTHING)
    for arch in ("sm_80", "sm_86", "sm_89")
} | {
    (name, "sm_120"): ("E2102", "is an instruction of single architectures; sm_120 stands", _NOTHING)
    for name in ("tcgen05_mma", "umma", *_TENSOR_CORE)
} | {
    ("gemm_sm120", arch): ("E2102", f"needs sm_90 and PTX 8.0; {arch} is older", _NOTHING)
    for arch in ("sm_80", "sm_86", "sm_89")
} | {
    ("gemm_sm120", arch): ("E2102", f"needs sm_120 and PTX 8.7; {arch} is older", _NOTHING)
    for arch in ("sm_90a", "sm_100a")
} | {
    ("gemm_sm120", "sm_120"): ("E2102", "is an instruction of single architectures; sm_120 stands", _NOTHING)
})  # fmt: skip
"""By example and target: why the target refuses the example as it is, and the parameters with which it does
not, if there are any."""


@pytest.mark.parametrize(("name", "arch"), LACKING, ids=[f"{name}-{arch}" for name, arch in LACKING])
@pytest.mark.sampled(6)
def test_what_a_target_lacks_is_said(name: str, arch: str) -> None:
    code, said, changed = LACKING[name, arch]
    with pytest.raises(ProgramError) as refused:
        ptx(example(name), arch)
    assert refused.value.code == code
    assert said in refused.value.message
    for parameter, value in changed.items():  # the line that is shown names it
        assert f"// -D {parameter}={value} fits" in refused.value.diagnostics[0].render()
    if not changed:
        return
    smaller = load(expand(example(name).read_text(), name, changed)).ptx(Target(arch))
    assert all(kernel.spill_stores == 0 for kernel in assemble(smaller, Target(arch)).kernels.values())


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.sampled(13)
def test_every_target_assembles_without_spills(path: Path, arch: str) -> None:
    if (path.stem, arch) in LACKING:
        return
    kernels = assemble(ptx(path, arch), Target(arch)).kernels
    assert set(kernels) == set(ptx_counts(path))
    for name, resources in kernels.items():
        assert resources.spill_stores == resources.spill_loads == 0, name
        limit = 255 if "mma" in kernel_ptx(path, name) else 128  # accumulators take half of them
        assert 0 < resources.registers <= limit, name
        if "call.vprintf" not in ptx_counts(path)[name]:
            assert resources.stack == 0, name
    if arch == "sm_80":
        assert not any(local_fragments(entry) for entry in program(path).entries(Target(arch)))
