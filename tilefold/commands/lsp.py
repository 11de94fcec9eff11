# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold lsp`: the language server of `.cute` files."""

import argparse
import logging
import sys

from tilefold.base.errors import Code, TilefoldError

_EPILOG = """\
examples:
  tilefold lsp    as editors start it

An editor starts this command and communicates with it over standard input and output, by the Language Server Protocol.
The server offers errors while typing, types and pictures of layouts on hover, definitions, references, an outline and
completion. When a file is opened or saved, it also lowers the file, to report the errors of passes. It runs no kernel.

The server needs pygls: pip install 'tilefold[lsp]'. docs/editors.md says how to set up VS Code, Neovim and others.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `lsp`."""
    parser.epilog = _EPILOG
    parser.add_argument("--stdio", action="store_true", help="talk over standard input and output (always so)")


def execute(args: argparse.Namespace) -> int:
    """Serves until the editor ends the connection; 1 if it sends `exit` without `shutdown`.

    TilefoldError (E4004) where pygls is not installed, (E4001) for input that is not a message.
    """
    try:
        from tilefold.compiler.frontend.source import standard_input
        from tilefold.tools.editing.connection import Connection
        from tilefold.tools.editing.server import make_server
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        hint = "pip install 'tilefold[lsp]'"
        raise TilefoldError(Code.PACKAGE_MISSING, "the language server needs pygls", hint) from None
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # each error is an answer to the editor, not a traceback
    connection = make_server().protocol
    assert isinstance(connection, Connection)
    return connection.serve(standard_input(), sys.stdout.buffer)
