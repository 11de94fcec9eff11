# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tilefold.cutlass FILE [--] ARGUMENTS`: runs a CuTe program whose import lines say `cutlass`. The file is
one of Python or a notebook, whose code cells run in order. `-m MODULE` in place of FILE runs a module, as Python does.

`--devices N` before FILE runs a program of several GPUs, which `torchrun` would start N times, on N simulated devices.

`python -m tilefold.cutlass --missing DIR` runs nothing: it lists the names that the programs below a folder use and
tilefold lacks, with the number of files that each stops; `--json` lists all these files.

On a machine without a GPU tensors that the program puts on one stay in the host's memory, and kernels are simulated:
see `without_gpu`.
"""

import atexit
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException, extract_tb, format_list
from types import TracebackType

from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.cutlass import install
from tilefold.cutlass.programs import register_addresses, run_as_main
from tilefold.cutlass.replacements import Replacements
from tilefold.runtime.settings import shows_tracebacks

MAX_DEVICES = 64
"""The most simulated devices of a program."""


def list_missing(arguments: list[str]) -> None:
    """Prints the names that programs below a folder use and tilefold lacks, and to the standard error the files that
    could not be read. Exits with 1 if there is no program.
    """
    from tilefold.cutlass.missing_names import missing_names

    folders = [argument for argument in arguments if argument != "--json"]
    if len(folders) != 1:
        sys.exit("which folder? --missing DIR" if not folders else f"one folder, not {len(folders)}: --missing DIR")
    folder = Path(folders[0])
    if not folder.exists():
        sys.exit(f"there is no folder {folder}")
    survey = missing_names(folder)
    for unread in survey.unread:
        print(f"left out: {unread}", file=sys.stderr)
    if not survey.programs:
        sys.exit(f"no program in {folder} names cutlass")
    if "--json" in arguments:
        print(json.dumps([{"name": missing.name, "files": missing.files} for missing in survey.missing], indent=1))
    elif survey.missing:
        print(*survey.missing, sep="\n")
    else:
        print(f"tilefold has every name that they use ({survey.programs} read)")


def file_of(name: str) -> str:
    """The file of a module; for a package, that of its `__main__`."""
    found = find_spec(name)
    if found is not None and found.submodule_search_locations is not None:
        found = find_spec(f"{name}.__main__")
    if found is None or found.origin is None:
        sys.exit(f"there is no module {name}")
    return found.origin


def devices_of(command: list[str]) -> int | None:
    """The number after `--devices`, which it removes from a command line; None where that does not say it."""
    if command[1] != "--devices":
        return None
    given = command[2] if len(command) > 2 else ""
    if not given.isdecimal() or not 1 <= int(given) <= MAX_DEVICES or len(command) < 4:
        sys.exit(f"how many devices? --devices N FILE, with N from 1 to {MAX_DEVICES}")
    del command[1:3]
    return int(given)


def main() -> None:
    """Runs the program that the command line names, as `__main__`."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit("usage: python -m tilefold.cutlass [--devices N] FILE.py|FILE.ipynb [--] ARGUMENTS\n"
                 "       python -m tilefold.cutlass --missing DIR [--json]")  # fmt: skip
    if sys.argv[1] == "--missing":
        list_missing(sys.argv[2:])
        return
    try:
        shows_tracebacks()
    except TilefoldError as error:
        sys.exit(str(error))
    sys.excepthook = report_uncaught
    devices = devices_of(sys.argv)
    name = sys.argv[2] if sys.argv[1] == "-m" and len(sys.argv) > 2 else None
    file, arguments = sys.argv[1], sys.argv[2 if name is None else 3 :]
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    if name is None and not Path(file).is_file():
        sys.exit(f"there is no file {file}")
    install()
    from tilefold.cute.host.streams import torch_module
    from tilefold.runtime.cuda import is_available

    replaced = Replacements()
    atexit.register(replaced.close)  # after the exit handlers of the program
    if find_spec("torch") is not None:
        register_addresses(torch_module(), replaced)
    finish: Callable[[], None] | None = None
    if not is_available():
        from tilefold.cutlass.without_gpu import stay_on_host, wait_for_gpu

        replaced.enter_context(stay_on_host())
        finish = wait_for_gpu
    if name is not None:
        sys.path[0] = str(Path.cwd())
        file = file_of(name)
    else:
        sys.path[0] = str(Path(file).resolve().parent)
    sys.argv = [file, *arguments]
    package = None if name is None else name.rpartition(".")[0]
    if devices is None:
        run_as_main(file, package)
        if finish is not None:
            finish()
        return
    if is_available():
        sys.exit("--devices is of simulated devices: torchrun runs a program on several GPUs")
    from tilefold.cutlass.without_gpu.ranks import run_ranks

    run_ranks(devices, partial(run_as_main, file, package))


_OURS = str(Path(__file__).resolve().parents[2])
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def report_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints an error as `sys.excepthook` does; of one of tilefold the user's lines that led to it, and the message; of
    any other one all lines but those of tilefold. `TILEFOLD_TRACEBACK=1` shows all lines.
    """
    if shows_tracebacks():
        sys.__excepthook__(kind, error, trace)
        return
    if not isinstance(error, TilefoldError):
        print(*_without_ours(TracebackException(kind, error, trace)).format(), sep="", end="", file=sys.stderr)
        return
    lines = [] if isinstance(error, ProgramError) else format_list(list(_of_user(trace)))  # which names its lines
    print("".join(lines) + str(error), file=sys.stderr)


def _of_user(trace: TracebackType | None) -> Iterator[FrameSummary]:
    for frame in extract_tb(trace):
        if _is_code(frame) and not str(Path(frame.filename).resolve()).startswith(_LIBRARIES):
            yield frame


def _without_ours(shown: TracebackException) -> TracebackException:
    """An exception, and those before it, without the lines of tilefold and of Python's own machinery."""
    before: TracebackException | None = shown
    while before is not None:
        before.stack = StackSummary.from_list([frame for frame in before.stack if _is_code(frame)])
        before = before.__cause__ or before.__context__
    return shown


def _is_code(frame: FrameSummary) -> bool:
    """Whether a line is one of a file, and not of this package, which lies in one folder, or in a checkout beside its
    subpackages.
    """
    path = str(Path(frame.filename).resolve())
    folders = ("base", "builder", "compiler", "dialects", "layout", "passes", "runtime", "tilefold")
    is_ours = path.startswith(tuple(str(Path(_OURS, name)) + "/" for name in folders)) or "/tilefold/cutlass/" in path
    return not frame.filename.startswith("<") and not is_ours


main()
