# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parser's errors in words for a user: the expected and the actual token, its place, and a hint.

xDSL's parser has words for those who write a dialect, and names the token at which it stopped. That is on the next line
where the end of a line is missing, and at the end of the file where a brace is. A test holds the tables below to the
messages of the xDSL that is installed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from ...base.element_types import BY_CXX
from ...base.errors import Code
from .rule_errors import broken_rule, first_match
from .source import Source

_WANTED: tuple[tuple[str, str], ...] = (
    (r"operand expected|Expected SSA value tuple size", "a value such as %a"),
    (r"Expected result SSA value!", "the name of a result, such as %a"),
    (r"Expected '=' after operation result list", "'=' after the names of the results"),
    (r"Expected block argument!|block argument expected", "an argument of a block, such as %a: i32"),
    (r"block-id expected|successor expected", "the name of a block, such as ^end"),
    (r"Expected region!", "'{{'"),
    (r"type expected|function type expected|Expected shape type\.", "a type"),
    (r"Expected memref, vector or tensor type of .*", "a type with elements that are numbers"),
    (r"Expected vector element type", "the type of the elements"),
    (r"attribute expected|[Ee]xpected attribute name\.?", "an attribute"),
    (r"Expected bare-id or string-literal here as part of attribute entry!", "the name of an attribute"),
    (r"expect symbol name", "a name such as @kernel"),
    (r"expect symbol visibility keyword", "'public', 'private' or 'nested'"),
    (r"string literal expected(?P<rest>.*)|bytes literal expected.*", "text in quotes"),
    (r"identifier expected(?P<rest>.*)|identifier or string literal expected.*|Expected identifier", "a name"),
    (r"Expected integer (?:literal|value)(?: after '-')?(?P<rest>.*)|Expected an integer literal or `\?`.*",
     "an integer"),
    (r"Expected non-negative integer values|Expected integer as SSA value tuple index",
     "an integer that is not negative"),
    (r"integer.* or float literal expected(?P<rest>.*)|Expected (?:either a float, integer|integer or float|float).*",
     "a number"),
    (r"Expected either integer literal or '\?' in shape dimension.*", "an extent: an integer or '?'"),
    (r"Expected 'x' in shape delimiter, got .*", "'x' between the extents"),
    (r"Expected boolean literal(?P<rest>.*)", "'true' or 'false'"),
    (r"Expected location alias\.|Unexpected location syntax\.|Unsupported location type\.",
     "a location, such as loc(\"file\":1:1)"),
    (r"Expected a (?:dialect name|resource type key)", "a name"),
    (r"Expected a MemRef layout attribute", "the layout of a memref"),
    (r"Expected end of strided attribute or ',' for offset\.", "'>' or ','"),
    (r"Expected primary expression", "an affine expression"),
    (r"Expected closing parenthesis", "')'"),
    (r"operation name expected|Could not parse entire input!", "an operation"),
    (r" in block definition", "an operation or '}}'"),
    (r"builtin\.module operation expected", "one module"),
    (r"@ identifier expected to start with .*|Unexpected end of file after @\.", "a name after '@'"),
    (r"Expected three consecutive '\.' for an ellipsis", "'...'"),
    (r"Expected (?P<it>one of .*?)(?:, got .*)?", "{it}"),
    (r"[Ee]xpected (?P<it>[`'].+?[`'](?:, or [`'].+?[`'])?)(?P<rest>(?: (?:in|after) [^,]*)?)\.?", "{it}"),
    (r"(?P<it>'[^']+') expected(?P<rest>.*)", "{it}"),
)  # fmt: skip
"""Messages about missing tokens, and words for these; `rest` says where."""

