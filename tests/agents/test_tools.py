# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools for agents, over the wire: their answers, and that they keep to their folder, their time and no network."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tilefold.commands.cli import main
from tilefold.tools.agents.confinement import has_landlock
from tilefold.tools.agents.server import Tools, Worker

PYTHON = """\
import numpy as np
from tilefold import cute

@cute.kernel
def reverse(A: cute.Tensor, B: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = A[t]
    cute.arch.sync_threads()
    B[t] = s[63 - t]

def case():
    return reverse(np.arange(64, dtype=np.float32), np.zeros(64, np.float32)), {"grid": 1, "block": 64}
"""
BARRIER = "    cute.arch.sync_threads()\n"
CUTE = """\
!t = !tile.tensor<f32, gmem, align<16>, "64:1">
gpu.module @m {
  tile.kernel @k(%A: !t, %B: !t) threads(64) {
    %t = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %n = arith.addi %t, %c1 : index
    %a = tile.load %A(%n)
    tile.store %a, %B(%t)
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !t = "arange"
  run.arg "B" : !t = "poison"
}
"""
NEEDS_LANDLOCK = pytest.mark.skipif(not has_landlock(), reason="programs in Python are refused without Landlock")


def test_a_client_finds_the_tools_and_calls_them(tmp_path: Path) -> None:
    asked = asyncio.run(_ask(tmp_path))
    assert asked["tools"] == ["check", "run", "explain", "layout", "show", "bisect"]
    assert asked["layout"]["output"] == "8:1\n"
    (fault,) = asked["check"]["report"]["faults"]
    assert fault["code"] == "E3202"
    assert fault["place"] == {"file": "k.cute", "line": 7, "column": 10}
    assert (tmp_path / "k.cute").read_text() == CUTE


async def _ask(folder: Path) -> dict[str, Any]:
    command = ["-m", "tilefold", "mcp", "--folder", str(folder), "--seconds", "60"]
    async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=command))) as client:
        found = await client.list_tools()
        layout = await client.call_tool("layout", {"expression": "composition((8,4):(1,8), 8:1)"})
        check = await client.call_tool("check", {"file": "k.cute", "text": CUTE})
        return {
            "tools": [tool.name for tool in found.tools],
            "layout": layout.structured_content,
            "check": check.structured_content,
        }


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    worker = Worker(tmp_path_factory.mktemp("kernels"), 60, 2048)
    yield Tools(worker)
    worker.close()


@NEEDS_LANDLOCK
def test_a_kernel_in_python_is_checked_and_its_fixed_form_is_clean(tools: Tools) -> None:
    faulty = tools.check("k.py", PYTHON.replace(BARRIER, ""))
    (fault,) = faulty["report"]["faults"]
    assert (faulty["exit"], fault["code"], fault["place"]["line"]) == (1, "E3204", 9)
    fixed = tools.check("k.py", PYTHON)
    assert (fixed["exit"], fixed["report"]["verdict"]) == (0, "clean")
    assert tools.bisect("k.py")["exit"] == 0


def test_commands_answer_with_their_output(tools: Tools) -> None:
    assert "Cause" in tools.explain("E3205")["output"]
    assert "E3202" in tools.run("k.cute", CUTE)["messages"]
    assert "k.cute" in tools.explain("k.cute")["output"]
    assert tools.show(["k.cute", "-o", "x.html"])["exit"] == 1
    assert tools.check("k.cute", "nonsense")["exit"] == 1


def test_cuda_is_checked_with_arguments(tools: Tools) -> None:
    text = "__global__ void k(float *A, int n) { if (threadIdx.x <= n) A[threadIdx.x] = 1; }\n"
    answer = tools.check("k.cu", text, block="64", arguments={"A": "f32[32]", "n": "32"})
    assert [fault["code"] for fault in answer["report"]["faults"]] == ["E3202"]


@pytest.mark.parametrize("file", ["/etc/passwd", "../k.cute", "-h"])
def test_files_of_other_folders_are_refused(tools: Tools, file: str) -> None:
    assert "outside the folder" in tools.check(file)["messages"]


@NEEDS_LANDLOCK
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "not allowed"),
        ("print(open('/etc/hostname').read())", "outside the folder"),
        ("open('/var/x', 'w')", "outside the folder"),
        ("import subprocess; subprocess.run(['true'])", "not allowed"),
        ("import ctypes; open('out', 'w').write(str(ctypes.CDLL(None).system(b'true')))", "no function `case`"),
        ("bytearray(3 << 30)", "takes more than 2048 MiB"),
    ],
)
def test_a_program_keeps_to_its_limits(tools: Tools, statement: str, said: str) -> None:
    answer = tools.check("bad.py", statement + "\n")
    assert answer["exit"] == 1
    assert said in answer["messages"]


@NEEDS_LANDLOCK
def test_code_that_is_not_python_cannot_read_other_files(tools: Tools) -> None:
    assert "k.cu" in tools.check("k.cu", '#include "/etc/hostname"\n__global__ void k() {}\n', block="1")["messages"]
    program = "import ctypes\nassert ctypes.CDLL(None).open(b'/etc/hostname', 0) < 0, 'it reads'\n"
    assert "no function `case`" in tools.check("c.py", program)["messages"]


@NEEDS_LANDLOCK
def test_a_program_without_an_end_is_stopped(tmp_path: Path) -> None:
    worker = Worker(tmp_path, 1, 2048)
    assert "longer than 1 seconds" in Tools(worker).check("k.py", "while True: pass\n")["messages"]
    assert Tools(worker).layout("8:1")["output"] == "8:1\n"
    worker.close()


@pytest.mark.parametrize("options", [["--folder", "/nowhere"], ["--seconds", "0"], ["--memory", "0"]])
def test_wrong_options(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", *options]) == 1
    assert "E4003" in capsys.readouterr().err


def test_a_warm_process_imports_nothing_more_and_starts_no_process() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.agents.warm"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "modules: none\nprocesses: none\n", "")
