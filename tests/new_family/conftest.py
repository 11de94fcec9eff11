# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installs the package of the family for each test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tilefold.base.spaces import installed_spaces
from tilefold.layout.atoms.custom import installed_instructions

PACKAGE = Path(__file__).with_name("acme.py")


@pytest.fixture(autouse=True)
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts the package into a folder as an installer does, and the folder on the path."""
    (tmp_path / "acme.py").write_text(PACKAGE.read_text())
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    points = {"spaces": "acme:spaces", "instructions": "acme:instructions"}
    lines = "".join([f"[tilefold.{group}]\nacme = {function}\n" for group, function in points.items()])
    (info / "entry_points.txt").write_text(lines)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    for known in (installed_spaces, installed_instructions):
        known.cache_clear()
    yield
    for known in (installed_spaces, installed_instructions):
        known.cache_clear()
