# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.programs DIR`: runs the programs of the table, whose folder is DIR, with import lines as they are.

DIR is `examples/python/CuTeDSL` of a checkout of NVIDIA/cutlass. Each program runs in a process of its own and compares
its results with its own reference; torch must be installed. Without a GPU kernels are simulated, at the sizes of the
table. Prints for each program `runs`, `stops` with the reason, or `known` where it ends as the table says that it must
(`changed` where it ends well instead), and then the programs that are left out, with the reason. Exits with 1 if a
program is not as the table says, or if the folder has one that is neither in the table nor left out. `--json FILE`
writes the same, as a list of objects.
"""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from tempfile import TemporaryDirectory

from tilefold.runtime.cuda import is_available

from .command_line import Row, options_of, run_program, run_rows, state_of
from .left_out import LEFT_OUT
from .table import PROGRAMS, Program

LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
"""What the header of a program says that may be run; a notebook has none, but the page beside it."""


def run(program: Program, folder: Path, on_gpu: bool, seconds: int) -> tuple[str, str]:
    """Runs a program; how it went (`runs`, `known`, `stops`, `missing`), and the reason."""
    file = folder / program.path
    if not file.is_file():
        return "missing", "there is no such file"
    header = file.with_name("README.md") if file.suffix == ".ipynb" else file
    if not header.is_file() or LICENCE not in header.read_text(encoding="utf-8")[:2000]:
        return "missing", f"{header.name} does not say {LICENCE}"
    return execute(program, folder, on_gpu, seconds)


def execute(program: Program, folder: Path, on_gpu: bool, seconds: int) -> tuple[str, str]:
    """Runs a program that is there, in a folder of its own; how it went, and the reason."""
    file = folder / program.path
    root = (folder / program.root).resolve()
    paths = [str(path) for path in (file.resolve().parent, root) if not _hides_modules(path)]
    with TemporaryDirectory() as scratch:
        for name in program.writes_to:
            Path(scratch, name).mkdir()
        if program.sizes and not on_gpu:
            try:
                text = resized(program, folder)
            except ValueError as error:
                return "stops", str(error)
            for module in file.parent.glob("*.py"):  # those that hide no module of Python's
                if module.stem not in sys.stdlib_module_names:
                    Path(scratch, module.name).symlink_to(module.resolve())
            file = Path(scratch, file.name)
            file.unlink(missing_ok=True)
            file.write_text(text, encoding="utf-8")
        switches: dict[str, int] = {"TILEFOLD_SIM_RACES": program.races, "TILEFOLD_SIM_TCGEN05_FENCES": program.fences}
        switches["TILEFOLD_SIM_RESIDENT"] = program.resident
        env = {**os.environ, **{name: str(int(value)) for name, value in switches.items()}, "MPLBACKEND": "Agg"}
        env |= {} if on_gpu or not program.target else {"CUTE_DSL_ARCH": program.target}
        # the library's own package `tests` comes before this one
        env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [env.get("PYTHONPATH")])])

        def start(file: Path, arguments: str) -> CompletedProcess[str]:
            given = [str(file.resolve())]
            if program.is_module:
                given = ["-m", ".".join(Path(program.path).relative_to(program.root).with_suffix("").parts)]
            if program.call:
                given = [str(Path(__file__).with_name("call.py")), *given, *shlex.split(program.call)]
            devices = ["--devices", str(program.devices)] if program.devices > 1 else []
            command = [sys.executable, "-m", "tilefold.cutlass", *devices, *given, *shlex.split(arguments)]
            return run_program(command, env, seconds, Path(scratch))

        try:
            if program.after:
                start(folder / program.after, "")
            done = start(file, program.on_gpu if on_gpu else program.arguments)
        except TimeoutExpired:
            return "stops", f"it did not end within {seconds} s"
    ends = program.ends if program.anywhere or not on_gpu else ""
    return state_of(done.returncode == 0, done.stderr or done.stdout, ends, program.reason)


def _hides_modules(folder: Path) -> bool:
    """Whether files of a folder have the names of Python's own modules."""
    return any((folder / f"{name}.py").is_file() for name in sys.stdlib_module_names)


def resized(program: Program, folder: Path) -> str:
    """The text of a program with its sizes on the simulator. ValueError for a size that it does not have."""
    text = (folder / program.path).read_text(encoding="utf-8")
    for old, new in program.sizes:
        if old not in text:
            raise ValueError(f"it has no '{old}'")
        text = text.replace(old, new)
    return text


def not_run(folder: Path, only: str) -> Iterator[tuple[str, int, str]]:
    """The programs and folders that are left out, with the number of files and the reason, and then each file that
    is neither left out nor in the table, without a reason.
    """
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in (".py", ".ipynb")}
    files = {path for path in files if only in path} - {program.path for program in PROGRAMS}
    for left_out, reason in LEFT_OUT.items():
        below = {path for path in files if path == left_out or path.startswith(f"{left_out}/")}
        files -= below
        if below:
            yield left_out, len(below), reason
    yield from ((path, 1, "") for path in sorted(files))


def row_of(program: Program, folder: Path, on_gpu: bool) -> Row:
    """A program of the table."""
    sizes = [program.on_gpu] if on_gpu else [program.arguments, *(f"({new})" for _, new in program.sizes)]
    size = " ".join(filter(None, sizes))
    facts = {"path": program.path, "size": size, "target": "" if on_gpu else program.target}
    return Row(f"{program.path} {size}".rstrip(), facts, lambda seconds: run(program, folder, on_gpu, seconds))


def main(argv: list[str]) -> int:
    """Runs the programs and prints the table; returns the exit status."""
    about = (__doc__ or "").splitlines()[0]
    options = options_of("tests.programs", "examples/python/CuTeDSL of NVIDIA/cutlass", "program", 600, argv, about)
    on_gpu = is_available()
    others = [
        {"path": path, "files": count, "state": "left out" if reason else "unlisted", "reason": reason}
        | {"text": f"{path} ({count} files)" if count > 1 else path}
        for path, count, reason in not_run(options.folder, options.only)
    ]
    rows = [row_of(program, options.folder, on_gpu) for program in PROGRAMS]
    return run_rows(rows, options, others, "GPU" if on_gpu else "simulator")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
