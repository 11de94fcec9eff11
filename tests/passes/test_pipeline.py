# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The whole pipeline: it can be run again, resumed from any stage's text, and every operation knows its source line."""

from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.pipeline import STAGE_NAMES, STAGES, pipeline_to
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.passes import ModulePass

from tests.fuzz.copies import generate
from tests.passes.harness import apply, printed, source_of
from tilefold.driver.lowering import load

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cute"))
TEXTS = {path.name: expand(path.read_text(), path.name).expanded for path in EXAMPLES} | {
    f"random {seed}": generate(seed).text for seed in (0, 2, 5, 12)
}


def names() -> list[str]:
    """The programs that compile; a random one may be refused."""
    return [name for name in TEXTS if not name.startswith("random") or _compiles(TEXTS[name])]


def _compiles(text: str) -> bool:
    try:
        apply(text, "")
    except ProgramError:
        return False
    return True


def target_of(name: str) -> Target:
    """The first target that has all that a program needs."""
    return load(source_of(TEXTS[name], name)).simulated_target("instr")


PROGRAMS = names()
BY_LENGTH = sorted(PROGRAMS, key=lambda name: (name != "hgemm.cute", len(TEXTS[name])))
"""A product by tensor cores, then short ones first: samples are that and one of middle length."""
BEFORE_ATOMS = ("unroll-loops", "merge-accesses")
"""Passes that would change accesses which an atom names, and so run before atoms are expanded to instructions."""


def test_there_are_programs() -> None:
    assert len(EXAMPLES) >= 5
    assert any(name.startswith("random") for name in PROGRAMS)


@pytest.mark.parametrize("name", BY_LENGTH)
@pytest.mark.sampled(2)
def test_the_passes_of_a_stage_change_nothing_when_they_run_again(name: str) -> None:
    text, arch = TEXTS[name], target_of(name).arch
    for stage in STAGES:
        text = printed(apply(text, ",".join(stage.passes).format(target=arch)), locations=True)
        again = [each for each in stage.passes if each not in BEFORE_ATOMS]
        assert printed(apply(text, ",".join(again).format(target=arch)), locations=True) == text, (
            f"at stage {stage.name}"
        )


@pytest.mark.parametrize("name", BY_LENGTH)
@pytest.mark.sampled(2)
def test_compiling_goes_on_from_the_text_of_any_stage(name: str) -> None:
    target = target_of(name)
    written = load(source_of(TEXTS[name], name))
    expected = written.llvm(target)
    for stage in STAGE_NAMES:
        saved = printed(written.reached(stage, target), locations=True)
        resumed = load(source_of(saved, f"{stage}.cute"))
        assert resumed.llvm(target) == expected, f"from stage {stage}"
        ends = [printed(program.reached("instr", target), locations=True) for program in (resumed, written)]
        assert ends[0] == ends[1]


def test_the_ptx_is_the_same_from_every_stage() -> None:
    target = Target("sm_80")
    written = load(source_of(TEXTS["ldmatrix.cute"], "ldmatrix.cute"))
    expected = written.ptx(target)
    for stage in STAGE_NAMES:
        saved = printed(written.reached(stage), locations=True)
        assert load(source_of(saved, "saved.cute")).ptx(target) == expected


class _Locations:
    """Checks, after each pass, that every operation has a line of the source."""

    def __init__(self, name: str, lines: int) -> None:
        self.name, self.lines, self.seen = name, lines, 0

    def before(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """Nothing: what a pass is given was checked after the one before."""

    def applied(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """Nothing: the program is checked when it is verified."""

    def after(self, index: int, applied: ModulePass, module: ModuleOp) -> None:
        """Checks what the pass left."""
        self.seen = index
        for op in module.walk():
            place = op.location
            assert isinstance(place, FileLineColLoc), f"{op.name} has no location after {applied}"
            assert place.filename.data == self.name
            assert 1 <= place.line.data <= self.lines


@pytest.mark.parametrize("name", BY_LENGTH)
@pytest.mark.sampled(2)
def test_every_operation_knows_the_line_that_it_came_from(name: str) -> None:
    passes = pipeline_to("instr", target_of(name).arch)
    text = TEXTS[name].splitlines()
    observer = _Locations(name, len(text))
    module = apply(TEXTS[name], ",".join(passes), name, observer)
    assert observer.seen == len(passes)
    for op in module.walk():
        if op.name in (
            "ptx.bar.sync",
            "ptx.cp.async.commit_group",
            "ptx.cp.async.wait_group",
            "gpu.module",
            "run.check",
        ):
            assert isinstance(op.location, FileLineColLoc)
            written = text[op.location.line.data - 1][op.location.column.data - 1 :]
            made = ("tile.tmem_alloc", "tile.tmem_dealloc") if op.name == "ptx.bar.sync" else ()
            assert written.startswith((op.name, *made))


def test_a_pipeline_to_a_stage_passes_through_the_others() -> None:
    for index, stage in enumerate(STAGE_NAMES):
        passes = pipeline_to(stage, "sm_90a")
        assert passes[: len(pipeline_to(STAGE_NAMES[0]))] == pipeline_to(STAGE_NAMES[0])
        assert [p for p in passes if p.startswith("check-stage")] == [
            f"check-stage{{stage={name}}}" for name in STAGE_NAMES[: index + 1]
        ]
