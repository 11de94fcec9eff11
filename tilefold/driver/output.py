# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes results: to the standard output, or to files that appear only when all of them are whole; and the progress of
long work, as a bar on the terminal.
"""

import errno
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO, TextIO

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.printable import printable

if TYPE_CHECKING:
    from tilefold.layout.drawing.scene import Picture

_PAGES = (".html", ".htm", ".xhtml", ".xht")
_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<style>{} pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}</style></head>
<body><main><pre>{}</pre></main></body></html>
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


def base_style() -> str:
    """The style sheet that pages share: colours, also dark ones by the reader's setting, headings and pictures."""
    return (Path(__file__).parent / "base.css").read_text()


def terminal_of(stream: TextIO) -> TextIO:
    """The stream itself, for text that was made printable before it got colours."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


class Markup(str):
    """The text of a page of HTML or of a picture, in which the text of others is escaped."""


def write_output(content: str | bytes, path: str | None) -> None:
    """Writes text or bytes to `path`, or to the standard output for None and `-`. Text that is not a `Markup` becomes a
    page of it in a file that a browser takes for one.

    Raises TilefoldError as `write_files`, and for bytes on a terminal.
    """
    if path is not None and path != "-":
        write_files({path: content})
    elif isinstance(content, str):
        sys.stdout.write(content)
        sys.stdout.flush()
    elif sys.stdout.isatty():
        raise TilefoldError(Code.CLI_WRITE, "binary output to a terminal", "name a file with -o")
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def write_files(contents: Mapping[str, str | bytes]) -> None:
    """Writes text or bytes to each path: to all of them, or to none.

    Every file is written under another name beside it and renamed, so that a failure, an interrupt or the end of the
    process leaves no part of it behind. A file that is replaced keeps its mode; where the path is a symbolic link, the
    file is the target of the link. TilefoldError (E4002) if a file cannot be written.
    """
    files: list[_File] = []
    path = ""
    try:
        for path, content in contents.items():
            files.append(_File.beside(path))
            files[-1].write(_data(content, path))
        for file in files:
            path = file.path
            file.replace(alone=len(files) == 1)
    except BaseException as error:
        for file in reversed(files):
            file.undo()
        if not isinstance(error, (OSError, ValueError)):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TilefoldError(Code.CLI_WRITE, f"{path}: {reason}") from None
    for file in files:
        file.forget()


def _data(content: str | bytes, path: str) -> bytes:
    if isinstance(content, Markup):
        content = Markup(printable(content))
    elif isinstance(content, str) and path.lower().endswith(_PAGES):
        content = _PAGE.format(escape(printable(path)), base_style(), escape(printable(content)))
    return content.encode("utf-8", "replace") if isinstance(content, str) else content


@dataclass(slots=True)
class _File:
    """A file on its way: `new` is its name until it is whole, `old` another name of the file that it replaces."""

    path: str
    target: str
    new: str
    mode: int | None = None
    old: str = ""
    renamed: bool = False

    @classmethod
    def beside(cls, path: str) -> "_File":
        target = os.path.realpath(path)
        if os.path.islink(target):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if os.path.isdir(target):
            raise TilefoldError(Code.CLI_WRITE, f"{path}: is a directory", "name a file")
        if os.path.exists(path) and not (os.path.isfile(target) and os.path.samefile(path, target)):
            return cls(path, path, "")  # a device or a pipe, which has no parts to leave behind
        mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else None
        return cls(path, target, _name_beside(target), mode)

    def write(self, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL if self.new else os.O_WRONLY
        with open(os.open(self.new or self.target, flags | getattr(os, "O_BINARY", 0), 0o666), "wb") as file:
            file.write(data)
        if self.mode is not None:
            os.chmod(self.new, self.mode)

    def replace(self, *, alone: bool) -> None:
        """Gives the file its name. Unless it is `alone`, the file that had it can come back."""
        if not self.new:
            return
        if self.mode is not None and not alone:
            self.old = _name_beside(self.target)
            try:
                os.link(self.target, self.old)
            except OSError:  # of a file system without links
                shutil.copy2(self.target, self.old)
        self.renamed = True
        os.replace(self.new, self.target)

    def undo(self) -> None:
        with suppress(OSError):
            if self.new and os.path.lexists(self.new):
                os.unlink(self.new)
            elif self.renamed and self.old:
                os.replace(self.old, self.target)
            elif self.renamed and self.mode is None:
                os.unlink(self.target)
        self.forget()

    def forget(self) -> None:
        """Removes the other name of the file that was replaced."""
        if self.old:
            with suppress(OSError):
                os.unlink(self.old)


def _name_beside(path: str) -> str:
    """A name in the folder of a file that no other file has; short, since a system limits the length of names."""
    return os.path.join(os.path.dirname(path), f".tilefold-{token_hex(8)}")


def write_picture(picture: "Picture", path: str, *, png: bool) -> None:
    """Writes a picture, as PNG or SVG. Raises TilefoldError as `write_output`, and (E4004) for PNG without Pillow."""
    if png:
        from tilefold.driver.png import draw_png

        write_output(draw_png(picture), path)
    else:
        write_output(Markup(picture.svg()), path)


@contextmanager
def progress(title: str, total: int) -> Generator[Callable[[], object], None, None]:
    """Within it, a bar on the terminal, if there is one; each call of its value is one step of `total`."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)
