# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A page for each error code: its cause, an example that produces it, and the cure.

The pages are Markdown files beside this module, one for each family of codes. Below the heading of a code stand the
cause, a fenced block that produces the error, the cure, and a fenced block without the error. Blocks are `console`
(command lines after `$`), `cute` (a file `example.cute`, whose first line names the command if it is not
`tilefold opt`), `python` (a script), and `text`, which only describes. A `diff` changes lines of the example.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..errors import Code

_PAGE = re.compile(r"^## (E\d{4})\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sample:
    """A fenced block: its kind, such as `cute`, and its text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The page of a code; `cured` is None if no input could be shown that avoids the error."""

    cause: str
    example: Sample
    cure: str
    cured: Sample | None


@cache
def _family(digits: str) -> dict[str, Explanation]:
    text = (files(__name__) / f"{digits}.md").read_text(encoding="utf-8")
    return {match[1]: _explanation(match[2]) for match in _PAGE.finditer(text)}


def _explanation(page: str) -> Explanation:
    cause, kind, example, cure, *rest = (part.strip("\n") for part in _BLOCK.split(page))
    return Explanation(cause, Sample(kind, example), cure, Sample(rest[0], rest[1]) if rest else None)


def explanation(code: Code) -> Explanation:
    """The page of an error code."""
    return _family(code.id[:3])[code.id]
