# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Delta debugging of PTX: leaves out lines as long as the text is of interest, groups of them first."""

import time
from collections.abc import Callable

_STAYS = (".version", ".target", ".address_size", ".reg")


def reduced_ptx(
    text: str, is_interesting: Callable[[str], bool], seconds: float, progress: Callable[[str], None]
) -> str:
    """The smallest text of interest that is found in some seconds, by its lines; no line more can go, if they suffice.
    The head of a module and declarations of registers stay, and a text that is malformed is of no interest.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("//")]
    deadline = time.monotonic() + seconds
    progress(f"the program: {len(lines)} lines")
    size, changed = max(len(lines) // 2, 1), False
    while time.monotonic() < deadline:
        begin = 0
        while begin < len(lines) and time.monotonic() < deadline:
            kept = [line for line in lines[begin : begin + size] if line.lstrip().startswith(_STAYS)]
            fewer = lines[:begin] + kept + lines[begin + size :]
            if len(fewer) < len(lines) and is_interesting("\n".join(fewer) + "\n"):
                lines, changed = fewer, True
                progress(f"{len(lines)} lines")
            else:
                begin += size
        if size == 1 and not changed:
            break
        size, changed = max(size // 2, 1), False
    return "\n".join(lines) + "\n"
