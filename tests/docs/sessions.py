# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder in which a page's commands run: the examples, and the files that the page itself shows.

A picture of the page is one that its commands make there: `--svg NAME.svg` for `pictures/NAME.svg`. `make docs` makes
the pictures of the code.
"""

import re
from pathlib import Path

from docs.folders import ARCHITECTURE
from docs.route import ROUTE
from tests.project.tree import ROOT

from .pages import blocks, prose

_PICTURE = re.compile(r"!\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def prepare(folder: Path, text: str) -> None:
    """Fills a folder for the page `text`: each block with a file's name after its language becomes that file."""
    (folder / "examples").symlink_to(ROOT / "examples")
    for block in blocks(text):
        if block.name:
            (folder / block.name).write_text(block.text)


def pictures(page: Path, text: str) -> list[Path]:
    """The files of the pictures that a page's commands make."""
    files = [page.parent / match["target"] for match in _PICTURE.finditer(prose(text))]
    return [file for file in files if file not in (ARCHITECTURE, ROUTE)]
