# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A TextMate grammar of `.cute` files, which VS Code and others read."""

import json
from typing import Any

from tilefold.tools.editing.highlighting import WORDS, Word


def grammar() -> str:
    """The grammar as JSON text."""
    made = {
        "name": "tilefold",
        "scopeName": "source.cute",
        "fileTypes": ["cute"],
        "patterns": [_pattern(word) for word in WORDS],
    }
    return json.dumps(made, indent=2) + "\n"


def _pattern(word: Word) -> dict[str, Any]:
    pattern: dict[str, Any] = {"match": word.pattern, "name": f"{word.scope}.cute"}
    if word.within:
        pattern["captures"] = {"0": {"patterns": [_pattern(inner) for inner in word.within]}}
    return pattern
