# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A warm process that executes commands for a server, each in a copy of itself that ends with it.

It has imported the compiler and the simulator, and checked a small kernel of each language, before the first command,
so a command begins at once. The copy is confined: see `confinement`. Requests and answers are lines of JSON on the
standard input and output.
"""

import io
import json
import os
import runpy
import select
import signal
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from traceback import extract_tb
from typing import Any, cast

from tilefold.base.errors import Code, TilefoldError
from tilefold.commands.cli import COMMANDS
from tilefold.commands.cli import main as command
from tilefold.driver.messages import print_error
from tilefold.tools.agents.confinement import confine


def execute(file: str, command: str) -> int:
    """Checks, runs, bisects or explains the case of a file, and prints the result; the exit status."""
    try:
        call, sizes = _case(file)
        if command == "check":
            report = call.check(**sizes)
            print(report.json())
            return report.verdict.status
        if command == "bisect":
            verdict = call.bisect(**sizes)
            print(verdict)
            return 0 if verdict.passed else 1
        if command == "explain":
            print(call.build(sizes["block"]).explain())
            return 0
        run = call.launch(device="sim", **sizes)
        print(run.counters)
    except TilefoldError as error:
        print_error(error)
        return 1
    except MemoryError:
        raise
    except Exception as error:  # of the program, which is not ours
        frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename == file]
        at = f"{file}:{frames[-1].lineno}: " if frames else ""
        print(f"{at}{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _case(file: str) -> tuple[Any, dict[str, Any]]:
    names = runpy.run_path(file, run_name="tilefold_case")
    if not callable(case := names.get("case")):
        hint = 'write def case(): return kernel(A, B), {"grid": 1, "block": 128}'
        raise TilefoldError(Code.CLI_VALUE, f"{file[:80]} has no function `case`", hint)
    call, sizes = cast("tuple[Any, dict[str, Any]]", case())
    return call, dict(sizes)


MOST_OUTPUT = 1 << 20
"""The most characters of a command's output that are kept."""


def main() -> int:
    """Serves requests until the input ends."""
    folder, seconds, megabytes = Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3])
    os.chdir(folder)
    requests, answers = sys.stdin, sys.stdout
    prepare(folder)
    for line in requests:
        answers.write(json.dumps(_in_copy(json.loads(line), folder, seconds, megabytes)) + "\n")
        answers.flush()
    return 0


def prepare(folder: Path) -> None:
    """Lets all commands write only into the folder and start no process, and warms up."""
    os.environ["TILEFOLD_SIM_PROGRESS"] = "0"
    os.environ["TILEFOLD_SIM_PROCESSES"] = "1"
    os.environ["TILEFOLD_CACHE_LIMIT"] = "0"
    os.environ["TMPDIR"] = str(folder)
    warm_up()


def _in_copy(request: dict[str, object], folder: Path, seconds: int, megabytes: int) -> dict[str, object]:
    """The answer of a copy of the process to a request; one about its end if it does not answer in time."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            confine(folder, seconds, megabytes)
            answer = _answer(request)
        except MemoryError:
            answer = {"exit": 1, "output": "", "messages": f"the command takes more than {megabytes} MiB"}
        except BaseException as error:
            answer = {"exit": 70, "output": "", "messages": f"{type(error).__name__}: {error}"}
        with os.fdopen(write, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(write)
    text = _read(read, time.monotonic() + seconds)
    if text is None:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if text:
        return json.loads(text)
    end = f"takes longer than {seconds} seconds" if text is None else f"ends at a limit of {megabytes} MiB or seconds"
    return {"exit": 1, "output": "", "messages": f"the command {end}"}


def _read(pipe: int, deadline: float) -> bytes | None:
    """All that comes from a pipe before its end; None if that does not come in time."""
    parts: list[bytes] = []
    with os.fdopen(pipe, "rb", buffering=0) as stream:
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([stream], [], [], left)[0]:
                break
            part = stream.read(1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return None


def _answer(request: dict[str, Any]) -> dict[str, int | str]:
    """Executes the words of a command, or the case of a program in Python."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        sys.stdin = io.StringIO()
        if "python" in request:
            status = execute(request["python"], request["words"][0])
        else:
            try:
                status = command(request["words"])
            except SystemExit as end:  # of a wrong command line
                status = end.code if isinstance(end.code, int) else 2
    return {"exit": status, "output": out.getvalue()[:MOST_OUTPUT], "messages": err.getvalue()[:MOST_OUTPUT]}


_CUTE = """\
!t = !tile.tensor<f32, gmem, align<16>, "32:1">
gpu.module @m {
  tile.kernel @k(%A: !t, %B: !t) threads(32) {
    %t = gpu.thread_id x
    %a = tile.load %A(%t)
    tile.store %a, %B(%t)
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !t = "arange"
  run.arg "B" : !t = "poison"
}
"""
_CUDA = """\
__global__ void k(const float *A, float *B) {
  __shared__ float s[32];
  s[threadIdx.x] = A[threadIdx.x];
  __syncthreads();
  B[threadIdx.x] = s[31 - threadIdx.x];
}
"""
_PYTHON = """\
import numpy as np

from tilefold import cute


@cute.kernel
def reverse(A: cute.Tensor, B: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(32), cute.Float32)
    s[t] = A[t]
    cute.arch.sync_threads()
    B[t] = s[31 - t]


def case():
    return reverse(np.arange(32, dtype=np.float32), np.zeros(32, np.float32)), {"grid": 1, "block": 32}
"""
_ARGUMENTS = ("--block", "32", "--arg", "A=f32[32]", "--fill", "A=arange", "--arg", "B=f32[32]")


_USED = ("tilefold.builder", "tilefold.compiler.ptx", "tilefold.dialects", "tilefold.passes", "tilefold.runtime.sim")
"""The packages of which a kernel may need any module."""


def warm_up() -> None:
    """Imports the modules of the tools, and checks the kernels."""
    for package in _USED:
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    for name in COMMANDS.keys() & {"bisect", "check", "explain", "layout", "run", "show"}:
        import_module(f"tilefold.commands.{name}")
    files: list[tuple[str, str, tuple[str, ...]]] = [("k.cute", _CUTE, ())]
    if find_spec("nvidia.cuda_nvrtc") or find_spec("nvidia.cu13"):
        files.append(("k.cu", _CUDA, _ARGUMENTS))
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for name, text, options in files:
            path = Path(folder) / name
            path.write_text(text)
            command(["check", str(path), *options, "--format", "json"])
        path = Path(folder) / "k.py"
        path.write_text(_PYTHON)
        execute(str(path), "check")


if __name__ == "__main__":
    sys.exit(main())
