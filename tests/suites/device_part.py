# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of a program in CUDA C++ that a kernel needs: without functions of the host and headers of its library.

Lines keep their numbers, so that messages are at those of the file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')", re.DOTALL)
_DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|[^\n])*\n?")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"].*$', re.MULTILINE)
_FOR_DEVICE = re.compile(r"__device__|__global__|__constant__|__shared__|__managed__|\bconstexpr\b|DEVICE")
_TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>")
_ATTRIBUTE = re.compile(
    r"\b(?:__(?:launch_bounds|align|attribute)__|alignas)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_KEPT = ("cooperative_groups.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h")
"""Headers of CUDA that NVRTC reads."""


def device_part(file: Path, kernel: str, more: str = "") -> str:
    """The declarations that a kernel of a file needs, also those in headers beside the file. `more` is a text that
    names others.
    """
    parts = list(_declarations(_with_headers(file, {file.resolve()})))
    needed, kept = {kernel, *_NAME.findall(more)}, [part.is_directive for part in parts]
    while True:
        new = [number for number, part in enumerate(parts) if not kept[number] and part.names & needed]
        for number in new:
            kept[number] = True
            needed.update(_NAME.findall(parts[number].text))
        if not new:
            return "".join(p.text if keep else "\n" * p.text.count("\n") for p, keep in zip(parts, kept, strict=True))


@dataclass(frozen=True)
class _Declaration:
    """A declaration and the names that it declares; or a directive or a brace of a namespace, which always count."""

    text: str
    names: frozenset[str] = frozenset()
    is_directive: bool = False


def _with_headers(file: Path, seen: set[Path]) -> str:
    """The text of a file and of the headers beside it, without comments."""
    text = _COMMENT.sub(lambda m: m[1] or "\n" * m[0].count("\n") or " ", file.read_text(errors="replace"))

    def included(match: re.Match[str]) -> str:
        path = (file.parent / match[2]).resolve()
        if match[1] == '"' and path.is_file():
            if path in seen:
                return ""
            seen.add(path)
            line = text.count("\n", 0, match.start()) + 2
            return f'#line 1 "{path}"\n{_with_headers(path, seen)}\n#line {line} "{file}"'
        return match[0] if match[2] in _KEPT or match[2].startswith("cooperative_groups/") else ""

    return _INCLUDE.sub(included, text)


def _declarations(text: str) -> Iterator[_Declaration]:
    """The declarations outside functions and types, in order."""
    begin = at = 0
    while at < len(text):
        if text[at] == "#" and not text[text.rfind("\n", 0, at) + 1 : at].strip():
            line = text.rfind("\n", 0, at) + 1
            directive = _DIRECTIVE.match(text, line)
            assert directive is not None
            yield _Declaration(text[begin:line] + directive[0], is_directive=True)
            begin = at = directive.end()
        elif text[at] == "{" and not re.search(r"\bnamespace\b[^;()]*$|extern\s+\"C\"\s*$", text[begin:at]):
            head, end = text[begin:at], _closed(text, at)
            is_function = _has_parameters(head) and not _is_type(head)
            if not is_function:  # a type, or a variable with initial values, which ends with a semicolon
                end = text.find(";", end) + 1 or len(text)
            yield _declaration(text[begin:end], head, is_function)
            begin = at = end
        elif text[at] in "{}":  # of a namespace
            yield _Declaration(text[begin : at + 1], is_directive=True)
            begin = at = at + 1
        elif text[at] == ";":
            statement = text[begin : at + 1]
            is_function = _has_parameters(statement) and not re.match(
                r"\s*(?:typedef|using)\b", statement.split("=")[0]
            )
            yield _declaration(statement, statement.rstrip(";"), is_function)
            begin = at = at + 1
        elif text[at] in "\"'":
            at = _behind_literal(text, at)
        else:
            at += 1


def _declaration(text: str, head: str, is_function: bool) -> _Declaration:
    """A declaration whose braces, if it has any, follow its head."""
    plain = _ATTRIBUTE.sub(" ", _TEMPLATE.sub(" ", head))
    if is_function:
        if not _FOR_DEVICE.search(head):
            return _Declaration(text)
        return _Declaration(text, frozenset(_NAME.findall(plain.split("(")[0])[-1:]))
    if _is_type(head) or re.match(r"\s*(?:typedef|using)\b", plain):
        names = _NAME.findall(plain.split("=")[0])[-1:] + _NAME.findall(text)[-1:]
        names += _NAME.findall(text) if re.match(r"\s*(?:typedef\s+)?enum\b", head) else []
        if "{" in text and (tag := re.search(r"(?:struct|class|union|enum)\s+(\w+)", plain)) is not None:
            names.append(tag[1])
        return _Declaration(text, frozenset(names))
    return _Declaration(text, frozenset(_NAME.findall(re.split(r"=|\[", plain)[0])[-1:]))


def _has_parameters(head: str) -> bool:
    """Whether a parenthesis comes before any initial value; parameters of a template may have defaults."""
    plain = _TEMPLATE.sub(" ", head)
    return "(" in plain and "=" not in plain.split("(")[0]


def _is_type(head: str) -> bool:
    plain = _ATTRIBUTE.sub("", _TEMPLATE.sub(" ", head))
    return bool(re.match(r"\s*(?:typedef\s+)?(?:struct|class|union|enum)\b[^(]*$", plain))


def _closed(text: str, at: int) -> int:
    """The end of the braces that open there."""
    depth = 0
    while at < len(text):
        if text[at] in "\"'":
            at = _behind_literal(text, at)
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if not depth:
            break
    return at


def _behind_literal(text: str, at: int) -> int:
    end = re.compile(r"(?:\\.|[^\\\n])*?" + text[at]).match(text, at + 1)
    return at + 1 if end is None else end.end()
