# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages and hints for operations that break one of xDSL's general rules."""

import re
from collections.abc import Iterable

_ENDS = {
    "tile.kernel": "return",
    "ptx.entry": "ptx.ret",
    "gpu.func": "gpu.return",
    "func.func": "return",
    "scf.for": "scf.yield",
    "scf.if": "scf.yield",
    "tile.map": "tile.yield",
}

_RULES: tuple[tuple[str, str, str], ...] = (
    (r"Operation \S+ terminates block in .* region but is not a terminator",
     "the body of '{parent}' ends here, without its last operation", "end it with '{end}'"),
    (r"Operation (?P<it>\S+) contains empty block .*", "the body of '{it}' is empty",
     "write its last operation at least"),
    (r"'(?P<it>\S+)' contains empty block instead of at least terminating with (?P<other>\S+)",
     "the body of '{it}' is empty", "end it with '{other}'"),
    (r"'(?P<it>\S+)' terminates with operation (?P<rest>\S+) instead of (?P<other>\S+)",
     "the body of '{it}' ends with '{rest}'", "end it with '{other}'"),
    (r"'\S+' must be the last operation in its parent block", "nothing can follow in the same block", ""),
    (r"'\S+' expects (?:parent|ancestor) op (?:to be one of )?(?P<it>.*)", "it may stand only within {it}", ""),
    (r"(?P<it>operand|result|attribute|property|region|Region) '?(?P<other>\S+?)'?(?: at position \d+)?"
     r"(?: expected a single block| entry arguments)? (?:does|do) not verify:\s*(?P<inner>.*)",
     "{it} '{other}': {inner}", ""),
    (r"attribute (?P<it>.*) expected from variable '\w+', but got (?P<other>.*)",
     "the types differ: {it} and {other}", ""),
    (r"attributes (?P<it>.*) expected from range variable '\w+', but got (?P<other>.*)",
     "the types differ: {it} and {other}", ""),
    (r"[Ee]xpected attribute (?P<it>.*) but got (?P<other>.*)", "expected {it}, not {other}", ""),
    (r"(?P<it>.*) should be of (?:base attribute|attribute subclassing) `?(?P<other>[^`]*)`?",
     "expected {other}, not {it}", ""),
    (r"[Uu]nexpected attribute (?P<it>.*)", "the operation takes no {it}", ""),
    (r"(?P<it>property|attribute) '(?P<other>.*)' expected in operation '\S+'", "{other} is missing", ""),
    (r"property '(?P<it>.*)' is not defined by the operation.*", "unknown property '{it}'", ""),
    (r"[Uu]nknown comparison mnemonic: (?P<it>.*)", "unknown comparison '{it}'",
     "integers compare by eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge"),
    (r"Redefinition of symbol \"(?P<it>.*)\"", "@{it} is defined twice", "give one of the two another name"),
    (r"'(?P<it>@.*)' could not be found in symbol table", "undefined symbol {it}", ""),
    (r"Destination bit-width must be (?P<it>\w+) than the input bit-width", "the new type must be {it} in bits", ""),
    (r"Operation using value defined out of its IsolatedFromAbove parent.*",
     "a kernel or a function cannot use a value from outside", "pass it as an argument"),
    (r"The following constraints were not satisfied:\s*(?P<it>.*)", "none of these holds: {it}", ""),
)  # fmt: skip
"""Messages of xDSL about broken rules, with their meaning and a hint. `parent` is the enclosing operation."""


def broken_rule(message: str, parent: str = "") -> tuple[str, str]:
    """The words for a broken rule, and a hint, empty without any."""
    message = " ".join(message.split())
    if (match := first_match(_RULES, message)) is None:
        return message, ""
    groups, (wording, hint) = match
    groups |= {"parent": parent, "end": _ENDS.get(parent, "its terminator")}
    if "inner" in groups:
        groups["inner"], hint = broken_rule(groups["inner"])
    return wording.format(**groups), hint.format(**groups)


def first_match(table: Iterable[tuple[str, ...]], message: str) -> tuple[dict[str, str], list[str]] | None:
    """The groups of the first pattern of a table that matches a message, and the words that follow the pattern there;
    None if none does.
    """
    for pattern, *words in table:
        if (match := re.fullmatch(pattern, message, re.DOTALL)) is not None:
            return match.groupdict(""), words
    return None
