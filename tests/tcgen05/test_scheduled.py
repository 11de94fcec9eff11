# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole kernels for sm_100a, as .cute files and in Python: tiles on request and scales in tensor memory, at every
stage, however late operations complete; their machine code, and a mistake of each.
"""

import importlib
import sys
from functools import partial
from typing import Any, NamedTuple

import pytest
from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.params import expand
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.kernels.harness import MAX_BYTES, STAGES, assert_checks_hold, changed_program, check_changed, simulate
from tests.kernels.harness import example as text_of
from tests.project.tree import ROOT
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import load

DYNAMIC, SCALED, ATTENTION = "gemm_sm100_dynamic", "gemm_blockscaled", "attention_sm100"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "by blocks": (DYNAMIC, {"M": 128, "N": 192, "K": 64, "STAGES": 2}),
    "by pairs": (DYNAMIC, {"PAIR": 2, "M": 256, "N": 192, "K": 64, "STAGES": 2}),
    "mxf8": (SCALED, {"KIND": "mxf8", "K": 384, "STAGES": 2}),
    "mxf4": (SCALED, {"KIND": "mxf4", "K": 768, "STAGES": 2}),
    "nvf4": (SCALED, {"KIND": "nvf4", "K": 768, "STAGES": 2}),
    "attention": (ATTENTION, {"SLACK": 1}),
    "attention of 128 columns": (ATTENTION, {"D": 128, "T": "bf16"}),
}  # fmt: skip


def program(case: str) -> Any:
    name, changed = CASES[case]
    return changed_program(name, **{key: str(value) for key, value in changed.items()})


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(2)
def test_every_stage(case: str, stage: str) -> None:
    name, changed = CASES[case]
    check_changed(name, stage, **changed)


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("case", ["by blocks", "by pairs", "nvf4", "attention"])
@pytest.mark.sampled(1)
def test_operations_may_complete_at_any_time(case: str, completion: Completion) -> None:
    found = program(case)
    (launch,) = read_launches(found.module, found.source, Changes())
    arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    given, module = arguments.launchable(), found.at("instr", found.simulated_target("instr"))
    assert module is not None
    engine = SimEngine(sink=lambda _: None, completion=completion, options=SimOptions(seed=3))
    engine.launch(SimProgram(module, launch.kernel), LaunchConfig(launch.grid, launch.block), given)
    assert_checks_hold(launch, arguments.logical(given))


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        (DYNAMIC, {"M": 100}, "the matrices are whole tiles"),
        (DYNAMIC, {"TILE_N": 512}, "two accumulators fit 512 columns"),
        (SCALED, {"KIND": "mxf6"}, "KIND is mxf8, mxf4 or nvf4"),
        (SCALED, {"K": 128}, "K of 256"),
        (ATTENTION, {"S": 128}, "S is a multiple of 256"),
    ],
)
def test_parameters_are_checked(name: str, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        changed_program(name, **{key: str(value) for key, value in changed.items()})


SASS = {
    "by blocks": {"UTCHMMA": 4, "UTMALDG": 2, "UTCBAR": 2, "UGETNEXTWORKID": 1},
    "by pairs": {"UTCHMMA": 4, "UTMALDG": 2, "UTCBAR": 2, "UGETNEXTWORKID": 1},
    "mxf8": {"UTCQMMA": 4, "UTCCP": 2, "UBLKCP": 2}, "nvf4": {"UTCOMMA": 4, "UTCCP": 8, "UBLKCP": 2},
    "attention": {"UTCHMMA": 32, "LDTM": 8, "STTM": 6, "UTMALDG": 4},
}  # fmt: skip


@needs_ptxas
@pytest.mark.parametrize("case", SASS)
@pytest.mark.sampled(1)
def test_machine_code(case: str) -> None:
    target, found = Target("sm_100a"), installed()
    assert found is not None
    counts = instructions(found.assemble(program(case).ptx(target), target).code)[CASES[case][0].partition("_")[0]]
    assert {name: counts[name] for name in SASS[case]} == SASS[case]


class Mistake(NamedTuple):
    """The case, a change of its text, the code that follows, and a part of the message."""

    case: str
    old: str
    new: str
    code: Code
    said: str


MISTAKES = {
    "an answer is overwritten while others read it": Mistake(
        "by blocks", "          ptx.mbarrier.wait %read, %r_before\n", "", Code.SIM_RACE, "%answer"
    ),
    "no fence behind the reads of an answer": Mistake(
        "by blocks", "      ptx.fence.proxy.async\n", "", Code.SIM_PROXY, "fence.proxy.async between them is missing"
    ),
    "no fence before scales are overwritten": Mistake(
        "nvf4", '          ptx.tcgen05.fence "after_thread_sync"\n', "", Code.SIM_TENSOR_FENCE, "without a fence"
    ),
    "the scales of all stages in the same columns": Mistake(
        "nvf4", "%offset = arith.muli %s_i, %of_stage : i32", "%offset = arith.constant 0 : i32", Code.SIM_TENSOR_BUSY,
        "ptx.tcgen05.cp",
    ),
    "P is overwritten while it is multiplied": Mistake(
        "attention", "                ptx.mbarrier.wait %summed_g, %p\n", "", Code.SIM_TENSOR_BUSY, "ptx.tcgen05.mma"
    ),
    "P is announced before it is stored": Mistake(
        "attention", '        ptx.tcgen05.wait "st"\n        ptx.tcgen05.fence', "        ptx.tcgen05.fence",
        Code.SIM_TENSOR_BUSY, "ptx.tcgen05.st",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.sampled(2)
def test_mistakes_are_found(name: str) -> None:
    mistake = MISTAKES[name]
    kernel, changed = CASES[mistake.case]
    text = text_of(kernel).read_text()
    assert text.count(mistake.old) == 1
    given = {key: str(value) for key, value in changed.items()}
    found = load(expand(text.replace(mistake.old, mistake.new), "k.cute", given))
    (launch,) = read_launches(found.module, found.source, Changes())
    with pytest.raises(SimulationError) as caught:
        simulate(found, launch, "instr")
    assert caught.value.code == mistake.code.id, str(caught.value)
    assert mistake.said in str(caught.value)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gemm_sm100", "--m 128 --n 192 --k 64"), ("gemm_sm100", "--pair 2 --m 256 --n 192 --k 64"),
        ("gemm_blockscaled", "--kind mxf8 --k 256"), ("gemm_blockscaled", "--kind mxf4"),
        ("gemm_blockscaled", "--kind nvf4"),
        ("attention_sm100", "--heads 1 --length 384 --slack 1"),
    ],
)  # fmt: skip
@pytest.mark.sampled(2)
def test_every_stage_in_python(name: str, options: str, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples" / "python"), *sys.path])
    module = importlib.import_module(name)
    function = name.partition("_")[0]
    monkeypatch.setattr(module, function, partial(getattr(module, function), stage=stage))
    module.main(["--device", "sim", *options.split()])
