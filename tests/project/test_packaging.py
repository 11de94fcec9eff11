# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is installed equals the tree: a subpackage missing from pyproject.toml would silently be absent."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tilefold
from tests.project.tree import PRODUCT, ROOT, SUBPACKAGES, module_name, product_files

TOP = (
    "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    "Makefile", "MANIFEST.in", "mkdocs.yml", ".pre-commit-config.yaml",
)  # fmt: skip
BESIDE = (".github", "benchmarks", "docs", "editors", "examples", "tests")


def test_every_folder_of_modules_is_a_package() -> None:
    for path in product_files():
        assert (path.parent / "__init__.py").is_file(), f"{path.parent} has modules but no __init__.py"


def test_pyproject_lists_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = {module_name(path) for path in product_files() if path.name == "__init__.py"}
    assert set(settings["packages"]) == packages
    assert settings["package-dir"] == {f"tilefold.{folder}": folder for folder in SUBPACKAGES}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as somebody has it who downloaded and unpacked a zip archive of it: plain files only."""
    folder = tmp_path_factory.mktemp("zip")
    archive = folder / "tilefold.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        for name in TOP:
            writer.write(ROOT / name, name)
        for top in (*PRODUCT, *BESIDE):
            for path in (ROOT / top).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    writer.write(path, path.relative_to(ROOT))
    with zipfile.ZipFile(archive) as reader:
        reader.extractall(folder / "tilefold")
    return folder / "tilefold"


def _run(command: list[str], cwd: Path, path: Path | None = None) -> str:
    """What a command prints; its failure fails the test, with what it said."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the tree."""
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    _run([*build, "--wheel-dir", str(out), str(tree)], tree)
    (wheel,) = out.glob("*.whl")
    return wheel


