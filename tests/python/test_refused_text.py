# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text of PTX that only the assembler knows to be wrong is told at the line of the kernel that it is from."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.commands.cli import main

LINES = """{ .reg .b32 $$x; // a comment
    mov.b32 $$x, $1;
    mov.b32 $0, $$x; }"""


@cute.kernel
def texts(out: Any, text: cute.Constexpr[str]):
    t, _, _ = cute.arch.thread_idx()
    n = cute.Int32(t)
    a = cute.arch.inline_ptx(LINES, "=r,r", n, results=cute.Int32)
    cute.arch.cp_async_commit_group()
    b = cute.arch.inline_ptx(text, "=r,r", n, results=cute.Int32)  # the text that is refused
    out[t] = a + b


@pytest.mark.parametrize(("text", "said"), [
    ("frobnicate.s32 $0, $1;", "known instruction: 'frobnicate'"),
    (LINES.replace("mov.b32 $0", "mov.b64 $0"), "Arguments mismatch"),
    ("add.s32 $0, $1, $1", "syntax error"),
])  # fmt: skip
def test_refused_text_is_told_at_its_line(text: str, said: str, capsys: Any, tmp_path: Path) -> None:
    built = texts(np.zeros(32, np.int32), text).build(32)
    with pytest.raises(TilefoldError, match=r"E2301.*the assembler rejected the text for sm_90") as caught:
        built.report("sm_90")
    assert re.search(r"test_refused_text.py:\d+:9", str(caught.value))
    assert said in str(caught.value)
    assert "# the text that is refused" in str(caught.value)
    path = tmp_path / "texts.cute"
    path.write_text(built.to_cute())
    assert main(["compile", str(path), "--emit", "cubin", "--no-cache", "-o", str(tmp_path / "out")]) == 1
    assert re.search(r"texts.cute:\d+:\d+: error\[E2301\]", capsys.readouterr().err)


def test_what_is_around_a_text_is_refused_with_a_hint() -> None:
    with pytest.raises(TilefoldError, match=r"E2301(.|\n)*closes the braces"):
        texts(np.zeros(32, np.int32), "{ add.s32 $0, $1, $1;").build(32).report()
