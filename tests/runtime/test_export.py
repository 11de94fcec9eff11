# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for programs in C: what the header passes, and that the example builds, runs and computes."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from tilefold.base.parameters import POINTER, SCALARS
from tilefold.base.target import Target
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.tma.recipe_text import parse_recipe
from tilefold.runtime.compiled.artifact import Artifact, Parameter

from tests.project.tree import ROOT
from tests.runtime.toolkit import DRIVER, toolkit
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.tools.export.c_names import arguments
from tilefold.tools.export.exporting import export, header

SM80 = Target("sm_80")
TENSOR = Layout((Unknown(), 8), (Unknown(64, 8), 1))
NUMBERS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def _artifact(*parameters: Parameter, shared: int = 0, code: str | bytes = b"code") -> Artifact:
    return Artifact("k_1", code, SM80, parameters, (32, 4, 1), dynamic_shared=shared)


def _header(*parameters: Parameter, shared: int = 0) -> str:
    artifact = _artifact(*parameters, shared=shared)
    return header(artifact, arguments(artifact, {}))


def test_header_has_an_argument_for_each_value() -> None:
    scalars = [Parameter(f"x{name}", SCALARS[name]) for name in NUMBERS]
    text = _header(Parameter("A", POINTER, 16, TENSOR), *scalars)
    types = ["uint8_t xi1", "int8_t xi8", "int16_t xi16", "int32_t xi32", "int64_t xi64", "uint16_t xf16"]
    types += ["uint16_t xbf16", "float xf32", "double xf64"]
    expected = ["CUdeviceptr A", "int32_t A_extent0", "int64_t A_stride0", *types]
    declared = text.partition("CUstream stream,\n")[2].partition(")\n{")[0]
    assert [line.strip() for line in declared.split(",")] == expected
    addresses = text.partition("arguments[] = {")[2].partition("}")[0]
    assert addresses.split(", ") == [f"&{each.split()[1]}" for each in expected]
    assert '"k_1"' in text
    assert "A: an address that is a multiple of 16 bytes; layout (?,8):(?{i64 div=8},1), in elements" in text
    assert "xbf16: bf16, by its bits" in text
    assert "32, 4, 1, 0, stream, arguments, 0" in text
    assert "cuFuncSetAttribute" not in text
    assert "MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536" in _header(shared=65536)


def test_header_tells_the_clusters_of_a_kernel() -> None:
    kernel = replace(_artifact(shared=65536), cluster=(16, 1, 1), non_portable=True)
    text = header(kernel, ())
    assert " The grid is made of\n * clusters of 16 x 1 x 1 blocks. Its arguments:\n" in text
    assert text.index("MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536") < text.index("NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1")
    portable = header(replace(kernel, cluster=(2, 1, 1), non_portable=False), ())
    assert "clusters of 2 x 1 x 1 blocks" in portable
    assert "NON_PORTABLE" not in portable


def test_names_that_c_takes_otherwise() -> None:
    taken = ["stream", "int", "class", "linux", "k_1_load", "argc", "main"]
    reserved = {"int32_t": "arg_int32_t", "CUstream": "arg_CUstream", "cuInit": "arg_cuInit", "_X": "arg_X"}
    plain = ["A", "x", "_x", "cut", "k_1", "k_2_load", "stride"]
    found = arguments(_artifact(*(Parameter(name, SCALARS["i32"]) for name in [*taken, *reserved, *plain])), {})
    assert [each.name for each in found] == [*(f"{name}_" for name in taken), *reserved.values(), *plain]
    clash = (
        Parameter("A_extent0", SCALARS["i32"]),
        Parameter("A", POINTER, 16, TENSOR),
        Parameter("int_", SCALARS["i32"]),
    )
    names = [each.name for each in arguments(_artifact(*clash, Parameter("int", SCALARS["i32"])), {})]
    assert names == ["A_extent0", "A", "A_extent0_", "A_stride0", "int_", "int__"]


def test_command_writes_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = str(ROOT / "examples" / "ragged_copy.cute")
    assert main(["export", example, "-o", str(tmp_path / "out")]) == 0
    written = [Path(line) for line in capsys.readouterr().out.split()]
    assert [path.name for path in written] == ["ragged_copy.cubin", "ragged_copy.h", "ragged_copy_example.c"]
    assert written[0].read_bytes().startswith(b"\x7fELF")
    assert main(["export", example, "-o", str(tmp_path / "out"), "--ptx", "--kernel", "kernels::ragged_copy"]) == 0
    assert (tmp_path / "out" / "ragged_copy.ptx").read_text().startswith("//")
    assert "_example ragged_copy.ptx" in (tmp_path / "out" / "ragged_copy_example.c").read_text()
    static = ["export", str(ROOT / "examples" / "tiled_copy.cute"), "--ptx", "-o", str(tmp_path)]
    assert main(static) == 0
    assert "; layout (1024,1024):(1,1024), in elements" in (tmp_path / "tiled_copy.h").read_text()
    assert main(["export", example, "-o", str(tmp_path), "--kernel", "other"]) == 1
    assert "there is no kernel 'other'" in capsys.readouterr().err
    (tmp_path / "empty.cute").write_text("gpu.module @kernels {}")
    assert main(["export", str(tmp_path / "empty.cute"), "--ptx"]) == 1
    assert "the file has no kernel" in capsys.readouterr().err


