# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold cache`: the machine code that is kept on disk."""

import argparse

from tilefold.runtime.settings import CACHE_DIR, CACHE_LIMIT, cache_settings

_EPILOG = f"""\
  tilefold cache          what is kept, and where
  tilefold cache path     the folder alone
  tilefold cache clear    remove everything that is kept

Machine code is kept by what it was made from: the program, the target, and the versions of tilefold, LLVM and the
assembler. {CACHE_DIR} names another folder; {CACHE_LIMIT} is how many MiB are kept, 0 for none.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `cache`."""
    parser.epilog = _EPILOG
    parser.add_argument("action", nargs="?", choices=("info", "clear", "path"), default="info", help="default: info")


def execute(args: argparse.Namespace) -> int:
    """Does what was asked for. TilefoldError (E4003) for bad settings in the environment."""
    from tilefold.runtime.store import Store

    settings = cache_settings()
    store = Store(settings.folder, settings.limit)
    match args.action:
        case "path":
            print(settings.folder)
        case "clear":
            removed = store.clear()
            print(f"removed {_kernels(removed.entries)}, {_mib(removed.bytes)}")
        case _:
            usage = store.usage()
            limit = _mib(settings.limit) if settings.limit else "off"
            print(f"folder: {settings.folder}\nkept: {_kernels(usage.entries)}, {_mib(usage.bytes)}\nlimit: {limit}")
    return 0


def _kernels(count: int) -> str:
    return f"{count} program{'' if count == 1 else 's'}"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
