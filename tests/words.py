# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words that no message of tilefold's has: those of Python, NumPy and xDSL, which a user of tilefold need not know."""

import re

_FOREIGN = re.compile(
    r"<class '|object has no attribute|NoneType|not supported between instances|unhashable|Traceback"
    r"|(?:required|too many|takes \d+) positional|missing \d* ?(?:a )?required|unexpected keyword"
    r"|not (?:subscriptable|iterable|callable)|bytes-like|not enough values|too many values"
    r"|(?:list|tuple|string) index out of range|out of bounds for axis|too many indices|C (?:int|long|ssize_t)\b"
    r"|\bPython\b|\bdtype\b|\bDType\b|[nN]um[pP]y|\bbool_\b|\bufunc\b|\bndarray\b|\bdict\b|\bstr\b"
    r"|broadcast together|remapped|\[Errno|^\(\d+, '"
)


def foreign(message: str) -> str:
    """The words of Python or of a library that a message has; empty for a message in words of its own."""
    found = _FOREIGN.search(message)
    return found[0] if found else ""
