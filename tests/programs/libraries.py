# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.programs.libraries DIR`: runs tests of public libraries on the simulator, at reduced sizes.

DIR has a checkout of each repository at its commit, `DIR/NAME-COMMIT`; those that are missing are reported. Each case
of `libraries.json` calls one function of the library's own tests, which compares the kernels with torch, in a process
of its own. The libraries need torch, einops and apache-tvm-ffi. FlashAttention's folder has only `flash_attn/cute`, as
its package does, and quack's package beside it. Some cases tell functions of packages by the folder of their file, so
tilefold must be installed, not a checkout. Prints a line for each case, with `--json FILE` writes them, and exits with
1 if one stops.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

from .__main__ import reason_of
from .command_line import finish, parser_of

TABLE = Path(__file__).with_name("libraries.json")


@dataclass(frozen=True, slots=True)
class Case:
    """A test of a library on the simulator: `call` is the name of its function, or `CLASS.METHOD`, and its arguments,
    or an expression in the names of its file, which begins with a parenthesis. `target` is that of the simulated GPU,
    by default Hopper's. `sizes` are texts of the file with those that stand for them, for sizes that no argument sets.

    `ends` is a text of its message where it cannot end well, for the `reason`. `races` is False for a kernel that has a
    data race by the memory model, and `fences` for one without fences of tcgen05, which `reason` names.
    """

    library: str
    repository: str
    commit: str
    file: str
    call: str
    ends: str = ""
    reason: str = ""
    races: bool = True
    target: str = ""
    fences: bool = True
    sizes: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """Its place, its arguments and its sizes."""
        sizes = [f"({new})" for _, new in self.sizes]
        return " ".join([f"{self.repository}@{self.commit} {self.file}::{self.call}", *sizes])


def cases() -> Iterator[Case]:
    """The cases of the table. A case there is its call alone if it has nothing else, and a reason that several share
    stands under `reasons`.
    """
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    for library in table["libraries"]:
        place = {name: library[name] for name in ("library", "repository", "commit")}
        for file, given in library["files"].items():
            for case in given:
                fields: dict[str, Any] = {"call": case} if isinstance(case, str) else dict(case)
                reason = fields.get("reason", "")
                fields["reason"] = table["reasons"].get(reason, reason)
                fields["sizes"] = tuple((old, new) for old, new in fields.get("sizes", ()))
                yield Case(**place, file=file, **fields)


def run(case: Case, folder: Path, seconds: int) -> tuple[str, str]:
    """Runs a case; how it went (`runs`, `known`, `stops`, `missing`), and the reason."""
    file = folder / f"{case.library}-{case.commit}" / case.file
    if not file.is_file():
        return "missing", f"there is no {file}"
    sizes = [text for size in case.sizes for text in ("--size", *size)]
    called = [case.call] if case.call.startswith("(") else case.call.split()
    call = [str(Path(__file__).with_name("call.py")), "--", *sizes, str(file), *called]
    env = {**environ, "TILEFOLD_SIM_RACES": "1" if case.races else "0", "QUACK_CACHE_ENABLED": "0"}
    env |= {"CUTE_DSL_ARCH": case.target} if case.target else {}
    env |= {} if case.fences else {"TILEFOLD_SIM_TCGEN05_FENCES": "0"}
    command = [sys.executable, "-m", "tilefold.cutlass", *call]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "stops", f"it did not end within {seconds} s"
    if done.returncode and case.ends and case.ends in done.stderr:
        return "known", case.reason
    return ("runs", case.reason) if done.returncode == 0 else ("stops", reason_of(done.stderr or done.stdout))


def main(argv: list[str]) -> int:
    """Runs the cases and prints them; returns the exit status."""
    options = parser_of("tests.programs.libraries", "the folder of the checkouts", "case", 900).parse_args(argv)
    results: list[dict[str, str]] = []
    for case in cases():
        if options.only in case.text:
            state, reason = run(case, options.folder, options.seconds)
            results.append({"case": case.text, "state": state, "reason": reason})
            print(f"{state:8}{case.text}" + (f"\n          {reason}" if reason else ""), flush=True)
    return finish(results, Counter(result["state"] for result in results), options.json, {"runs", "known"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