_SAID: tuple[tuple[str, str, str], ...] = (
    (r"Expected suffix identifier after .*", "unexpected '{found}'", ""),
    (r"Unexpected character: (?P<it>.*)", "unexpected character '{found}'", ""),
    (r"SSA value (?P<it>%.*) is already defined", "{it} is defined twice", "give one of the two another name"),
    (r"values used but not defined: .*", "values are used but never defined", ""),
    (r"SSA value used before assignment", "a value is used before it is defined", ""),
    (r"operand is used with type (?P<it>.*), but has been previously used or defined with type (?P<other>.*)",
     "the value is of type {other} elsewhere, not {it}", "name the same type here, or convert the value"),
    (r"Result (?P<it>.*) is defined with type (?P<other>.*), but used with type (?P<rest>.*)",
     "the result {it} is of type {other}, and used as {rest}", "name the other type"),
    (r"Operation has (?P<it>\d+) results, but was given (?P<other>\d+) to bind\.",
     "the operation has {it} results, not {other}", ""),
    (r"expected (?P<it>\d+) operand types but had (?P<other>\d+)",
     "{it} operands have {other} types", "give the type of each operand"),
    (r"SSA value (?:tuple )?(?P<it>%.*) is referenced with .*|SSA value tuple index out of bounds.*|Tuple is of size.*",
     "the value has fewer results than that", ""),
    (r"undefined symbol alias '(?P<it>.*)'", "unknown alias {it}", "declare it on a separate line: {it} = ..."),
    (r"re-declaration of (?P<it>alias|block) '(?P<other>.*)'", "the {it} {other} is declared twice", ""),
    (r"region ends with missing block declarations for block\(s\) (?P<it>.*)", "unknown block ^{it}", ""),
    (r"invalid block name in region with named arguments",
     "the first block takes the arguments and cannot be named", ""),
    (r"Duplicate key '(?P<it>.*)' in .*", "'{it}' is given twice", ""),
    (r"Attribute dictionary entry '(?P<it>.*)' is already passed .*", "'{it}' is given twice",
     "leave it out of the braces"),
    (r"attributes (?P<it>.*) are defined in other parts .*", "{it} is given twice", "leave it out of the braces"),
    (r"'(?P<it>.*)' is not registered", "unknown type or attribute '{it}'", ""),
    (r"Operation (?P<it>\S*) is not registered", "unknown operation '{it}'", ""),
    (r"dialect (?P<it>\S*) .*", "unknown dialect '{it}'", ""),
    (r"Builtin (?P<it>.*) is not supported yet!", "{it} is not supported", ""),
    (r"Boolean values are only allowed for i1 types", "'true' and 'false' are of type i1",
     "write : i1, or leave out the type"),
    (r"Floating point value is not valid for integer type\.",
     "a number with a point is not an integer", "write 1, not 1.0"),
    (r"Invalid type given for integer or float attribute\.",
     "the type of a number must be an integer or a floating-point type", ""),
    (r"(?:Dense|opaque) attribute must be typed!|dense resource should have .*",
     "the type is missing, such as : tensor<4xf32>", ""),
    (r"Dense literal attribute should have a static shape\.|Unexpected dynamic dimension!",
     "the extents must be known here", ""),
    (r"Shape mismatch in dense literal\. Expected (?P<it>.*) (?:elements"
     r"|shape) from the type, but got (?P<other>.*) \w+\.",
     "the type has {it} elements, the value {other}", ""),
    (r"Expected at least one element .*|Tensor literal has inconsistent ranks .*|Hex string in denseAttr is invalid",
     "the elements of a tensor are written [[1, 2], [3, 4]]", ""),
    (r"Complex .*|No conversion from complex to float", "a complex number is written (1.0, 2.0)", ""),
    (r"dense array element type must be .*|either an int or float must be present",
     "an array holds integers or floating-point numbers, such as array<i64: 1, 2>", ""),
    (r"Unranked tensors don't have an encoding!", "a tensor without extents cannot have an encoding", ""),
    (r"Opaque expects 2 string literal parameters!", "'opaque' takes two texts in quotes", ""),
    (r"Unbalanced '(?P<it>.*)' in dialect symbol body"
     r"|Unexpected closing parenthesis (?P<other>\S*) in attribute body!.*",
     "a bracket closes nothing", ""),
    (r"Unexpected end of file .*", "the text ends within brackets", ""),
    (r"Unterminated string literal .*|End of file reached before closing string literal\.|Invalid string literal!",
     "the string literal does not end on its line", ""),
    (r"Incomplete escape sequence .*|Invalid escape sequence.*", "unknown escape in a string literal", ""),
    (r"Identifier not in space (?P<it>.*)", "unknown dimension {it}", ""),
    (r"Unknown binary operator (?P<it>.*)", "unknown operator {it}", ""),
    (r"got an .*", "the resources of the file cannot be read", ""),
    (r"builtin dialect should have .*", "resources are not supported", ""),
)  # fmt: skip
"""Other messages, with their meaning for a user, and hints."""

