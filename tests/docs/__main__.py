# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.docs [PAGE...]`: runs the console sessions of the pages, and writes what they print into them, and
the pictures that they make.

Output that matches is left alone. Output with `...` in it is reported and not rewritten, since only its author
knows what to leave out.
"""

import os
import sys
import tempfile
from pathlib import Path

from .console import Command, commands, matches, run
from .pages import Block, blocks, pages
from .sessions import pictures, prepare


def update(page: Path) -> bool:
    """Rewrites the sessions of a page; whether all of them are right now."""
    text = page.read_text()
    right = True
    replacements: list[tuple[Block, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, text)
        for block in blocks(text):
            if block.language == "console":
                parts: list[str] = []
                for command, printed in run(commands(block.text, block.line), folder):
                    right &= _report(page, command, printed)
                    keep = matches(command.expected, printed) or "..." in command.expected
                    parts.append(f"$ {command.text}\n{command.expected if keep else _tidy(printed)}")
                replacements.append((block, "".join(parts)))
        for picture in pictures(page, text):
            picture.parent.mkdir(exist_ok=True)
            picture.write_bytes((folder / picture.name).read_bytes())
    for block, new in reversed(replacements):
        text = text[: block.start] + new + text[block.end :]
    page.write_text(text)
    return right


def _report(page: Path, command: Command, printed: str) -> bool:
    if matches(command.expected, printed):
        return True
    if "..." not in command.expected:
        print(f"{page.name}:{command.line}: {command.text}: updated")
        return True
    print(f"{page.name}:{command.line}: {command.text} prints:\n{printed}")
    return False


def _tidy(printed: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in printed.rstrip("\n").splitlines())


if __name__ == "__main__":
    os.environ["TILEFOLD_SIM_PROGRESS"] = "0"  # output that depends on the machine
    chosen = [Path(argument) for argument in sys.argv[1:]] or pages()
    results = [update(page) for page in chosen]
    sys.exit(0 if all(results) else 1)
