# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contracts of the stages: `check-stage`, and `check-target` for what a GPU can execute."""

from collections.abc import Sequence
from typing import Any

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target, TargetError, known_targets
from tilefold.compiler import pass_runner
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.pass_runner import run_passes
from tilefold.compiler.pipeline import STAGE_NAMES
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tests.dialects.samples import programs
from tests.passes.harness import apply, entry, kernel, lowered, source_of
from tilefold.driver.lowering import load

POOL = kernel("%t = gpu.thread_id x\n%c = arith.constant 1 : index\n%0 = arith.addi %t, %c : index")


def refusal(text: str, passes: str) -> ProgramError:
    """The ProgramError that the pass raises."""
    with pytest.raises(ProgramError) as caught:
        apply(text, passes)
    return caught.value


def _by_name() -> dict[str, str]:
    return {name: text for name, text, _ in programs()}


@pytest.mark.parametrize("stage", STAGE_NAMES)
def test_what_a_pipeline_leaves_fulfils_its_contract(stage: str) -> None:
    module = lowered(POOL, stage)
    names = {op.name for op in module.walk()}
    assert ("tile.kernel" in names) == (stage in ("cute", "folded", "atoms"))
    assert ("ptx.entry" in names) == (stage in ("index", "instr"))
    assert not any(name.startswith("tile.") for name in names) or stage not in ("index", "instr")


@pytest.mark.parametrize(
    ("operation", "stage"),
    [
        ("tile.local_tile", "folded"), ("tile.partition_S", "folded"), ("tile.tiled_copy", "folded"),
        ("tile.coalesce", "folded"), ("tile.select", "folded"), ("tile.atom_call", "folded"), ("tile.copy", "atoms"),
        ("tile.tiled_mma", "folded"), ("tile.partition_C", "folded"), ("tile.make_fragment_A", "folded"),
        ("tile.mma_call", "folded"), ("tile.gemm", "atoms"), ("tile.mma_call", "index"),
        ("tile.slice", "atoms"), ("tile.kernel", "index"), ("tile.view", "index"), ("tile.alloc", "index"),
        ("tile.load", "index"), ("tile.print_tensor", "index"), ("tile.atom_call", "instr"),
        ("gpu.thread_id", "instr"), ("gpu.grid_dim", "instr"), ("ptx.smem.alloc", "instr"),
    ],
)  # fmt: skip
def test_an_operation_of_an_earlier_stage_is_refused(operation: str, stage: str) -> None:
    error = refusal(_by_name()[operation], f"check-stage{{stage={stage}}}")
    assert error.code == "E2006"
    assert f"at stage '{stage}'" in error.message
    place = error.diagnostics[0].place
    assert place is not None
    assert place.text[place.column - 1 :].startswith(error.message.split()[0].removeprefix("tile.return"))


def test_the_type_index_ends_before_instr() -> None:
    error = refusal(entry("%c = arith.constant 1 : index"), "check-stage{stage=instr}")
    assert "index, which has no width" in error.message
    assert error.diagnostics[0].place is not None
    assert error.diagnostics[0].place.line == 3
    loop = "%c = arith.constant 1 : i32\nscf.for %i = %c to %c step %c : i32 {\n}"
    apply(entry(loop), "check-stage{stage=instr}")


def test_an_unknown_stage_is_named() -> None:
    with pytest.raises(TilefoldError) as caught:
        apply(POOL, "check-stage{stage=machine}")
    assert "unknown stage 'machine'" in str(caught.value)
    assert "cute, folded, atoms, index, instr" in str(caught.value)


def _tiled_copy(atom: str) -> str:
    return kernel(f'%c = tile.tiled_copy #tile.copy_atom<"{atom}", f16> thr "32:1" val "8:1"')


@pytest.mark.parametrize(
    ("text", "oldest"),
    [
        (_tiled_copy("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"), 80),
        (_tiled_copy("SM75_U32x4_LDSM_N"), 75),
        (_tiled_copy("UniversalCopy<uint128_t>"), 75),
        (entry("ptx.cp.async.commit_group"), 80),
        (entry("ptx.cp.async.wait_group 0"), 80),
        (entry("%s = ptx.smem.alloc 1024 align 16\n%v = ptx.ldmatrix x 4 %s : vector<4xi32>"), 75),
        (entry("ptx.bar.sync 0"), 75),
    ],
)
def test_targets(text: str, oldest: int) -> None:
    for name in known_targets():
        if int(name.removeprefix("sm_").rstrip("af")) >= oldest:
            apply(text, f"check-target{{target={name}}}")
            continue
        error = refusal(text, f"check-target{{target={name}}}")
        assert error.code == "E2102"
        assert f"needs sm_{oldest}" in error.message
        assert f"--target sm_{oldest}" in error.hint


def test_shared_memory_beyond_the_target_is_refused() -> None:
    text = entry("%s = ptx.smem.alloc 102400 align 16")
    apply(text, "allocate-smem{target=sm_80}")
    error = refusal(text, "allocate-smem{target=sm_86}")
    assert error.code == "E2103"
    assert "102400 bytes" in error.message
    placed = text.replace("threads(32)", "threads(32) shared(102400)").replace(
        "ptx.smem.alloc 102400 align 16", "ptx.smem.addr 0"
    )
    apply(placed, "check-target{target=sm_80}")
    with pytest.raises(TilefoldError) as caught:
        apply(placed, "check-target{target=sm_89}")
    assert "E2103" in str(caught.value)


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(TilefoldError) as caught:
        apply(POOL, "check-target{target=sm_10}")
    assert "unknown target" in str(caught.value)


@pytest.mark.parametrize(("name", "said"), [
    ("sm_100a", None), ("sm_103f", None), ("sm_100", "single architectures"), ("sm_120a", "of sm_10x only"),
    ("sm_90a", "needs sm_100"),
])  # fmt: skip
def test_instructions_of_one_generation(name: str, said: str | None) -> None:
    text = entry('%c = arith.constant 1.0 : f32\n%r = ptx.redux.sync "max" %c : f32')
    if said is None:
        apply(text, f"check-target{{target={name}}}")
    else:
        error = refusal(text, f"check-target{{target={name}}}")
        assert said in str(error)


def test_a_target_is_found_without_telling_why_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes run again to name the pass and the line of a refusal, which is told only where no target is left."""
    again: list[str] = []

    def noted(context: Context, module: ModuleOp, passes: Sequence[ModulePass], **named: Any) -> None:
        again.append(str(passes[-1]))
        run_passes(context, module, passes, **named)

    monkeypatch.setattr(pass_runner, "run_passes", noted)
    mixed = "%c = arith.constant 1 : index\n%i = arith.index_cast %c : index to i32\n"
    mixed += "ptx.tcgen05.relinquish_alloc_permit cta_group 1"
    newer = load(source_of(entry(mixed), "k.cute"))
    assert (newer.stage, newer.simulated_target("instr").arch, again) == ("index", "sm_100a", [])
    none = load(source_of(entry(f"%s = ptx.smem.alloc 1024000 align 16\n{mixed}"), "k.cute"))
    with pytest.raises(ProgramError) as caught:
        none.simulated_target("instr")
    assert caught.value.code == "E2103"
    assert len(again) == 1


@pytest.mark.parametrize(
    ("given", "meant"), [("sm90", "sm_90"), ("90a", "sm_90a"), ("sm-80", "sm_80"), ("compute_100a", "sm_100a")]
)
def test_a_target_of_another_spelling_is_named(given: str, meant: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target(given)
    assert f"did you mean {meant}?" in str(caught.value)
