# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of the runners of programs, and the end of their output."""

import argparse
import json
from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any


def parser_of(
    name: str, folder: str, subject: str, seconds: int, description: str | None = None
) -> argparse.ArgumentParser:
    """The parser of a runner of this name, which takes a folder and options; a `subject` has a text that `--only`
    looks through, and may take some seconds.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    parser.add_argument("folder", type=Path, help=folder)
    parser.add_argument("--only", default="", help=f"run the {subject}s that have this text in their line")
    parser.add_argument(
        "--seconds", type=int, default=seconds, help=f"the time that one {subject} may take (default: {seconds})"
    )
    parser.add_argument("--json", type=Path, help="also write the results, as a list of objects, to this file")
    return parser


def finish(results: Sequence[dict[str, Any]], counts: Counter[str], file: Path | None, fine: Container[str]) -> int:
    """Prints how many ended in each state, writes the results if a file is given, and returns the exit status: 0 if all
    states are `fine`.
    """
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    if file:
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0 if all(state in fine for state in counts) else 1
