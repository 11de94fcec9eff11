# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples that reduce rows: rows of one warp and of many, and such as threads do not divide."""

from functools import cache
from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.reports.kernel_report import count_instructions

from tests.kernels.harness import assert_checks_hold, example, simulate
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program, load

SHAPES = {
    "one warp": {"N": "256", "GROUP": "32", "ROWS": "2", "M": "2"},
    "one warp, ragged": {"N": "264", "GROUP": "32", "ROWS": "1", "M": "2"},
    "four warps": {"N": "1024", "GROUP": "128", "ROWS": "1", "M": "2"},
    "idle warps": {"N": "8", "GROUP": "64", "ROWS": "2", "M": "2"},
}
LARGE = {"N": "16384", "GROUP": "512", "ROWS": "1", "M": "64"}


@cache
def launched(name: str, given: tuple[tuple[str, str], ...]) -> tuple[Program, Launch]:
    """An example with parameters, and its launch."""
    path: Path = example(name)
    found = load(expand(path.read_text(), path.name, dict(given)))
    (launch,) = read_launches(found.module, found.source, Changes())
    return found, launch


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["softmax", "rmsnorm"])
def test_rows_of_any_length(name: str, shape: str) -> None:
    found, launch = launched(name, tuple(SHAPES[shape].items()))
    stages = [simulate(found, launch, stage) for stage in ("cute", "instr")]
    for ran in stages:
        assert_checks_hold(launch, ran.after)
    assert stages[0].array("B").tobytes() == stages[1].array("B").tobytes()


@pytest.mark.parametrize(("name", "loads"), [("softmax", 4), ("rmsnorm", 8)])
def test_each_element_is_read_and_written_once_by_16_bytes(name: str, loads: int) -> None:
    found, _ = launched(name, tuple(LARGE.items()))
    target = Target("sm_90a")
    ptx = found.ptx(target)
    counts = count_instructions(ptx)[name]
    accesses = {key: count for key, count in counts.items() if key.startswith(("ld.global", "st.global", "ld.local"))}
    assert accesses == {"ld.global.v4.b32": loads, "st.global.v4.b32": 4}  # of 32 elements of a row, and of the weights
    assert counts["cvt.rn.f16x2.f32"] == 16
    assert counts["bar.sync"] == 1
    assert counts["shfl.sync.bfly.b32"] == (10 if name == "softmax" else 5)
    resources = assemble(ptx, target).kernels[name]
    assert resources.stack == resources.spill_loads == 0
    assert resources.registers <= 80


@pytest.mark.parametrize("values", [{"COLUMNS": "512"}, {"WARPS": "4", "COLUMNS": "128"}])
def test_sums_of_rows_in_parts(values: dict[str, str]) -> None:
    found, launch = launched("reduce", tuple({"M": "8", **values}.items()))
    assert_checks_hold(launch, simulate(found, launch, "instr").after)


def test_blocks_add_without_a_race_but_do_not_store_without_one() -> None:
    text = example("reduce").read_text()
    broken = text.replace('ptx.red "add" %p, %total : !ptx.ptr<global>, f32', "tile.store %total, %gS(%warp)")
    found = load(expand(broken, "broken.cute", {"M": "8"}))
    (launch,) = read_launches(found.module, found.source, Changes())
    with pytest.raises(Exception, match="race: writes global"):
        simulate(found, launch, "instr")
