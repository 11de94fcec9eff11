# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes results: to the standard output, or to a file that appears only when it is whole."""

import io
import os
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.printable import printable

if TYPE_CHECKING:
    from tilefold.layout.drawing.scene import Picture

_PAGES = (".html", ".htm", ".xhtml", ".xht")
_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{}</title></head>
<body><pre>{}</pre></body></html>
"""


class PrintableStream(io.TextIOBase):
    """A stream that writes text to another as `printable` makes it, whatever prints it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str, /) -> int:
        self.stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def writable(self) -> bool:
        return True

    @property
    def buffer(self) -> BinaryIO:
        """The stream of bytes below."""
        return self.stream.buffer

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The encoding of the stream below."""
        return self.stream.encoding


def terminal_of(stream: TextIO) -> TextIO:
    """The stream itself, for text that was made printable before it got colours."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


class Markup(str):
    """The text of a page of HTML or of a picture, in which the text of others is escaped."""


def write_output(content: str | bytes, path: str | None) -> None:
    """Writes text or bytes to `path`, or to the standard output for None and `-`. Text that is no `Markup` becomes a
    page of it in a file that a browser takes for one.

    The file is written under another name beside it and renamed, so that a failure leaves no part of it behind.
    Raises TilefoldError if the file cannot be written, and for bytes on a terminal.
    """
    if path is None or path == "-":
        if isinstance(content, str):
            sys.stdout.write(content)
            sys.stdout.flush()
        elif sys.stdout.isatty():
            raise TilefoldError(Code.CLI_WRITE, "binary output to a terminal", "name a file with -o")
        else:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        return
    if isinstance(content, Markup):
        content = Markup(printable(content))
    elif isinstance(content, str) and path.lower().endswith(_PAGES):
        content = _PAGE.format(escape(printable(path)), escape(printable(content)))
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise TilefoldError(Code.CLI_WRITE, f"{path}: is a directory", "name a file")
            target.write_bytes(data)  # a device or a pipe, which has no parts to leave behind
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TilefoldError(Code.CLI_WRITE, f"{path}: {reason}") from None


def write_picture(picture: "Picture", path: str, *, png: bool) -> None:
    """Writes a picture, as PNG or SVG. Raises TilefoldError as `write_output`, and (E4004) for PNG without Pillow."""
    if png:
        from tilefold.png import draw_png

        write_output(draw_png(picture), path)
    else:
        write_output(Markup(picture.svg()), path)


def _umask() -> int:
    """The process's mask for new files, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
