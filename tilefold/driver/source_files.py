# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of a code base: those below a folder, without code of others and without what is made."""

import os
from collections.abc import Iterator
from pathlib import Path

_LEFT_OUT = frozenset({
    "3rdparty", "3rd_party", "third_party", "third-party", "thirdparty", "vendor", "vendored", "_vendor", "_deps",
    "build", "dist", "node_modules", "site-packages", "venv",
})  # fmt: skip
"""The names of folders for code of others, and for what is made; those with a dot before their name are left out, too.
"""


def source_files(folder: Path, *suffixes: str) -> Iterator[Path]:
    """The files below a folder whose names end so, in the order of their paths. A copy of the package `cutlass` is code
    of others.
    """
    found: list[Path] = []
    for place, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".") and name.lower() not in _LEFT_OUT]
        if "cutlass" in inner and Path(place, "cutlass", "cute", "__init__.py").is_file():
            inner.remove("cutlass")
        found += [Path(place, name) for name in files if name.endswith(suffixes)]
    yield from sorted(found)
