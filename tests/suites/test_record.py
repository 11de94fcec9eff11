# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of a run of the suites, its table in docs, and the reasons for wrong verdicts belong together."""

import json

from tests.project.tree import ROOT

from .known import KNOWN
from .record import RECORD, table

KEPT = json.loads(RECORD.read_text())


def test_docs_have_the_table() -> None:
    assert table(KEPT) in (ROOT / "docs/ptx.md").read_text()


def test_each_wrong_verdict_is_explained() -> None:
    wrong = {name for suite in KEPT.values() for name, (_, state, *_) in suite["not right"].items() if state == "wrong"}
    assert wrong == set(KNOWN)


def test_the_counts_are_those_of_the_kernels() -> None:
    for suite in KEPT.values():
        listed = len(suite["not right"])
        assert listed == sum(
            n for counts in suite["counts"].values() for state, n in counts.items() if state != "right"
        )