def test_wheel_has_the_modules_of_the_tree_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
    modules = (path.relative_to(ROOT).as_posix() for path in product_files())
    expected = {name if name.startswith("tilefold/") else f"tilefold/{name}" for name in modules}
    pages = {f"tilefold/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "base/explanations").glob("*.md")}
    parts = {f"tilefold/tools/report/page.{kind}" for kind in ("html", "css", "js")}
    parts |= {f"tilefold/tools/report/timeline.{kind}" for kind in ("html", "js")}
    parts |= {"tilefold/tools/checking/check.schema.json", "tilefold/driver/base.css"}
    parts |= {"tilefold/runtime/sim/values/function_unit.csv", "tilefold/runtime/cuda/native_launch.ll"}
    assert names == expected | pages | parts | {"tilefold/py.typed"}
    assert wheel.name == f"tilefold-{tilefold.__version__}-py3-none-any.whl"
    assert f"\nVersion: {tilefold.__version__}\n" in metadata


@pytest.mark.sampled(0)
def test_source_distribution_has_the_whole_tree(tree: Path, tmp_path: Path) -> None:
    before = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    code = f"from setuptools.build_meta import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    name = _run([sys.executable, "-c", code], tree).splitlines()[-1]
    with tarfile.open(tmp_path / name) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    missing = {each for each in before - names if not each.startswith(("build/", "tilefold.egg-info/"))}
    assert not missing


BESIDE_A_CHECKOUT = """
import site, sys
from pathlib import Path
sys.path[1:] = [path for path in sys.path[1:] if not Path(path, "tilefold").is_dir()]  # of the tests' environment
site.addsitedir(sys.argv[1])
import numpy as np
import tilefold
from kernel import scale
assert tilefold.__spec__.origin is None, "this is no longer the case that the test is about"
a = np.arange(64, dtype=np.float32)
scale(a, a.copy(), 2.0).launch(grid=2, block=32, device="sim")
from tilefold.commands.cli import main
assert "registers" in str(scale(a, a.copy(), 2.0).build(32).report("sm_80"))
assert main(["run", "tilefold/examples/six_threads.cute", "--device", "sim"]) == 0
main(["--version"])
"""


@pytest.mark.sampled(0)
def test_script_in_the_folder_above_an_editable_checkout_named_tilefold(tree: Path, tmp_path: Path) -> None:
    """Python takes the checkout's folder for a package without an `__init__.py`, before it asks the installation."""
    code = f"from setuptools.build_meta import build_editable; print(build_editable({str(tmp_path)!r}))"
    name = _run([sys.executable, "-c", code], tree).splitlines()[-1]
    with zipfile.ZipFile(tmp_path / name) as archive:
        archive.extractall(tmp_path / "site")
    (tree.parent / "kernel.py").write_text(KERNEL)
    (tree.parent / "main.py").write_text(BESIDE_A_CHECKOUT)
    said = _run([sys.executable, "main.py", str(tmp_path / "site")], tree.parent)
    assert "36 elements: ok" in said
    assert said.endswith(f"tilefold {tilefold.__version__}\n")


def test_changelog_has_the_form_of_keep_a_changelog() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    releases = [line for line in lines if line.startswith("## ")]
    assert lines[0] == "# Changelog"
    assert all(re.fullmatch(r"## (\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d)", line) for line in releases)
    kinds = {line for line in lines if line.startswith("### ")}
    assert kinds <= {f"### {kind}" for kind in ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")}
    named = [line for line in lines if tilefold.__version__ in line]
    assert named, "the changelog does not name this version"


@pytest.mark.parametrize(
    ("system", "machine", "wanted"),
    [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("win32", "AMD64", True),
        ("darwin", "arm64", False),
        ("darwin", "x86_64", False),
        ("linux", "riscv64", False),
        ("win32", "ARM64", False),
        ("emscripten", "wasm32", False),
    ],
)
def test_packages_of_nvidia_are_asked_for_where_they_exist(system: str, machine: str, wanted: bool) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    environment = {"sys_platform": system, "platform_machine": machine}
    marked = [each for each in map(Requirement, project["dependencies"]) if each.marker is not None]
    assert {each.name for each in marked} == {"cuda-python", "nvidia-nvjitlink"}
    for each in marked:
        assert each.marker is not None
        assert each.marker.evaluate(environment) is wanted


WITHOUT_CUDA = """
import contextlib, io, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cuda", "nvidia", "torch", "cupy", "jax"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

def tilefold(*words, status=0):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            found = main(words)
        except SystemExit as ended:
            found = ended.code
    assert found == status, (words, found, err.getvalue())
    return out.getvalue() + err.getvalue()

from tilefold.commands.cli import main
examples = sys.argv[1]
assert "tilefold" in tilefold("--version")
assert "36 elements: ok" in tilefold("run", f"{examples}/six_threads.cute")
assert "on the simulator" in tilefold("run", f"{examples}/six_threads.cute", "--device", "auto")
assert "E3301" in tilefold("run", f"{examples}/six_threads.cute", "--device", "cuda", status=1)
assert ".target sm_90a" in tilefold("compile", f"{examples}/tiled_copy.cute", "--target", "sm_90a")
for form in (["compile", "--emit", "cubin", "-o", "k.cubin"], ["compile", "--report"], ["export", "-o", "out"]):
    said = tilefold(*form, f"{examples}/tiled_copy.cute", status=1)
    assert "E2302" in said and "--emit ptx" in said, said
assert "tiled_copy.ptx" in tilefold("export", f"{examples}/tiled_copy.cute", "--ptx", "-o", "out")
assert "tiled_copy" in tilefold("show", "tiled-copy", "--type", "f16", "--atom", "UniversalCopy<uint128_t>",
                                "--thr", "(8,1):(1,8)", "--val", "(8,1):(1,8)")
assert "kept: " in tilefold("cache")  # perhaps a single program

import numpy as np
from kernel import scale
a = np.arange(64, dtype=np.float32)
for device in ("sim", "auto"):
    b = np.zeros_like(a)
    scale(a, b, 2.0).launch(grid=2, block=32, device=device)
    assert np.array_equal(b, 2 * a)
assert ".visible .entry scale" in scale.ptx("sm_80")
for call in (lambda: scale(a, b, 2.0).launch(grid=2, block=32, device="cuda"), lambda: scale.report("sm_80")):
    try:
        call()
    except Exception as error:
        assert error.code in ("E3301", "E2302"), error
    else:
        raise AssertionError("there is no CUDA")
import tilefold
print(tilefold.__file__)
"""

KERNEL = """
from tilefold import cute

@cute.kernel
def scale(A, B, factor):
    block, _, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    B[block * 32 + t] = A[block * 32 + t] * factor
"""


def test_installed_package_works_without_the_tree_and_cuda(wheel: Path, tmp_path: Path) -> None:
    """What a Mac has: all but machine code and GPUs."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "main.py").write_text(WITHOUT_CUDA)
    said = _run([sys.executable, "main.py", str(ROOT / "examples")], tmp_path, wheel)
    assert said.startswith(str(wheel))