_BEHIND = ("Floating point value", "Boolean values", "Invalid type given")
"""Beginnings of messages about the text before the place that they name."""

_INSTEAD = {
    "/": "a comment begins with //",
    "--": "a comment begins with //",
    ";": "operations do not end in ';'",
    "'": 'text stands in "quotes"',
    **{name: f"'{name}' is {element.mlir} here" for name, element in BY_CXX.items()},
}
"""Hints for tokens of C and Python."""

_MARKS = {
    "a value": "%",
    "the name of a result": "%",
    "an argument": "%",
    "a type": "!",
    "an attribute": "#@",
    "a name": "@",
}
"""The first character of a name, by the kind of thing that is missing."""

_LONG = 200  # of a name, or of the words before a brace
_MANY = 1000  # names to choose from
_LONGEST = 4096  # message that the tables are searched for, and most braces that are paired

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[%!@#^]?[\w.$-]+|->|::|.', re.DOTALL)
_SKIPPED = re.compile(r"(?:\s+|//[^\n]*)*")
_PIECES = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|[{}]')


@dataclass(frozen=True, slots=True)
class Explained:
    """A message in words for a user, the offsets of the marked text, its code and a hint."""

    message: str
    start: int
    end: int
    code: Code
    hint: str


def explain(message: str, start: int, end: int, source: Source) -> Explained:
    """A message of the parser about a stretch of the source's expanded text, in words for a user."""
    text = source.expanded
    if len(message) > _LONGEST:
        return Explained(f"{_own_style(message[:_LONG])}...", start, end, Code.IR_SYNTAX, "")
    if (match := first_match(_WANTED, message)) is not None:
        groups, (wanted,) = match
        missing = wanted.format(**groups).replace("`", "'") + groups.get("rest", "").rstrip("!. ")
        return _missing_error(missing, start, end, source)
    if (match := first_match(_SAID, message)) is not None:
        groups, (wording, hint) = match
        groups = {"found": text[start : start + 1], **groups}
        words = wording.format(**groups)
        if message.startswith(("undefined symbol alias", "region ends")):
            return _unknown_alias(words, groups["it"], hint.format(**groups), start, text)
        if message.startswith(_BEHIND):
            start = _find_end_of_previous(text, start) - 1
            start = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
        return Explained(words, start, end, Code.IR_SYNTAX, _hint(source, start) or hint.format(**groups))
    wording, hint = broken_rule(message)
    return Explained(_own_style(wording), start, end, Code.IR_SYNTAX, hint or _hint(source, start))


def is_known(message: str) -> bool:
    """Whether the tables have words for a message."""
    return first_match((*_WANTED, *_SAID), message) is not None


def missing_operand(start: int, source: Source) -> Explained | None:
    """Whether the undefined value at an offset begins the next operation, so an operand is missing before it."""
    text = source.expanded
    begins_line = not text[text.rfind("\n", 0, start) + 1 : start].strip()
    defines = re.compile(r"%[\w$.-]+(?:\s*,\s*%[\w$.-]+)*\s*=(?!=)").match(text, start)
    return _missing_error("a value such as %a", start, start + 1, source) if begins_line and defines else None


def hint_unclosed(source: Source) -> str:
    """A hint about braces that do not pair, by the columns of the lines that they are on; empty where all do."""
    text = source.expanded
    if text.count("{") + text.count("}") > _LONGEST:
        return ""
    opened: list[int] = []
    wrong: list[str] = []
    for at, brace in _braces(text):
        if brace == "{":
            opened.append(at)
        elif not opened:
            wrong.append(f"the '}}' of line {source.locate(at)[0]} closes nothing")
        else:
            before = opened.pop()
            (margin, alone), (wanted, _) = _indent(text, at), _indent(text, before)
            if alone and margin < wanted and not wrong:
                wrong.append(f"the '{{' of line {source.locate(before)[0]} seems not to be closed")
    if opened and not wrong:
        wrong.append(f"the '{{' of line {source.locate(opened[-1])[0]} is not closed")
    balanced = sum(1 if brace == "{" else -1 for _, brace in _braces(text)) == 0
    return "" if balanced or not wrong else wrong[0]


def _missing_error(missing: str, start: int, end: int, source: Source) -> Explained:
    """The error for `missing`, expected before the token at `start`, or at the end of a line before that token's."""
    text = source.expanded
    last = _find_end_of_previous(text, start)
    if "\n" in text[last:start] and missing != "an operation" and not missing.startswith("an operation or"):
        return Explained(
            f"expected {missing}, found the end of the line", last, last + 1, Code.IR_SYNTAX, hint_unclosed(source)
        )
    token = _TOKEN.match(text, start)
    if token is None:
        return Explained(
            f"expected {missing}, found the end of the text", last, last + 1, Code.IR_SYNTAX, hint_unclosed(source)
        )
    message = f"expected {missing}, found '{token[0][:40]}'"
    return Explained(message, start, end, Code.IR_SYNTAX, _hint(source, start, missing))


def _hint(source: Source, start: int, missing: str = "") -> str:
    """A hint, where the text shows the intention."""
    text = source.expanded
    token = _TOKEN.match(text, start)
    word = token[0] if token else ""
    if word.startswith("#") and "." not in word:
        return "a comment begins with //"
    if word in _INSTEAD:
        return _INSTEAD[word]
    if missing and re.fullmatch(r"[A-Za-z_][\w$.-]*", word):
        mark = next((mark for words, mark in _MARKS.items() if missing.startswith(words)), "")
        names = re.findall(rf"[{mark}]{re.escape(word)}(?![\w$.-])", text) if mark else []
        return did_you_mean(names[:1]) or ("values begin with %" if mark == "%" else "")
    if word.isdecimal() and missing.startswith(("a value", "an operation")):
        return f"a number becomes a value by %c = arith.constant {word[:20]} : index"
    return hint_unclosed(source)


def _unknown_alias(words: str, name: str, hint: str, start: int, text: str) -> Explained:
    at = text.rfind(name, 0, start + len(name))
    known = re.findall(rf"^[ \t]*({re.escape(name[0])}[\w$.-]+)[ \t]*=", text, re.MULTILINE)
    close = close_names(name, known)
    at = start if at < 0 else at
    return Explained(words, at, at + len(name), Code.IR_SYNTAX, did_you_mean(close) or hint)


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Names much like this one; none among very many or for a very long one, since comparing takes long."""
    names = {other for other in known if len(other) <= _LONG} - {name}
    return get_close_matches(name, names, n=3, cutoff=0.6) if len(names) <= _MANY and len(name) <= _LONG else []


def did_you_mean(close: Iterable[str]) -> str:
    """The hint that offers names; empty without any."""
    names = " or ".join(close)
    return f"did you mean {names}?" if names else ""


def _own_style(message: str) -> str:
    """A message in the style of ours: no capital at the start, no stop at the end."""
    message = message.rstrip("!. ")
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]


def _find_end_of_previous(text: str, start: int) -> int:
    """The offset after the token before `start`, without the spaces and comments between."""
    at = text.rfind("\n", 0, start) + 1
    if (skipped := _SKIPPED.match(text, at, start)) is None or skipped.end() < start:
        return start  # something stands before it on its line
    while at > 0:
        line_at = text.rfind("\n", 0, at - 1) + 1
        line = text[line_at : at - 1]
        comment = next((piece.start() for piece in _PIECES.finditer(line) if piece[0].startswith("//")), len(line))
        if line[:comment].strip():
            return line_at + len(line[:comment].rstrip())
        at = line_at
    return start


def _braces(text: str) -> Iterator[tuple[int, str]]:
    return ((piece.start(), piece[0]) for piece in _PIECES.finditer(text) if piece[0] in "{}")


def _indent(text: str, at: int) -> tuple[int, bool]:
    """How far the line of an offset is indented, and whether nothing else stands before the offset."""
    begin = text.rfind("\n", max(0, at - _LONG), at) + 1 or max(0, at - _LONG)
    before = text[begin:at]
    return len(before) - len(before.lstrip(" \t")), not before.strip()
