# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The style that pages share: colours, also dark ones by the reader's setting, headings and pictures."""

from pathlib import Path


def base_style() -> str:
    """The style sheet."""
    return (Path(__file__).parent / "base.css").read_text()