def test_ptx_needs_no_assembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any) -> None:
        raise AssertionError("the assembler is called")

    monkeypatch.setattr("tilefold.compiler.machine.assemble.assemble", absent)
    example = str(ROOT / "examples" / "ragged_copy.cute")
    assert main(["export", example, "-o", str(tmp_path), "--ptx", "--no-cache"]) == 0
    assert scaled().export(tmp_path, "sm_80", ptx=True).code.read_text().startswith("//")


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TilefoldError) as caught:
        export(_artifact(), tmp_path / "file")
    assert caught.value.code == "E4002"


def _built(folder: Path, name: str, command: Sequence[str], *rest: str) -> Path:
    """The example of a kernel as a program, made by a compiler; its messages fail the test."""
    program = folder / "program"
    made = subprocess.run(
        [*command, "-o", program.name, f"{name}_example.c", *rest],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, ""), made.stderr
    return program


def _said(program: Path, *words: Any, arguments: str | None) -> tuple[int, str, str]:
    """What an example says on the driver of these tests."""
    environment = {name: value for name, value in os.environ.items() if name != "ARGUMENTS"}
    if arguments is not None:
        environment["ARGUMENTS"] = arguments
    ran = subprocess.run(
        [program, *map(str, words)], cwd=program.parent, env=environment, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


def _compilers() -> list[Any]:
    """Compilers of C and C++ without a toolkit, and nvcc with its own header of the driver."""
    quoted = ",".join(["-Wall", "-Wextra", "-Wshadow", "-Werror"])  # NVIDIA's header is not pedantic
    commands = {
        "cc": [*WARNINGS, "-std=c99", f"-I{DRIVER}"],
        "c++": [*WARNINGS, f"-I{DRIVER}", "-x", "c++"],
        "nvcc": ["-Xcompiler", quoted],
    }
    return [
        pytest.param([name, *options], id=name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name}"))
        for name, options in commands.items()
    ]


@pytest.mark.parametrize("command", _compilers())
def test_example_passes_what_it_is_given(tmp_path: Path, command: list[str]) -> None:
    scalars = [Parameter(f"x{name}", SCALARS[name]) for name in NUMBERS]
    static = Parameter("restrict", POINTER, 16, Layout(8, 1))
    files = export(_artifact(Parameter("A", POINTER, 16, TENSOR), *scalars, static, shared=65536), tmp_path)
    program = _built(tmp_path, "k_1", command, str(DRIVER / "driver.c"))
    (tmp_path / "A.bin").write_bytes(bytes(40))
    (tmp_path / "B.bin").write_bytes(b"\x01\xff")
    words = [files.code.name, 3, 2, 1, "A.bin", 5, 1 << 40, 1, -2, -3, -4, -5, 0x3C00, 0x3F80, 1.5, -2.25, "B.bin"]
    code, out, err = _said(program, *words, arguments="p481124822fdp")
    assert (code, err) == (0, "")
    values = f"tensor0 5 {1 << 40} 1 -2 -3 -4 -5 15360 16256 1.5 -2.25 tensor1"
    assert out.splitlines() == [
        "load k_1.cubin", "function k_1", "attribute 8 = 65536", f"launch 3x2x1 32x4x1 65536 {values}", "unload",
    ]  # fmt: skip
    assert (tmp_path / "A.bin").read_bytes() == b"\x01" * 40
    assert (tmp_path / "B.bin").read_bytes() == b"\x02\x00"
    for wrong, status, said in [
        (words[:-1], 2, "usage: "),
        ([*words[:5], "five", *words[6:]], 2, "five: not an integer"),
        ([*words[:14], "1.5.", *words[15:]], 2, "1.5.: not a number"),
        ([*words[:4], "absent.bin", *words[5:]], 2, "absent.bin: cannot be read"),
        (["absent.cubin", *words[1:]], 1, "absent.cubin: invalid argument"),
    ]:
        code, _, err = _said(program, *wrong, arguments="p481124822fdp")
        assert code == status
        assert said in err
    code, out, err = _said(program, *words, arguments=None)
    assert (code, err) == (1, "k_1.cubin: named symbol not found\n")
    assert out.splitlines()[-1] == "unload"


@pytest.mark.parametrize("command", _compilers())
def test_tensor_maps_are_encoded_at_each_launch(tmp_path: Path, command: list[str]) -> None:
    maps = (
        "f16 v0 + v3 * 16 dims ((v1 - 1) * 2 // 3, v1) strides (v2 * 2) box (64, 8) swizzle 128B",
        "bf16 v0 dims (v3 % 7 + 1) box (32) fill nan promotion 0B",
    )
    tensor, number = Parameter("A", POINTER, 16, TENSOR), Parameter("tensor_map0_box", SCALARS["i32"])
    recipes = tuple(map(parse_recipe, maps))
    artifact = Artifact("k_1", b"code", SM80, (tensor, number), (32, 1, 1), maps=recipes)
    export(artifact, tmp_path)
    program = _built(tmp_path, "k_1", command, str(DRIVER / "driver.c"))
    (tmp_path / "A.bin").write_bytes(bytes(64))
    code, out, err = _said(program, "k_1.cubin", 1, 1, 1, "A.bin", 10, 48, 3, arguments="p484mm")
    assert (code, err) == (0, "")
    assert out.splitlines()[2:-1] == [
        "map 6 48 6:64:1 10:8:96 0 3 0 0", "map 9 0 4:32:1 0 0 0 1", "launch 1x1x1 32x1x1 0 tensor0 10 48 3 map1 map2",
    ]  # fmt: skip
    code, _, err = _said(program, "k_1.cubin", 1, 1, 1, "A.bin", 1, 48, 3, arguments="p484mm")
    assert (code, err) == (1, "the launch: invalid argument\n")


@pytest.mark.parametrize("command", _compilers())
def test_kernel_without_arguments(tmp_path: Path, command: list[str]) -> None:
    export(_artifact(code="// PTX"), tmp_path)
    program = _built(tmp_path, "k_1", command, str(DRIVER / "driver.c"))
    assert _said(program, "k_1.ptx", 1, 1, 1, arguments="")[1].splitlines()[-2] == "launch 1x1x1 32x4x1 0"


@cute.kernel
def scale_rows(
    A: cute.Tensor, B: cute.Tensor, factor: cute.Float32, half: cute.Float16, stream: cute.Int64, bias: Any = None
) -> None:
    """B = reversed rows of A * factor + half + stream, through more shared memory than a kernel has without asking."""
    row, _, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    shared = cute.make_smem_tensor((20000,), cute.Float32)
    shared[t] = A[row, t] * factor
    cute.arch.sync_threads()
    B[row, t] = shared[31 - t] + half + stream


def _arrays() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return np.arange(96, dtype=np.float32).reshape(3, 32), np.zeros((3, 32), np.float32)


def scaled() -> Any:
    """The kernel built for arrays of any number of rows."""
    a, b = _arrays()
    return scale_rows(cute.dynamic(a), cute.dynamic(b), 2.0, 0.5, 7).build(block=32)


def test_kernel_of_python_builds(tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("no cc")
    files = scaled().export(tmp_path, "sm_80")
    note = "A: f32, an address that is a multiple of 16 bytes; layout (?,?):(?{div=4},1), in elements"
    assert note in files.header.read_text()
    program = _built(tmp_path, "scale_rows", ["cc", *WARNINGS, f"-I{DRIVER}"], str(DRIVER / "driver.c"))
    for name in ("A.bin", "B.bin"):
        (tmp_path / name).write_bytes(bytes(3 * 32 * 4))
    words = ["scale_rows.cubin", 3, 1, 1, "A.bin", 3, 32, 32, "B.bin", 3, 32, 32, 2, 0x3800, 7]
    out = _said(program, *words, arguments="p444p444f28")[1]
    assert "launch 3x1x1 32x1x1 80000 tensor0 3 32 32 tensor1 3 32 32 2 14336 7\n" in out


@pytest.mark.gpu
@pytest.mark.parametrize("ptx", [False, True], ids=["cubin", "ptx"])
def test_example_computes_on_a_gpu_what_the_simulator_does(tmp_path: Path, ptx: bool) -> None:
    from tilefold.runtime.cuda.driver import Driver

    arch = Driver(0).target.arch
    a, b = _arrays()
    scale_rows(a, b, 2.0, 0.5, 7).launch(grid=3, block=32, device="sim")
    assert np.array_equal(b, 2 * a[:, ::-1] + 7.5)
    files = scaled().export(tmp_path, arch, ptx=ptx)
    command = toolkit(tmp_path)
    program = _built(tmp_path, "scale_rows", command[:1], *command[1:])
    (tmp_path / "A.bin").write_bytes(a.tobytes())
    (tmp_path / "B.bin").write_bytes(bytes(b.nbytes))
    words = [files.code.name, 3, 1, 1, "A.bin", 3, 32, 32, "B.bin", 3, 32, 32, 2, 0x3800, 7]
    ran = subprocess.run([program, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "B.bin").read_bytes() == b.tobytes()
    assert (tmp_path / "A.bin").read_bytes() == a.tobytes()
