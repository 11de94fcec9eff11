# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tilefold.cutlass.checked_program FILE OUT` runs a program in Python or a notebook, and checks each of
its launches on the simulator. CuTe programs, which import `cutlass`, run as by `python -m tilefold.cutlass`.

It writes the reports to OUT as JSON, and the error that ended the program, with its place, or null.
"""

import json
import re
import runpy
import sys
from pathlib import Path

from tilefold.cute.checked_launches import checking_launches
from tilefold.cutlass import install
from tilefold.cutlass.programs import run_as_main, take_over
from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.uncaught import in_a_line, report_uncaught

_CUTLASS = re.compile(r"\b(from|import)\s+cutlass\b")


def _run(file: str) -> None:
    """Runs a file as the main program."""
    if not file.endswith(".ipynb") and not _CUTLASS.search(Path(file).read_text(errors="replace")):
        runpy.run_path(file, run_name="__main__")
        return
    install()
    with Replacements() as replaced:
        finish = take_over(replaced)
        run_as_main(file)
        finish()


def main(file: str, out: str) -> int:
    """Runs and checks a program; the exit status is its own."""
    sys.argv = [file]
    sys.path[0] = str(Path(file).resolve().parent)
    status, error = 0, None
    with checking_launches() as reports:
        try:
            _run(file)
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            error = f"exit status {status}" if isinstance(stop.code, int) else str(stop.code)
        except Exception as fault:
            status, error = 1, in_a_line(fault)
            report_uncaught(type(fault), fault, fault.__traceback__)
    found = {"reports": [report.as_dict() for report in reports], "error": error if status else None}
    Path(out).write_text(json.dumps(found))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
