# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands on files of PTX and CUDA C++: launches that options describe, their checks, and messages."""

from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.machine import nvrtc

from tests.ptx.test_load_ptx import SCALE
from tilefold.commands.cli import main


def _has_nvrtc() -> bool:
    try:
        nvrtc.compile_cuda("", "empty.cu", "sm_80", {})
    except TilefoldError as error:
        return error.code != Code.FOREIGN_UNAVAILABLE
    return True


needs_nvrtc = pytest.mark.skipif(not _has_nvrtc(), reason="needs NVRTC: pip install nvidia-cuda-nvrtc")

REVERSE = """
__device__ float twice(float x) { return FACTOR * x; }

__global__ void reverse(float *A, const float *B, int n) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = twice(B[t]);
  __syncthreads();
  if (t <= n)
    A[t] = s[127 - t];
}
"""
GIVEN = ["--block", "128", "--arg", "B=f32[128]", "--fill", "B=arange", "-D", "FACTOR=2.0f"]


def test_check_and_run_take_ptx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, array = tmp_path / "scale.ptx", tmp_path / "a.npy"
    file.write_text(SCALE)
    np.save(array, np.arange(64, dtype=np.float32))
    given = ["--arg", f"A={array}", "--arg", "k=2.5", "--block", "64"]
    assert main(["check", str(file), *given, "--arg", "n=64"]) == 0
    assert "scale: clean: no faults at ptx" in capsys.readouterr().out
    assert main(["check", str(file), "--block", "96", *given[:4], "--arg", "n=80", "--stage", "all"]) == 1
    assert "E3202" in (said := capsys.readouterr().out)
    assert "ld.global.f32 %f2, [%d4];" in said
    filled = ["--arg", "A=f32[64]", "--fill", "A=arange", "--arg", "k=3", "--arg", "n=40", "--block", "64"]
    assert main(["run", str(file), *filled, "--counters", "--check", "A[1] == 3 and A[39] == 117 and A[40] == 40"]) == 0
    assert "ok" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--arg", "A=f32[4]"], "argument 'k' has no value"),
        (["--arg", "A=f33[4]"], "there is no type f33"),
        (["--arg", "Q=1"], "the kernel has no argument 'Q'"),
        (["--arg", "A=f32[4]", "--arg", "k=f32[4]"], "which is not passed as an array"),
        (["--arg", "A=f32[4]", "--arg", "k=1", "--arg", "n=1"], "the launch has no block"),
        (["--launch", "other"], "no kernel 'other'"),
    ],
)
def test_options_that_do_not_describe_a_launch(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scale.ptx"
    file.write_text(SCALE)
    assert main(["check", str(file), *options]) == 1
    assert message in capsys.readouterr().err


@needs_nvrtc
def test_cuda_is_checked_at_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "reverse.cu"
    file.write_text(REVERSE)
    right = ["--arg", "A=f32[128]", "--arg", "n=127"]
    assert main(["run", str(file), *GIVEN, *right, "--check", "A[0] == 254"]) == 0
    assert main(["check", str(file), *GIVEN, *right]) == 0
    capsys.readouterr()
    assert main(["check", str(file), *GIVEN, "--arg", "A=f32[100]", "--arg", "n=100"]) == 1
    assert f"{file}:10:5: error[E3202]" in (said := capsys.readouterr().out)
    assert "A[t] = s[127 - t];" in said
    assert "argument A (400 bytes)" in said
    file.write_text(REVERSE.replace("__syncthreads();", ""))
    assert main(["check", str(file), *GIVEN, *right]) == 1
    assert "twice(B[t]);" in capsys.readouterr().out


@needs_nvrtc
def test_macros_folders_and_the_language_are_as_for_a_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = tmp_path / "headers"
    headers.mkdir()
    (headers / "more.h").write_text("#define MORE 2\n")
    file = tmp_path / "k.cu"
    file.write_text("""#include "more.h"
__global__ void k(int *A) { A[0] = N + MORE + ONE EMPTY; static_assert(__cplusplus > 201703L); }
""")
    options = ["--block", "1", "--arg", "A=i32[1]", "-D", "N=3", "-DONE", "-D", "EMPTY=", "-I", str(headers)]
    assert main(["run", str(file), *options, "--std", "c++20", "--check", "A[0] == 6"]) == 0
    capsys.readouterr()
    assert main(["check", str(file), *options, "--std", "c++20", "-D", "1x"]) == 1
    assert "-D 1x: not NAME or NAME=VALUE" in capsys.readouterr().err
    other = tmp_path / "k.ptx"
    other.write_text(SCALE)
    assert main(["check", str(other), "-I", str(headers)]) == 1
    assert "-I, --std and --nvrtc are for CUDA C++" in capsys.readouterr().err


@needs_nvrtc
def test_cuda_that_does_not_compile_is_refused_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.cu"
    file.write_text("__global__ void k(int *A) {\n  A[0] = undefined;\n}\n")
    assert main(["check", str(file), "--block", "32", "--arg", "A=i32[1]"]) == 1
    said = capsys.readouterr().err
    assert "E2304" in said
    assert f'{file}:2: NVRTC: identifier "undefined" is undefined' in said


def test_without_nvrtc_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named {name}")

    nvrtc.load_nvrtc.cache_clear()
    monkeypatch.setattr("tilefold.compiler.machine.assemble.import_module", missing)
    with pytest.raises(TilefoldError, match="cannot be loaded") as error:
        nvrtc.compile_cuda("", "k.cu", "sm_80", {})
    assert "cuda-c" in error.value.hint
    nvrtc.load_nvrtc.cache_clear()


def test_timelines_and_costs_of_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, timeline = tmp_path / "scale.ptx", tmp_path / "warps.json"
    file.write_text(SCALE)
    given = ["--arg", "A=f32[64]", "--fill", "A=arange", "--arg", "k=3", "--arg", "n=40", "--block", "64"]
    assert main(["run", str(file), *given, "--timeline", str(timeline)]) == 0
    assert '"traceEvents"' in timeline.read_text()
    capsys.readouterr()
    assert main(["explain", str(file), *given, "--costs"]) == 0
    assert "ld.global.b32" in capsys.readouterr().out


def test_other_commands_say_which_take_such_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scale.ptx"
    file.write_text(SCALE)
    assert main(["bisect", str(file)]) == 1
    assert "`tilefold check` and `tilefold run`" in capsys.readouterr().err
    given = ["--arg", "A=f32[64]", "--arg", "k=3", "--arg", "n=40", "--block", "64"]
    assert main(["explain", str(file), *given]) == 1
    assert "--costs a table of costs" in capsys.readouterr().err


@needs_nvrtc
def test_names_of_math_stand_beside_the_headers_of_a_toolkit(tmp_path: Path) -> None:
    """`cuda_runtime.h` of a toolkit includes no `math.h` for NVRTC."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda_runtime.h").write_text("")
    body = "A[0] = -INFINITY, A[1] = NAN, A[2] = M_PI;"
    for more in ("", "#include <cuda_runtime.h>\n#include <cmath>\n", "#define INFINITY (1.0f / 0)\n"):
        text = f'{more}extern "C" __global__ void k(float *A) {{ {body} }}\n'
        assert "st.global" in nvrtc.compile_cuda(text, "k.cu", "sm_80", {}, str(tmp_path))


@needs_nvrtc
def test_headers_of_the_host_and_code_of_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("cuda_runtime.h", "cstdint", "cfloat", "climits", "cmath", "stdio.h", "cassert", "cstdlib")
    text = "".join(f"#include <{name}>\n" for name in names) + (
        "__global__ void k(float *A, const float *B, int32_t n) {\n"
        "  float most = -INFINITY;\n"
        "  assert(n < 71);\n"
        "  for (int i = threadIdx.x; i < n; i += 32) most = fmaxf(most, fminf(B[i], FLT_MAX));\n"
        "  A[threadIdx.x] = most;\n"
        "}\n"
    )
    file = tmp_path / "k.cu"
    file.write_text(text)
    # the rest of an unrolled loop begins with instructions of line 0: no line that a thread could execute is missed
    given = ["--block", "32", "--arg", "A=f32[32]", "--arg", "B=f32[70]", "--fill", "B=arange", "--arg", "n=70"]
    assert main(["check", str(file), *given]) == 0
    assert "clean" in capsys.readouterr().out
    file.write_text("#include <no_such.h>\n" + text)
    assert main(["check", str(file), *given]) == 1
    assert "nvidia-cuda-runtime" in capsys.readouterr().err


@needs_nvrtc
def test_messages_have_the_words_of_cuda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "twice.cu"
    file.write_text(
        "__device__ int last;\n__global__ void twice() {\n  __shared__ int s[32];\n"
        "  s[threadIdx.x] = 1;\n  s[0] = s[31 - threadIdx.x];\n  (&last)[threadIdx.x] = s[0];\n}\n"
    )
    assert main(["check", str(file), "--block", "32"]) == 1
    said = capsys.readouterr().out
    assert "of shared array s (128 bytes)" in said
    assert "so __syncwarp() suffices" in said
    assert "0 bytes past the end of variable last (4 bytes)" in said


@needs_nvrtc
def test_a_fault_that_the_optimiser_drops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, report = tmp_path / "some.cu", tmp_path / "report.json"
    file.write_text(
        "__global__ void some(float* A, int n) {\n  float x;\n"
        "  if (n > 5 && threadIdx.x > 7) x = n;\n  A[threadIdx.x] = x;\n}\n"
    )
    given = [str(file), "--block", "32", "--arg", "A=f32[32]", "--arg", "n=6"]
    assert main(["check", *given]) == 1
    assert "some.cu:4:3: error[E3204]" in (said := capsys.readouterr().out)
    assert "note: NVRTC's optimiser drops the code that shows it: --nvrtc=-G keeps that code" in said
    assert main(["check", *given, "--json", "-o", str(report)]) == 1
    assert main(["check", "--replay", str(report)]) == 1
    assert "some.cu:4:3: error[E3204]" in capsys.readouterr().out
