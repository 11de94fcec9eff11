# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.programs.libraries DIR`: runs tests of public libraries on the simulator, at reduced sizes.

DIR has a checkout of each repository at its commit, `DIR/NAME-COMMIT`; those that are missing are reported. Each case
of `libraries.json` calls one function of the library's own tests, which compares the kernels with torch, in a process
of its own. The libraries need torch, einops and apache-tvm-ffi. FlashAttention's folder has only `flash_attn/cute`, as
its package does, and quack's package beside it. Some cases tell functions of packages by the folder of their file, so
tilefold must be installed, not a checkout. Prints a line for each case, with `--json FILE` writes them, and exits with
1 if one does not end as the table says.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from os import environ
from pathlib import Path
from shutil import copytree, ignore_patterns
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any

from .command_line import Row, checkout_of, options_of, run_program, run_rows, state_of

TABLE = Path(__file__).with_name("libraries.json")


@dataclass(frozen=True, slots=True)
class Case:
    """A test of a library on the simulator: `call` is the name of its function, or `CLASS.METHOD`, and its arguments,
    or an expression in the names of its file, which begins with a parenthesis. `target` is that of the simulated GPU,
    by default Hopper's. `sizes` are texts of the file with those that stand for them, for sizes that no argument sets;
    before a text of another file of the library stands that file.

    `ends` is a text of its message where it cannot end well, for the `reason`. `races` is False for a kernel that has a
    data race by the memory model, and `fences` for one without fences of tcgen05, which `reason` names. `fixes` are a
    file of the library, or "" for that of the test, a text of it and the text that it should be, so that a fault that
    `reason` names hides no other.
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
    sizes: tuple[tuple[str, ...], ...] = ()
    fixes: tuple[tuple[str, str, str], ...] = ()

    @property
    def text(self) -> str:
        """Its place, its arguments, its sizes, the files that have fixes, and its target."""
        sizes = [f"({size[-1]})" for size in self.sizes]
        fixed = sorted({Path(file or self.file).name for file, _, _ in self.fixes})
        fixes = [f"(with {name} mended)" for name in fixed]
        target = [f"({self.target})"] if self.target else []
        return " ".join([f"{self.repository}@{self.commit} {self.file}::{self.call}", *sizes, *fixes, *target])


def cases() -> Iterator[Case]:
    """The cases of the table. A case there is its call alone if it has nothing else. Reasons that several share stand
    under `reasons`, and fixes with the reason of the same name under `fixes`.
    """
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    for library in table["libraries"]:
        place = {name: library[name] for name in ("library", "repository", "commit")}
        for file, given in library["files"].items():
            for case in given:
                fields: dict[str, Any] = {"call": case} if isinstance(case, str) else dict(case)
                names = fields.get("fixes", ())
                given_reason = fields.get("reason", [])
                reasons = [given_reason] if isinstance(given_reason, str) else given_reason
                fields["reason"] = "; ".join(table["reasons"].get(name, name) for name in (*reasons, *names))
                fields["sizes"] = tuple(tuple(size) for size in fields.get("sizes", ()))
                fields["fixes"] = tuple(tuple(fix) for name in names for fix in table["fixes"][name])
                yield Case(**place, file=file, **fields)


def run(case: Case, folder: Path, seconds: int) -> tuple[str, str]:
    """Runs a case; how it went, and the reason."""
    checkout = folder / f"{case.library}-{case.commit}"
    if lacking := checkout_of(checkout, case.repository, case.commit, case.file):
        return "missing", lacking
    if not case.sizes and not case.fixes:
        return _call(case, checkout, seconds)
    with TemporaryDirectory() as scratch:
        copy = Path(scratch, checkout.name)
        try:
            copy_changed(case, checkout, copy)
        except ValueError as error:
            return "stops", str(error)
        return _call(case, copy, seconds)


def copy_changed(case: Case, checkout: Path, copy: Path) -> None:
    """Copies a library for a case, with its sizes and fixes. ValueError for a text that is not there."""
    copytree(checkout, copy, ignore=ignore_patterns(".git", "__pycache__"))
    for *where, old, new in (*case.sizes, *case.fixes):
        name = "".join(where) or case.file
        text = (copy / name).read_text(encoding="utf-8")
        if old not in text:
            raise ValueError(f"{name} has no '{old}'")
        (copy / name).write_text(text.replace(old, new), encoding="utf-8")


def _call(case: Case, checkout: Path, seconds: int) -> tuple[str, str]:
    """Calls the function of a case; how it went, and the reason."""
    called = [case.call] if case.call.startswith("(") else case.call.split()
    call = [str(Path(__file__).with_name("call.py")), "--", str(checkout / case.file), *called]
    env = {**environ, "TILEFOLD_SIM_RACES": "1" if case.races else "0", "QUACK_CACHE_ENABLED": "0"}
    env |= {"CUTE_DSL_ARCH": case.target} if case.target else {}
    env |= {} if case.fences else {"TILEFOLD_SIM_TCGEN05_FENCES": "0"}
    command = [sys.executable, "-m", "tilefold.cutlass", *call]
    try:
        done = run_program(command, env, seconds)
    except TimeoutExpired:
        return "stops", f"it did not end within {seconds} s"
    state, reason = state_of(done.returncode == 0, done.stderr or done.stdout, case.ends, case.reason)
    return state, reason or case.reason


def row_of(case: Case, folder: Path) -> Row:
    """A case of the table."""
    facts = {"library": case.library, "repository": case.repository, "commit": case.commit, "path": case.file}
    facts |= {"call": case.call, "target": case.target}
    return Row(case.text, facts, lambda seconds: run(case, folder, seconds))


def main(argv: list[str]) -> int:
    """Runs the cases and prints them; returns the exit status."""
    options = options_of("tests.programs.libraries", "the folder of the checkouts", "case", 900, argv)
    return run_rows([row_of(case, options.folder) for case in cases()], options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
