# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for programs in C: what the header passes, and that the example builds and runs."""

import subprocess
from pathlib import Path

import pytest
from tilefold.dialects.target import Target
from tilefold.layout.core import Layout
from tilefold.layout.errors import TilefoldError
from tilefold.layout.unknown import Unknown
from tilefold.runtime.artifact import Artifact, Kind, Parameter

from tests.project.tree import ROOT
from tilefold.cli import main
from tilefold.exporting import export, header

SM80 = Target("sm_80")


def _artifact(*parameters: Parameter, shared: int = 0) -> Artifact:
    return Artifact("k$1", b"code", SM80, parameters, (32, 4, 1), dynamic_shared=shared)


def test_header_has_an_argument_for_each_value() -> None:
    tensor = Parameter("A", Kind.POINTER, 16, Layout((Unknown(), 8), (Unknown(64, 8), 1)))
    scalars = [Parameter(f"x{kind.value}", kind) for kind in Kind if kind is not Kind.POINTER]
    text = header(_artifact(tensor, *scalars), "k_1")
    types = ["uint8_t xi1", "int8_t xi8", "int16_t xi16", "int32_t xi32", "int64_t xi64", "uint16_t xf16"]
    types += ["uint16_t xbf16", "float xf32", "double xf64"]
    expected = ["CUdeviceptr A", "int32_t A_extent0", "int64_t A_stride0", *types]
    declared = text.partition("CUstream stream,\n")[2].partition(")\n{")[0]
    assert [line.strip() for line in declared.split(",")] == expected
    addresses = text.partition("arguments[] = {")[2].partition("}")[0]
    assert addresses.split(", ") == [f"&{each.split()[1]}" for each in expected]
    assert '"k$1"' in text
    assert "32, 4, 1, 0, stream, arguments, 0" in text
    assert "cuFuncSetAttribute" not in text
    assert "MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536" in header(_artifact(shared=65536), "k")


@pytest.mark.parametrize("name", ["stream", "kernel", "int", "class"])
def test_names_that_c_takes_otherwise(name: str) -> None:
    text = header(_artifact(Parameter(name, Kind.I32)), "k")
    assert f"int32_t {name}_)" in text
    assert f"{{&{name}_}}" in text


def test_command_writes_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = str(ROOT / "examples" / "ragged_copy.cute")
    assert main(["export", example, "-o", str(tmp_path / "out")]) == 0
    written = [Path(line) for line in capsys.readouterr().out.split()]
    assert [path.name for path in written] == ["ragged_copy.cubin", "ragged_copy.h", "ragged_copy_example.c"]
    assert written[0].read_bytes().startswith(b"\x7fELF")
    assert main(["export", example, "-o", str(tmp_path / "out"), "--ptx", "--kernel", "kernels::ragged_copy"]) == 0
    assert (tmp_path / "out" / "ragged_copy.ptx").read_text().startswith("//")
    assert '"ragged_copy.ptx"' in (tmp_path / "out" / "ragged_copy_example.c").read_text()
    assert main(["export", example, "-o", str(tmp_path), "--kernel", "other"]) == 1
    assert "there is no kernel 'other'" in capsys.readouterr().err


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TilefoldError) as caught:
        export(_artifact(), None, tmp_path / "file")
    assert caught.value.code == "E4002"


@pytest.mark.gpu
@pytest.mark.parametrize("options", [(), ("--ptx",)])
@pytest.mark.parametrize("example", ["ragged_copy", "hgemm"])
def test_example_builds_and_runs(tmp_path: Path, example: str, options: tuple[str, ...]) -> None:
    assert main(["export", str(ROOT / "examples" / f"{example}.cute"), "-o", str(tmp_path), *options,
                 "--target", "sm_90"]) == 0  # fmt: skip
    build = ["nvcc", "-Xcompiler", "-Wall,-Werror", "-o", "try", f"{example}_example.c", "-lcuda"]
    subprocess.run(build, cwd=tmp_path, check=True)
    said = subprocess.run(["./try"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "registers" in said
