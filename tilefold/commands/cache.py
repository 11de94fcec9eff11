# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold cache`: the cache of machine code on disk."""

import argparse
from time import time

from tilefold.commands.options import add_printed
from tilefold.runtime.settings import CACHE_DIR, CACHE_LIMIT, read_cache_settings

_EPILOG = f"""\
examples:
  tilefold cache          the size of the cache, and its folder
  tilefold cache list     the programs in it: size, last use, kernels and target
  tilefold cache clear    remove everything in it
  du -sh "$(tilefold cache path)"

The key of machine code consists of the program, the target, and the versions of tilefold, LLVM and the assembler. The
key of an autotuning result includes the GPU. So entries are never out of date, and clearing the cache costs only the
time to compile again. Above the limit, tilefold removes the least recently used entries. A checksum detects damaged
entries; tilefold then compiles again. If it cannot write to the folder, it warns and keeps nothing. It never loads
entries that another user owns or can write.

environment:
  {CACHE_DIR}      the folder (default: in the user's folder for caches)
  {CACHE_LIMIT}    the limit in MiB (default: 1024); 0 turns the cache off
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `cache`."""
    parser.epilog = _EPILOG
    actions = ("info", "list", "clear", "path")
    add_printed(parser)
    parser.add_argument("action", nargs="?", choices=actions, default="info", help="default: info")


def execute(args: argparse.Namespace) -> int:
    """Shows or clears the cache. TilefoldError (E4003) for bad settings in the environment."""
    from tilefold.runtime.compiled.store import Store

    settings = read_cache_settings()
    store = Store(settings.folder, settings.limit)
    match args.action:
        case "path":
            print(settings.folder)
        case "list":
            now = time()
            for entry in store.entries():
                print(f"{_size(entry.size):>10}  {_ago(now - entry.used):>12}  {_describe(entry.data)}")
        case "clear":
            removed = store.clear()
            print(f"removed {_kernels(removed.entries)}, {_mib(removed.bytes)}")
        case _:
            usage = store.usage()
            limit = _mib(settings.limit) if settings.limit else "off"
            print(f"folder: {settings.folder}\nkept: {_kernels(usage.entries)}, {_mib(usage.bytes)}\nlimit: {limit}")
    return 0


def _describe(data: bytes | None) -> str:
    """The contents of an entry: a program, or the results of autotuning."""
    from tilefold.runtime.compiled.artifact import Build

    if data is None:
        return "damaged: compiled again when needed"
    try:
        kernels = Build.from_bytes(data).artifacts
    except ValueError:
        return "measurements" if data.startswith(b"[") else "messages of the driver's assembler"
    names = ", ".join(artifact.kernel for artifact in kernels)
    return f"{names} for {kernels[0].target}" if kernels else "a program without kernels"


def _kernels(count: int) -> str:
    return f"{count} program{'' if count == 1 else 's'}"


def _size(size: int) -> str:
    return f"{size / 1024:.1f} KiB"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def _ago(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit} ago"
    return "just now" if seconds < 60 else "1 minute ago"
