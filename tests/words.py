# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words that no message of tilefold's has: those of Python, NumPy and xDSL, which a user of tilefold need not know."""

import ast
import re
from functools import cache
from pathlib import Path

import xdsl.parser
import xdsl.utils.mlir_lexer

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
    found = _FOREIGN.search(message) or _xdsls().fullmatch(message)
    return found[0] if found else ""


@cache
def parser_messages() -> list[str]:
    """What the parser and the lexer of the installed xDSL say, with something in the place of each value."""
    return sorted({template.replace("{}", "7") for template in _templates() if template not in _TEXTS})


_TEXTS = ("7", "got an error when parsing a resource: {}")  # constants that are no messages, and one of binary data


@cache
def _xdsls() -> re.Pattern[str]:
    patterns = (".*".join(map(re.escape, each.split("{}"))) for each in _templates() if len(each.replace("{}", "")) > 7)
    return re.compile("|".join(patterns), re.DOTALL)


@cache
def _templates() -> frozenset[str]:
    files = [Path(str(xdsl.utils.mlir_lexer.__file__)), *Path(str(xdsl.parser.__file__)).parent.glob("*.py")]
    calls = [node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    found: set[str] = set()
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in ("raise_error", "expect", "ParseError"):
            texts = [_template(argument) for argument in (*call.args, *(keyword.value for keyword in call.keywords))]
            found.update(text for text in texts if " " in text)
    return frozenset(found)


def _template(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(_template(part) for part in node.values)
        case ast.BinOp(op=ast.Add()):
            return _template(node.left) + _template(node.right)
        case _:
            return "{}"
