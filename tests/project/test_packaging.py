# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is installed equals the tree: a subpackage missing from pyproject.toml would silently be absent."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.project.tree import PRODUCT, ROOT, SUBPACKAGES, module_name, product_files


def test_every_folder_of_modules_is_a_package() -> None:
    for path in product_files():
        assert (path.parent / "__init__.py").is_file(), f"{path.parent} has modules but no __init__.py"


def test_pyproject_lists_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = {module_name(path) for path in product_files() if path.name == "__init__.py"}
    assert set(settings["packages"]) == packages
    assert settings["package-dir"] == {f"tilefold.{folder}": folder for folder in SUBPACKAGES}


def build_wheel(tree: Path, out: Path) -> set[str]:
    """The Python modules in the wheel of a source tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(out), str(tree)], check=True, capture_output=True, text=True)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.endswith((".py", "py.typed"))}


@pytest.fixture(scope="module")
def zipped_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as somebody has it who downloaded and unpacked a zip archive of it: plain files only."""
    folder = tmp_path_factory.mktemp("zip")
    archive = folder / "tilefold.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            writer.write(ROOT / name, name)
        for top in PRODUCT:
            for path in (ROOT / top).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    writer.write(path, path.relative_to(ROOT))
    with zipfile.ZipFile(archive) as reader:
        reader.extractall(folder / "tree")
    return folder / "tree"


def test_wheel_has_the_modules_of_the_tree(zipped_tree: Path, tmp_path: Path) -> None:
    names = build_wheel(zipped_tree, tmp_path)
    expected = {"/".join(("" if top == "tilefold" else "tilefold/", str(path.relative_to(ROOT)))).lstrip("/")
                for top in PRODUCT for path in (ROOT / top).rglob("*.py")}  # fmt: skip
    assert names == {name.replace("//", "/") for name in expected} | {"tilefold/py.typed"}


def test_installed_package_imports_without_the_tree(zipped_tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "wheel"
    build_wheel(zipped_tree, out)
    (wheel,) = out.glob("*.whl")
    code = "import tilefold.layout.core, tilefold.cli as c; print(c.__file__); c.main(['explain', 'E0101'])"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(wheel)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert str(wheel) in result.stdout
    assert "E0101" in result.stdout
