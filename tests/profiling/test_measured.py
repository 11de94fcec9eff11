# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold profile`: ncu's page of the source is read by lines, and set beside the costs that the simulator finds."""

import sys
from pathlib import Path

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target

from tilefold.driver.line_costs import AccessRow, Costs, LineCost
from tilefold.tools.profiling.measured import comparison, measure, parse_csv

HEAD = (
    '"Line No","Source","Address","Source","# Samples","Instructions Executed","L1 Wavefronts Shared",'
    '"L2 Theoretical Sectors Global","stall_long_sb","stall_selected","stall_wait","stall_long_sb (Not Issued)"'
)
PAGE = f"""\
"File Path","k.cute"
"Function Name","copy"
{HEAD}
"7","%s = tile.alloc : !tile.tensor<f32, smem, align<16>, "(32,32):(33,1)">","-","-","0","0","0","0","0","0","0","0"
"9","tile.copy %copy, %a, %b","-","-","8","1,024","0","4096","6","1","1","5"
"","","0x7f95f37a0010","      S2R R0, SR_TID.X","8","1024","0","4096","6","1","1","5"
"11","tile.copy %copy, %b, %s","-","-","2","1024","2048","0","0","0","0","0"
"""


def test_rows_are_read_by_lines() -> None:
    (launch,) = parse_csv(PAGE)
    assert (launch.kernel, launch.file, launch.samples) == ("copy", "k.cute", 10)
    line = launch.lines[9]
    assert (line.samples, line.instructions, line.sectors, line.wavefronts) == (8, 1024, 4096, 0)
    assert line.waits == "global memory 75 %, a fixed latency 12 %"


def test_comparison_tells_where_both_differ() -> None:
    (launch,) = parse_csv(PAGE)
    lines = (
        LineCost("k.cute", 9, "", 1024, [AccessRow("ld.global", "global", 1024, 4096, 4096)]),
        LineCost("k.cute", 11, "", 1024, [AccessRow("st.shared", "shared", 1024, 1024, 1024)]),
    )
    text = comparison(Costs("kernels::copy", Target("sm_90a"), (1, 1, 1), (32, 1, 1), lines), launch, "a GPU")
    rows = text.splitlines()
    assert rows[1].split() == ["samples", "cycles", "line", "transactions", "measured", "warps", "wait", "for"]
    assert rows[2].split()[:7] == ["80", "%", "67", "%", "k.cute:9", "4096", "4096"]
    assert rows[3].split() == ["20", "%", "33", "%", "k.cute:11", "1024", "2048"]
    assert rows[4:] == [
        "the model and the GPU differ:", "  k.cute:11: 1024 wavefronts of shared memory simulated, 2048 measured",
    ]  # fmt: skip


def test_missing_profiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TilefoldError, match="ncu is not on the PATH") as caught:
        measure(["run", "k.cute"], tmp_path)
    assert "--costs" in caught.value.hint


def test_profiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ncu = tmp_path / "ncu"
    ncu.write_text(f"#!{sys.executable}\nimport sys\nprint('==ERROR== no permission')\nsys.exit(3)\n")
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TilefoldError, match=r"ncu ended with 3:\n +==ERROR== no permission"):
        measure(["run", "k.cute"], tmp_path)
