# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold reduce` of PTX: lines go as long as the launch has the same fault."""

from pathlib import Path

import pytest

from tests.ptx.texts import STORE_LANE, kernel
from tilefold.commands.cli import main

BODY = f"""{STORE_LANE}
    add.u32 %r3, %r1, 5;
    mul.lo.u32 %r4, %r3, 7;
    setp.gt.u32 %p1, %r1, 100;
    @%p1 bra END;
    ld.global.u32 %r5, [%d4];
END:
    ret;
"""


def _reduce(tmp_path: Path, elements: int) -> tuple[int, str]:
    file, out = tmp_path / "k.ptx", tmp_path / "small.ptx"
    file.write_text(kernel(BODY))
    given = ["--grid", "1", "--block", "32", "--arg", f"A=i32[{elements}]", "--fill", "A=arange"]
    status = main(["reduce", str(file), *given, "-o", str(out)])
    return status, out.read_text() if out.exists() else ""


def test_only_the_fault_stays(tmp_path: Path) -> None:
    status, text = _reduce(tmp_path, 31)
    assert status == 0
    assert "[%d4]" in text
    assert ".reg" in text
    assert all(word not in text for word in ("mul.lo", "setp", "bra", "END"))


def test_a_launch_without_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _reduce(tmp_path, 32) == (1, "")
    assert "does not fail: the launch has no fault" in capsys.readouterr().err
