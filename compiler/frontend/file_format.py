# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version of the `.cute` format that a file is in: a comment line of its own, `// cute-format 1`.

It is read before anything else of the file, parameters included, since those are part of the format. A comment cannot
get lost in a pass, and xDSL does not see it. docs/language.md lists the promises of a version.
"""

import re

from ...base.errors import Code
from .diagnostics import Diagnostic, Place, ProgramError, Severity
from .source import Source

FORMAT = 1
"""The version that is read and written. It grows where a text that was accepted gets another meaning, or none."""

HEADER = f"// cute-format {FORMAT}\n"
"""The line that saved programs begin with."""

_WORD = "cute-format"
_LINE = re.compile(rf"^[ \t]*(?P<all>//[ \t]*{_WORD}(?![\w-])(?P<version>[^\n]*?))[ \t\r]*$", re.MULTILINE)
_VERSION = re.compile(r"[ \t]+([1-9][0-9]{0,8})")


def check_format(text: str, name: str) -> None:
    """Raises ProgramError (E1007) where the text of file `name` says that it is in a version that is not read here.

    A text that says no version is taken as one of FORMAT.
    """
    if _WORD not in text:
        return
    for match in _LINE.finditer(text):
        version = _VERSION.fullmatch(match["version"])
        if version is None:
            message = "malformed version of the format"
            hint = f"the line reads: {HEADER.rstrip()}"
        elif int(version[1]) > FORMAT:
            message = f"the file is in version {version[1]} of the .cute format; this tilefold reads version {FORMAT}"
            hint = f"install a newer tilefold, or write the file with one that writes version {FORMAT}"
        else:
            continue
        start, end = match.span("all")
        source = Source(name, text, text)
        line, column = source.position(start)
        place = Place(name, line, column, column + end - start, source.line(line))
        raise ProgramError([Diagnostic(Severity.ERROR, message, place, Code.IR_FORMAT, hint)])
