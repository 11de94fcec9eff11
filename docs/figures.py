# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of pages that show the newest records of benchmarks/results."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS

SHOWING = (Path(__file__).parents[1] / "README.md", Path(__file__).parent / "performance.md")
FAMILIES: Mapping[str, str] = {
    "gemm_sm90": r"(?!fp8 GEMM 4096\^3, by wgmma).* GEMM .*, by wgmma",  # whose peer added more accurately
    "gemm_scaled": r"fp8 GEMM [^,]* with scales of blocks",
    "gemm_grouped": r".* GEMM, .* groups of .*",
    "gemm_skinny": r".* GEMM .*, B from memory",
    "attention_sm90": r"attention, .*, by wgmma",
    "attention_decode": r"attention, .*, K and V from memory",
    "summary": r"(f16 GEMM (2048|4096|8192)\^3|(bf16|tf32|s8) GEMM 4096\^3|"
    r"fp8 GEMM 4096\^3, D in (f32|bf16)|"
    r"attention, b4 s4096 h32 d(64|128) f16(, causal)?), by wgmma",
}
"""The problems of each table, by their names."""
_OURS = ", tilefold"
_TABLE = re.compile(r"(<!-- figures (\w+): `make docs` writes them -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def table(family: str, results: Path = RESULTS) -> str:
    """The newest figures of the problems of a family, and their ratios to the peers' figures in the same run; empty
    without a record.
    """
    records = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*.json")]
    latest: dict[str, tuple[str, list[str]]] = {}
    for record in sorted(records, key=lambda record: record["circumstances"]["date"]):
        rows: dict[str, tuple[str, list[str]]] = {}
        details = {figure["name"]: _details(figure) for figure in record["figures"]}
        for figure in record["figures"]:
            problem = figure["name"].removesuffix(_OURS)
            if problem != figure["name"] and figure["base"] and re.fullmatch(FAMILIES[family], problem):
                row = rows.setdefault(problem, (_measured(figure), []))
                peer = figure["base"].removeprefix(f"{problem}, ")
                parts = filter(
                    None, (f"{figure['ratio']:.2f} \N{MULTIPLICATION SIGN} {peer}", details.get(figure["base"]))
                )
                row[1].append(", ".join(parts))
        latest |= rows
    lines = [
        f"| {problem.removesuffix(', by wgmma')} | {measured} | {'; '.join(ratios)} |"
        for problem, (measured, ratios) in latest.items()
    ]
    return "\n".join(["", "| problem | measured | relative to |", "|---|---|---|", *lines, "", ""]) if lines else ""


def _measured(figure: Mapping[str, Any]) -> str:
    details = _details(figure)
    return f"{figure['value']:.4g} {figure['unit']}{details and f' ({details})'}"


def _details(figure: Mapping[str, Any]) -> str:
    """The note of a figure and the error of its result; records have errors where they were measured."""
    note = "" if figure["note"] == "defaults" else figure["note"]
    error = figure.get("error")
    return ", ".join(filter(None, (note, "" if error is None else f"rms error {error:.1e}")))


def with_tables(page: Path) -> str:
    """The text of a page with its tables."""
    return _TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], page.read_text(encoding="utf-8"))
