# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold mcp`: the commands as tools of the Model Context Protocol."""

import argparse
import os
from pathlib import Path

from tilefold.base.errors import Code, TilefoldError

_EPILOG = """\
An agent starts this command and communicates with it over standard input and output. The tools are check, run, explain,
layout, show and bisect; check answers with the report as JSON. They read and write files of one folder only, use no
network, and end at a limit of time and memory. docs/agents.md has an example.

examples:
  tilefold mcp --folder kernels
  tilefold mcp --folder kernels --seconds 20 --memory 2048

The server needs the package mcp: pip install 'tilefold[mcp]'.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `mcp`."""
    parser.epilog = _EPILOG
    parser.add_argument("--folder", metavar="DIR", default=".", help="the folder of the files (default: this one)")
    parser.add_argument("--seconds", metavar="N", type=int, default=60, help="the most seconds of a tool (default: 60)")
    parser.add_argument(
        "--memory", metavar="MIB", type=int, default=4096, help="the most memory of a tool, in MiB (default: 4096)"
    )


def execute(args: argparse.Namespace) -> int:
    """Serves until the agent ends the connection. TilefoldError (E4004) where the package mcp is not installed, (E4003)
    for a path that is not a folder, a limit below 1, or a system without `fork`.
    """
    folder = Path(args.folder).resolve()
    if not folder.is_dir():
        raise TilefoldError(Code.CLI_VALUE, f"--folder {args.folder[:80]}: no such folder", "create it")
    if args.seconds < 1 or args.memory < 1:
        raise TilefoldError(Code.CLI_VALUE, "--seconds and --memory are at least 1", "")
    if not hasattr(os, "fork"):
        raise TilefoldError(Code.CLI_VALUE, "the server needs a system with fork, such as Linux", "use WSL")
    try:
        from tilefold.tools.agents.server import Worker, make_server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "mcp":
            raise
        hint = "pip install 'tilefold[mcp]'"
        raise TilefoldError(Code.PACKAGE_MISSING, "the server needs the package mcp", hint) from None
    worker = Worker(folder, args.seconds, args.memory)
    try:
        make_server(worker).run("stdio")
    finally:
        worker.close()
    return 0
