# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder in which a page's commands run: the examples, and the files that the page itself shows."""

from pathlib import Path

from tests.project.tree import ROOT

from .pages import blocks


def prepare(folder: Path, text: str) -> None:
    """Fills a folder for the page `text`: each block with a file's name after its language becomes that file."""
    (folder / "examples").symlink_to(ROOT / "examples")
    for block in blocks(text):
        if block.name:
            (folder / block.name).write_text(block.text)
