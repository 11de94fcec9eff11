# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is dumped after each pass is a program, which is read and goes on to the same kernels."""

from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.program import print_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pass_runner import parse_passes
from tilefold.compiler.pipeline import PASSES, STAGE_NAMES, STAGES, concerns
from xdsl.dialects.builtin import ModuleOp

from tests.kernels.harness import BY_SIZE, example, launches, program, program_of, simulate, target_of
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import Program, load

SM80 = Target("sm_80")
ON_THE_WAY = ("expand-gemms", "expand-copies", "expand-maps")
"""The passes between two stages after which the same LLVM IR must be emitted as without a dump."""
RUN = ("ragged_copy", "reduce")
"""Small examples, which run from the dumps after all passes."""


def dumps(found: Program, target: Target = SM80) -> list[tuple[str, str]]:
    """The text after each pass to stage `instr` that changes it, with the pass's name. A pass that does not concern
    the program leaves it as it is.
    """
    module: ModuleOp = found.module.clone()
    texts = ",".join(text for stage in STAGES for text in stage.passes).format(target=target.arch)
    made: list[tuple[str, str]] = []
    before = ""
    for each in parse_passes(texts, PASSES):
        is_concerned = concerns(each.name, module)
        each.apply(found.context, module)
        text = print_program(module, locations=True, header=True)
        assert is_concerned or text == before, each.name
        if text != before:
            made.append((each.name, text))
        before = text
    return made


@pytest.mark.parametrize("path", BY_SIZE, ids=lambda path: path.stem)
@pytest.mark.sampled(2)
def test_dumps_are_programs(path: Path) -> None:
    found = program(path)
    target = target_of(path)
    wanted = found.llvm(target)
    for name, text in dumps(found, target):
        again = load(plain_source(text, f"{name}.cute"))
        assert again.stage in STAGE_NAMES
        if name in ON_THE_WAY:
            assert again.llvm(target) == wanted, name


@pytest.mark.parametrize("name", RUN)
def test_dumps_run_as_the_program_does(name: str) -> None:
    path = example(name)
    found, number = program(path), len(launches(path)) - 1
    wanted = simulate(found, launches(path)[number], "instr", SM80).after
    for applied, text in dumps(found):
        again = program_of(text)
        launch = read_launches(again.module, again.source, Changes())[number]
        after = simulate(again, launch, "instr", SM80).after
        assert {each: value.tobytes() for each, value in after.items()} == {
            each: value.tobytes() for each, value in wanted.items()
        }, applied
