# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.suites.record`: the table of docs/ptx.md, from the record of a run of the suites (`--json`)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "record.json"
NAMES = {
    "cutlass": "CuTe C++, tutorials", "hirace": "Indigo", "gpuverify": "GPUVerify",
    "hecbench": "HeCBench", "llm.c": "llm.c", "triton": "Triton, tutorials", "tilelang": "TileLang, examples",
    "zluda": "ZLUDA, PTX",
}  # fmt: skip
COLUMNS = ("right", "wrong", "not supported", "left out")


def table(record: Mapping[str, Any]) -> str:
    """The table in Markdown: a row for each suite and expected verdict."""
    lines = ["| suite, expected | kernels | right | wrong | not supported | left out |", "|---|---|---|---|---|---|"]
    for suite, name in NAMES.items():
        for expected, counts in record.get(suite, {"counts": {}})["counts"].items():
            if counts:
                cells = [str(counts.get(column, "")) for column in COLUMNS]
                lines.append(f"| {name}, {expected} | {sum(counts.values())} | {' | '.join(cells)} |")
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines)


if __name__ == "__main__":
    print(table(json.loads(RECORD.read_text())))
