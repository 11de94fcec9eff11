# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runners of programs share: their command line, and how they run the rows of their tables."""

import argparse
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen
from typing import Any

_CODE = re.compile(r"error\[E\d{4}\]|^E\d{4}: ")
"""What marks the line of an error of tilefold, of a program or of a call."""
FINE = ("runs", "known", "left out")
"""The states of rows that are as their table says."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its line, what `--json` writes about it, and what runs it in at most some seconds. That returns
    how it went (`runs`, `known`, `changed`, `stops`, `missing`), and the reason.
    """

    text: str
    facts: Mapping[str, object]
    run: Callable[[int], tuple[str, str]]


def options_of(
    name: str, folder: str, subject: str, seconds: int, argv: Sequence[str], description: str | None = None
) -> argparse.Namespace:
    """The options of a runner of this name, which takes a folder; a `subject` has a text that `--only` looks through,
    and may take some seconds. Exits with 2 and a message if there is no such folder, no torch, or no place for results.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    parser.add_argument("folder", type=Path, help=folder)
    parser.add_argument("--only", default="", help=f"run the {subject}s that have this text in their line")
    parser.add_argument(
        "--seconds", type=int, default=seconds, help=f"the time that one {subject} may take (default: {seconds})"
    )
    parser.add_argument("--json", type=Path, help="also write the results, as a list of objects, to this file")
    options = parser.parse_args(argv)
    if not options.folder.is_dir():
        parser.error(f"there is no folder {options.folder}; it is {folder}")
    if find_spec("torch") is None:
        parser.error(f"torch is not installed, and the programs need it: {sys.executable} -m pip install torch")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"there is no folder {options.json.parent} for the results")
    return options


def run_rows(
    rows: Sequence[Row], options: argparse.Namespace, others: Sequence[Mapping[str, Any]] = (), where: str = "simulator"
) -> int:
    """Runs the rows whose line has the text of `--only`, and prints each as it ends. Then prints `others`, which have a
    text and a state without being run, how many there are of each state, and once more the rows that are not as their
    table says. Writes the results if a file is given, also of a run that the user interrupts. Returns the exit status:
    0 if all are as they should be, 1 if not, 2 if no row has the text, 130 after an interruption.
    """
    chosen = [row for row in rows if options.only in row.text]
    if not chosen and not others:
        print(f"none of the {len(rows)} lines has '{options.only}'")
        return 2
    print(f"{len(chosen)} of {len(rows)} on the {where}", flush=True)
    results: list[dict[str, Any]] = []
    interrupted = False
    try:
        for number, row in enumerate(chosen, 1):
            began = time.monotonic()
            state, reason = row.run(options.seconds)
            seconds = round(time.monotonic() - began, 1)
            results.append({"text": row.text, **row.facts, "state": state, "reason": reason, "seconds": seconds})
            print(f"{number:{len(str(len(chosen)))}} {state:8}{seconds:6.1f} s  {_short(row.text)}", flush=True)
            if reason:
                print(f"          {reason}", flush=True)
    except KeyboardInterrupt:
        interrupted = True
        print(f"interrupted: {len(results)} of {len(chosen)} have run")
    for other in () if interrupted else others:
        results.append(dict(other))
        print(f"{other['state']} {other['text']}" + (f": {other['reason']}" if other["reason"] else ""))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    bad = [result for result in results if result["state"] not in FINE]
    if bad:
        print(
            "not as the table says:", *(f"  {result['state']:8} {_short(result['text'])}" for result in bad), sep="\n"
        )
    counts = Counter(result["state"] for result in results for _ in range(result.get("files", 1)))
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 130 if interrupted else int(bool(bad))


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:157]}..."


def run_program(
    command: Sequence[str], env: Mapping[str, str], seconds: float, folder: Path | None = None
) -> CompletedProcess[str]:
    """Runs a program in a folder. All processes that it has started, such as those which share a simulated launch, end
    with it. Raises TimeoutExpired if it does not end within some seconds.
    """
    with Popen(command, cwd=folder, stdout=PIPE, stderr=PIPE, text=True, env=env, process_group=0) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return CompletedProcess(command, process.returncode, output, errors)


def state_of(ended_well: bool, output: str, ends: str, reason: str) -> tuple[str, str]:
    """How a row went by the end of its process: it `runs`; it is `known` to end with the text `ends` for the reason; it
    has `changed`, if it ends well in spite of that; or it `stops`, with its last error as the reason.
    """
    if ended_well:
        return ("changed", f"it ends well, where the table says: {reason}") if ends else ("runs", "")
    if ends and ends in output:
        return "known", reason
    return "stops", reason_of(output)


def reason_of(output: str) -> str:
    """The last error in what a program has written: of one of tilefold's, the line with its code."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    coded = [line for line in lines if _CODE.search(line)]
    return (coded or lines or ["it wrote nothing"])[-1][:400]


def checkout_of(folder: Path, repository: str, commit: str, file: str) -> str:
    """Why a file of a checkout, which lies in `folder`, cannot be run; empty if it is there."""
    if (folder / file).is_file():
        return ""
    if folder.is_dir():
        return f"there is no {folder / file}"
    url = f"https://github.com/{repository}"
    return f"no checkout: git clone {url} {folder} && git -C {folder} checkout {commit}"
