# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The server: the tools with their parameters, and the process that executes them."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from mcp.server import MCPServer

from tilefold.tools.agents.confinement import has_landlock
from tilefold.version import VERSION

_INSTRUCTIONS = """\
tilefold checks GPU kernels without a GPU: `.cute` files, PTX, CUDA C++ (`.cu`) and kernels in Python. Call `check`
after each change of a kernel: its verdict names each fault by a code, the line, the other line concerned, and a cure.
A file is in the folder of the server; `text` writes it first. PTX and CUDA C++ need `grid`, `block` and `arguments`,
such as {"A": "f32[128]", "n": "128"}, with `fills`, such as {"A": "arange"}. A file in Python has a function `case`,
which returns a call of a kernel and the sizes of its launch: return copy(A, B), {"grid": 4, "block": 128}.
"""
_MOST_TEXT = 1 << 20


class Worker:
    """The warm process. Commands come one after the other."""

    def __init__(self, folder: Path, seconds: int, megabytes: int) -> None:
        command = [sys.executable, "-m", "tilefold.commands.agent_worker", str(folder), str(seconds), str(megabytes)]
        self.folder = folder
        self._lock = Lock()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    @property
    def process_id(self) -> int:
        """The number of the process."""
        return self._process.pid

    def execute(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The exit status, output and messages of a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of the tools has ended")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def make_server(worker: Worker) -> MCPServer[Any]:
    """The server of a worker's tools."""
    server = MCPServer("tilefold", instructions=_INSTRUCTIONS, version=VERSION, log_level="CRITICAL")
    tools = Tools(worker)
    for tool in (tools.check, tools.run, tools.explain, tools.layout, tools.show, tools.bisect):
        server.tool()(tool)
    return server


class Tools:
    """The tools. Each answers with the exit status of its command, its output, and its messages."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def check(
        self,
        file: str,
        text: str | None = None,
        launch: str | None = None,
        grid: str | None = None,
        block: str | None = None,
        arguments: dict[str, str] | None = None,
        fills: dict[str, str] | None = None,
        stages: list[str] | None = None,
        target: str | None = None,
        numbers: bool = False,
    ) -> dict[str, Any]:
        """Finds all faults of a kernel on the simulator: races, accesses out of bounds, undefined values, hangs.
        `report` is the verdict with its faults. `stages` are some of cute, folded, atoms, index, instr, ptx, or all;
        `numbers` also looks for NaN, infinities and integers that wrap.
        """
        options = [*launch_options(launch, grid, block, arguments, fills), *_given("--target", target)]
        options += [word for stage in stages or () for word in ("--stage", stage)] + ["--numbers"] * numbers
        answer = self._of_file("check", file, text, [*options, "--format", "json"])
        return _with_report(answer)

    def run(
        self,
        file: str,
        text: str | None = None,
        launch: str | None = None,
        grid: str | None = None,
        block: str | None = None,
        arguments: dict[str, str] | None = None,
        fills: dict[str, str] | None = None,
        stage: str = "instr",
        counters: bool = False,
    ) -> dict[str, Any]:
        """Runs the launches of a kernel on the simulator and evaluates their checks; `counters` counts instructions and
        the costs of accesses to memory.
        """
        options = [*launch_options(launch, grid, block, arguments, fills), "--device", "sim"]
        options += [] if file.endswith((".ptx", ".cu")) else ["--stage", stage]
        return self._of_file("run", file, text, [*options, *["--counters"] * counters])

    def explain(self, what: str, text: str | None = None, costs: bool = False) -> dict[str, Any]:
        """Explains an error code, such as E3205: cause, example, cure. For a file: the compiler's decisions line by
        line, or the `costs` of its lines.
        """
        if "." not in what:
            return self._worker.execute({"words": ["explain", what]})
        return self._of_file("explain", what, text, ["--costs"] * costs)

    def layout(self, expression: str) -> dict[str, Any]:
        """Evaluates an expression of the layout algebra, such as composition((8,4):(1,8), 8:1)."""
        return self._worker.execute({"words": ["layout", "--", expression]})

    def show(self, words: list[str]) -> dict[str, Any]:
        """Prints layouts as tables: the words of the command `tilefold show`, such as ["tiled-mma", "--atom",
        "SM80_16x8x16_F32F16F16F32_TN", "--table"].
        """
        if problem := next((word for word in words if word.startswith(("-o", "--output", "--svg", "--png"))), None):
            return _refusal(f"{problem}: tables are printed, and no files written")
        return self._worker.execute({"words": ["show", *words]})

    def bisect(self, file: str, text: str | None = None, launch: str | None = None) -> dict[str, Any]:
        """Finds the pass of the compiler, or the instruction of the PTX, that changes the results of a kernel."""
        return self._of_file("bisect", file, text, _given("--launch", launch))

    def _of_file(self, command: str, file: str, text: str | None, options: Sequence[str]) -> dict[str, Any]:
        path = (self._worker.folder / file).resolve()
        if not path.is_relative_to(self._worker.folder) or file.startswith("-"):
            return _refusal(f"{file[:80]} is outside the folder of the server")
        name = str(path.relative_to(self._worker.folder))
        if text is not None:
            if len(text) > _MOST_TEXT or path.is_dir():
                return _refusal(f"{name[:80]} cannot be written: it is a folder, or the text is too long")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if name.endswith(".py"):
            if not has_landlock():
                return _refusal("programs in Python run only where the system can confine them: Linux with Landlock")
            return self._worker.execute({"python": name, "words": [command]})
        return self._worker.execute({"words": [command, name, *options]})


def launch_options(
    launch: str | None = None,
    grid: str | None = None,
    block: str | None = None,
    arguments: Mapping[str, str] | None = None,
    fills: Mapping[str, str] | None = None,
) -> list[str]:
    """The options of the commands for a launch: its name, its sizes, and its arguments with their fills."""
    words = [*_given("--launch", launch), *_given("--grid", grid), *_given("--block", block)]
    for option, values in (("--arg", arguments), ("--fill", fills)):
        words += [word for name, value in (values or {}).items() for word in (option, f"{name}={value}")]
    return words


def _given(option: str, value: str | None) -> list[str]:
    return [] if value is None else [option, value]


def _refusal(message: str) -> dict[str, int | str]:
    return {"exit": 1, "output": "", "messages": f"error: {message}"}


def _with_report(answer: dict[str, Any]) -> dict[str, object]:
    """The answer, with the report where its output is one."""
    if not answer["output"].startswith("{"):
        return answer
    return {**answer, "output": "", "report": json.loads(answer["output"])}
