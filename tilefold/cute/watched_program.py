# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program in Python whose launches are checked: `python -m tilefold.cute.watched_program FILE`.

Writes a report for each launch, as JSON, to the file that the environment of the caller names in the arguments.
"""

import json
import runpy
import sys
from pathlib import Path


def main(file: str, out: str) -> int:
    """Runs `file` as the main program, and writes the reports to `out`. The exit status is the program's."""
    from tilefold.cute.watching import watching

    sys.argv = [file]
    sys.path[0] = str(Path(file).resolve().parent)
    status: object = 0
    with watching() as reports:
        try:
            runpy.run_path(file, run_name="__main__")
        except SystemExit as stop:
            status = stop.code
        finally:
            Path(out).write_text(json.dumps([report.as_dict() for report in reports]))
    if isinstance(status, str):
        print(status, file=sys.stderr)
    return status if isinstance(status, int) else int(status is not None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
