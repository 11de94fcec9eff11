# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of mutants fits the code, and the runner tells those that are caught from those that survive."""

import subprocess
import sys

import pytest

from tests.mutants.cute_ir import CUTE_IR
from tests.mutants.mutant import Mutant
from tests.mutants.planting import changed
from tests.mutants.table import MUTANTS
from tests.mutants.trial import Status, names
from tests.project.tree import ROOT


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_the_old_text_occurs_once(mutant: Mutant) -> None:
    compile(changed(mutant), mutant.file, "exec")
    assert mutant.tests
    assert all((ROOT / test).is_file() for test in mutant.tests)
    assert not mutant.bisect or (ROOT / mutant.bisect[0]).is_file()


def test_there_are_enough() -> None:
    assert len(MUTANTS) >= 60
    without = {name for name, mutant in MUTANTS.items() if not mutant.bisect}
    outside = {mutant.pass_name for mutant in CUTE_IR}  # the simulator runs nothing before these, or nothing after
    assert without == {"lower: 32 bits beyond 2 GiB"} | {name for name in without if MUTANTS[name].pass_name in outside}
    assert len(without) <= 7


@pytest.mark.parametrize(("kind", "name", "arguments", "expected"), [
    ("tests", "cse: operands in any order", (), Status.CAUGHT),
    ("tests", "maps: last element lost", (), Status.CAUGHT),
    ("bisect", "merge: alignment not proven", (), Status.CAUGHT),
    ("named", "emit: ashr is lshr", (), Status.CAUGHT),
    ("bisect", "none", ("tests/mutants/programs/narrow.cute",), Status.MISSED),
])  # fmt: skip
@pytest.mark.sampled(2)
def test_trials(kind: str, name: str, arguments: tuple[str, ...], expected: Status) -> None:
    command = [sys.executable, "-m", "tests.mutants.trial", kind, name, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stdout + done.stderr


def test_where_only_registers_differ_the_lines_with_others_are_named() -> None:
    before = "mov.u32 %r1, 1;\nmov.u32 %r2, 2;\nst.global.v2.b32 [%rd1], {%r1, %r2};\nret;\n"
    after = before.replace("{%r1, %r2}", "{%r2, %r1}")
    assert names("PTX: line 3: st.global.v2.b32", f"{before}\n", after)
    assert not names("PTX: line 1: mov.u32", f"{before}\n", after)
