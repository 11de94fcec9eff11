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
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tilefold.base.errors import TilefoldError
from tilefold.cutlass import install
from tilefold.cutlass.programs import run_as_main, take_over
from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.uncaught import report_uncaught
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
    replaced = Replacements()
    atexit.register(replaced.close)  # after the exit handlers of the program
    finish = take_over(replaced)
    if name is not None:
        sys.path[0] = str(Path.cwd())
        file = file_of(name)
    else:
        sys.path[0] = str(Path(file).resolve().parent)
    sys.argv = [file, *arguments]
    package = None if name is None else name.rpartition(".")[0]
    if devices is None:
        run_as_main(file, package)
        finish()
        return
    from tilefold.runtime.cuda import is_available

    if is_available():
        sys.exit("--devices is of simulated devices: torchrun runs a program on several GPUs")
    from tilefold.cutlass.without_gpu.ranks import run_ranks

    run_ranks(devices, partial(run_as_main, file, package))


main()
