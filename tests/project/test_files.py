# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the files of the project look."""

import re
import subprocess
from pathlib import Path

from tilefold.passes.check_stage import LEGAL_TILE_OPS

from tests.names import exists
from tests.project.tree import ROOT, SUBPACKAGES, product_files, source_files

LICENCE = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
MAX_LINES = 400
_DOCSTRING = re.compile(r'(?:#[^\n]*\n|\n)*r?"""[^"\s]')
"""After comments, a text that is not empty."""
_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|opt|tmp)/\w")
_CONFLICT = re.compile(r"(<{7}|>{7}|\|{7}) |={7}$")
_NAMED = re.compile(rf"`(?P<name>(?:{'|'.join(SUBPACKAGES)})(?:\.\w+)+|[\w/]+/\w+\.py)`")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_python_files_name_their_licence_and_say_what_they_are_for() -> None:
    for path in source_files():
        licence, _, rest = path.read_text().partition("\n")
        assert licence == LICENCE, _name(path)
        assert _DOCSTRING.match(rest), f"{_name(path)} has no module docstring"


def test_product_files_can_be_read_in_one_sitting() -> None:
    assert [_name(path) for path in product_files() if len(path.read_text().splitlines()) > MAX_LINES] == []


def test_no_file_names_a_path_of_one_machine_or_keeps_both_sides_of_a_merge() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines() or [_name(path) for path in source_files()]
    for name in names:
        path = ROOT / name
        if path.suffix in (".py", ".md", ".cute", ".toml", ".yml", "") and path.is_file():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                assert not _MACHINE_PATH.search(line), f"{name}:{number}: {line.strip()}"
                assert not _CONFLICT.match(line), f"{name}:{number}: {line.strip()}"


def test_licence_is_apache_with_llvm_exceptions() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    assert "LLVM Exceptions to the Apache 2.0 License" in text


def test_architecture_says_what_each_file_of_the_builder_is_about() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = text.partition("The folders of `builder/`:")[2].partition("\n\nLaunches in")[0]
    named = set(re.findall(r"`(\w+)`", rows))
    builder = ROOT / "builder"
    files = {path.stem for path in builder.rglob("*.py")} - {"__init__"}
    assert files - named == set()
    assert named - files == {"match", "break", "continue", "return"}, "of Python"


def test_modules_that_files_speak_of_exist() -> None:
    for path in product_files():
        for match in _NAMED.finditer(path.read_text()):
            name = match["name"]
            if name.endswith(".py"):
                assert (ROOT / name).is_file(), f"{_name(path)}: {name}"
            else:
                parts = ["tilefold", *name.split(".")]
                found = any(exists(".".join(parts[:n]), parts[n:]) for n in range(len(parts), 1, -1))
                assert found, f"{_name(path)}: {name}"


def test_architecture_lists_the_operations_of_tile_that_stages_allow() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    folded = next(line for line in text.splitlines() if line.startswith("| `folded` |"))
    listed = set(re.findall(r"`(\w+)`", folded.split("|")[4]))
    allowed = LEGAL_TILE_OPS["folded"]
    assert allowed is not None
    assert listed == {name.removeprefix("tile.") for name in allowed} - {"kernel", "return"}


def test_architecture_lists_the_folders_of_tools_and_kernels() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    folders = {
        path.parent for part in ("tools", "kernels") for path in (ROOT / "tilefold" / part).rglob("*/__init__.py")
    }
    assert [name for path in sorted(folders) if (name := _name(path)) and f"`{name}/`" not in text] == []
