# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Python for the tools of agents. The file has a function `case`, which returns a call of a kernel and the
sizes of its launch: `return copy(A, B), {"grid": 4, "block": 128}`.
"""

import runpy
import sys
from traceback import extract_tb
from typing import Any, cast

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.messages import print_error


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
