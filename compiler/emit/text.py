# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strings inside LLVM IR text. Everything but plain characters is escaped, so that no string can end its quotes."""

import re

_SPECIAL = re.compile(rb"[^A-Za-z0-9_.,:;/ =()\[\]%+*#-]")


def escape(data: bytes) -> str:
    r"""The inside of an LLVM string: letters, digits and harmless punctuation as they are, other bytes as `\xx`."""
    return _SPECIAL.sub(lambda match: b"\\%02X" % match[0][0], data).decode("ascii")


def quote(text: str) -> str:
    """A quoted LLVM string of the text's UTF-8 bytes."""
    return f'"{escape(text.encode("utf-8", "replace"))}"'


def c_string(text: str) -> tuple[str, int]:
    """The text as an LLVM character array that ends with a zero byte, and the array's length in bytes."""
    data = text.encode("utf-8", "replace") + b"\0"
    return f'c"{escape(data)}"', len(data)
