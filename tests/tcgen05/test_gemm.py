# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - an instruction stands on one line
"""examples/gemm_sm100.cute: right in its variants, at every stage and however late operations complete; its machine code
has one multiplication for each 16 elements of K, and no loop around it; its mistakes are found.
"""

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

from tests.kernels.harness import (
    MAX_BYTES,
    STAGES,
    assert_checks_hold,
    changed_program,
    check_changed,
    example,
    simulate,
)
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import load

NAME = "gemm_sm100"
SMALL = {"M": 128, "N": 128, "K": 64, "TILE_N": 64, "STAGES": 2, "BLOCKS": 1}
OF_PAIR = {"PAIR": 2, "M": 256, "N": 128, "K": 64, "TILE_N": 64, "STAGES": 2, "BLOCKS": 2}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("changed", [SMALL, OF_PAIR], ids=["block", "pair"])
@pytest.mark.sampled(2)
def test_every_stage(changed: dict[str, Any], stage: str) -> None:
    check_changed(NAME, stage, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        SMALL | {"AB": "bf16", "K": 192, "N": 256}, OF_PAIR | {"AB": "bf16", "N": 384, "K": 192},
        SMALL | {"TILE_N": 256, "N": 512, "STAGES": 3}, OF_PAIR | {"M": 512, "TILE_N": 128, "BLOCKS": 4},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.sampled(2)
def test_variants(changed: dict[str, Any]) -> None:
    check_changed(NAME, "instr", **changed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("completion", list(Completion))
@pytest.mark.parametrize("changed", [SMALL, OF_PAIR], ids=["block", "pair"])
def test_operations_may_complete_at_any_time(changed: dict[str, Any], completion: Completion) -> None:
    more = changed | {"N": 256, "K": 192}
    found = changed_program(NAME, **{name: str(value) for name, value in more.items()})
    (launch,) = read_launches(found.module, found.source, Changes())
    arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    given = arguments.launchable()
    module = found.at("instr", found.simulated_target("instr"))
    assert module is not None
    engine = SimEngine(sink=lambda _: None, completion=completion, options=SimOptions(seed=3))
    engine.launch(SimProgram(module, launch.kernel), LaunchConfig(launch.grid, launch.block), given)
    assert_checks_hold(launch, arguments.logical(given))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"M": 100}, "the matrices are whole tiles"),
        ({"PAIR": 3}, "PAIR is 1, one block, or 2"),
        ({"BLOCKS": 3, "PAIR": 2}, "there are pairs of blocks"),
    ],
)
def test_parameters_are_checked(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        changed_program(NAME, **{name: str(value) for name, value in changed.items()})


@needs_ptxas
@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", [Target("sm_100a"), Target("sm_103a")], ids=str)
@pytest.mark.parametrize("pair", [1, 2])
def test_machine_code(pair: int, target: Target) -> None:
    program = changed_program(
        NAME, M="4096", N="4096", K="4096", TILE_N="256", STAGES="4", BLOCKS="148", PAIR=str(pair)
    )
    found = installed()
    assert found is not None
    counts = instructions(found.assemble(program.ptx(target), target).code)["gemm"]
    assert counts["UTCHMMA"] == 4
    assert counts["LDTM"] == 32
    assert counts["UTMALDG"] == counts["UTCBAR"] == 2


class Mistake(NamedTuple):
    """A change of the text, the code that follows, and a part of the message."""

    old: str
    new: str
    code: Code
    text: str


FREE = '            ptx.mbarrier.wait %free_b, %q scope "cluster"\n            ptx.tcgen05.fence "after_thread_sync"\n'
FENCED = '        ptx.tcgen05.fence "before_thread_sync"\n        ptx.bar.warp.sync -1\n'
MISTAKES = {
    "the accumulator is still read": (SMALL | {"N": 256}, Mistake(FREE, "", Code.SIM_TENSOR_BUSY, "of tensor memory")),
    "no fence before it is given back": (SMALL | {"N": 256}, Mistake(FENCED, "        ptx.bar.warp.sync -1\n", Code.SIM_TENSOR_FENCE, "without a tcgen05 fence in between")),
    "no fence behind the wait": (SMALL, Mistake('        ptx.mbarrier.wait %done_b, %q\n        ptx.tcgen05.fence "after_thread_sync"\n', "        ptx.mbarrier.wait %done_b, %q\n", Code.SIM_TENSOR_FENCE, "without a tcgen05 fence in between")),
    "a stage is filled too early": (SMALL | {"K": 256}, Mistake("          ptx.mbarrier.wait %empty_s, %p\n", "          ptx.nanosleep %even\n", Code.SIM_IN_FLIGHT, "is still reading it")),
    "no wait for the tiles": (SMALL, Mistake("            ptx.mbarrier.wait %full_s, %p\n", "", Code.SIM_IN_FLIGHT, "is still writing it")),
    "no wait for the other block": (OF_PAIR, Mistake('              ptx.mbarrier.wait %there_s, %p scope "cluster"\n', "", Code.SIM_RACE, "in the block of rank 1, which a bulk copy wrote")),
    "the commit tells one block": (OF_PAIR | {"K": 256}, Mistake("%empty_s multicast %both", "%empty_s", Code.SIM_BARRIER, "")),
    "one block allocates": (OF_PAIR, Mistake("    scf.if %multiplies {\n      ptx.tcgen05.alloc", "    %mine = arith.andi %multiplies, %is_leader : i1\n    scf.if %mine {\n      ptx.tcgen05.alloc", Code.SIM_TENSOR_PAIR, "")),
    "an instruction descriptor of one block": (OF_PAIR, Mistake("8 * PAIR * 16777216", "8 * 16777216 + 0 * PAIR", Code.SIM_UNINITIALISED, "")),
    "K advances by too much": (SMALL, Mistake("%two_k = arith.muli %step_k, %c2 : index", "%two_k = arith.muli %step_k, %c8 : index", Code.SIM_DESCRIPTOR, "of the pattern of its swizzle")),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.sampled(2)
def test_mistakes_are_found(name: str) -> None:
    changed, mistake = MISTAKES[name]
    text = example(NAME).read_text()
    assert text.count(mistake.old) == 1
    found = load(
        expand(text.replace(mistake.old, mistake.new), "k.cute", {n: str(value) for n, value in changed.items()})
    )
    (launch,) = read_launches(found.module, found.source, Changes())
    with pytest.raises(SimulationError) as caught:
        simulate(found, launch, "instr")
    assert caught.value.code == mistake.code.id, str(caught.value)
    assert mistake.text in str(caught.value)
