# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text of others in messages: the text of a file, its name or an argument may neither steer the terminal nor look like
a message of tilefold.
"""

import re
import unicodedata

_MAX_SHOWN = 200
_MAX_BITS = 128
_UNPRINTABLE = re.compile(r"[^\n\t\x20-\x7e]")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""The categories of Unicode whose characters have no form of their own, or change the direction or the lines of others
(Unicode Standard, chapter 4.5).
"""


def printable(text: str) -> str:
    """The text with an escape such as `\\x1b` or `\\u202e` for each character that a terminal does not show as itself:
    the control characters C0 and C1, DEL, marks of direction, line separators and lone surrogates. Tabs and ends of
    lines stay; `printable_line` is for text within a line.
    """
    return text if text.isascii() and text.isprintable() else _UNPRINTABLE.sub(_escape, text)


def printable_line(text: str) -> str:
    """The text as `printable` gives it, with escapes for ends of lines and tabs, too."""
    return text if text.isascii() and text.isprintable() else printable(text).replace("\n", "\\n").replace("\t", "\\t")


def message_text(text: str) -> str:
    """The text of a message, whose further lines are indented, so that none of them looks like a message of its own."""
    return re.sub(r"\n(?=\S)", "\n    ", printable(text))


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def shown(value: object) -> str:
    """A value in a message, on one line and not long: its `repr`, or of a very large integer its size."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # of a foreign class, or of an integer within that has too many digits
        return f"a {type(value).__name__}"
    return printable_line(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")
