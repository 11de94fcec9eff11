# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded cases: how they are stored, read and written."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.layout.algebra.integers import ScaledBasis, Unknown
from tilefold.layout.algebra.scalars import RunTimeInt
from tilefold.layout.text.layouts import parse_any, to_cxx, to_text

Tuple: TypeAlias = tuple[Any, ...]

_STATIC_MARK = re.compile(r"(?:^|[(:,;<])_[0-9]")
_RUN_TIME = re.compile(r"(?<![_@0-9<])(?<!_-)-?[0-9]+")


@dataclass(frozen=True)
class Case:
    """One recorded case. `dynamic` cases mark static integers with an underscore; others are run-time
    integers.
    """

    op: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any] | None
    trusted: bool
    dynamic: bool


def load(file: Path) -> list[Case]:
    """The cases of one file. `outputs` is None where CuTe refuses the input."""
    entries: list[dict[str, Any]] = json.loads(file.read_text())
    # What ends with `_typed` repeats another input with the marks, in files that have none elsewhere.
    inputs = [item for e in entries for item in e["inputs"].items() if not item[0].endswith("_typed")]
    texts = [x for _, x in inputs if isinstance(x, str)]
    dynamic = any(_STATIC_MARK.search(x) for x in texts)
    return [
        Case(
            op=e["op"],
            id=e["id"],
            inputs=e["inputs"],
            outputs=None if "error" in e or "error" in e["outputs"] else e["outputs"],
            trusted=e.get("functional", True) is not False and "note" not in e,
            dynamic=dynamic,
        )
        for e in entries
    ]


def parse(text: Any, dynamic: bool) -> Any:
    """A recorded value; in a dynamic case, integers without underscore become `RunTimeInt`."""
    if not isinstance(text, str):
        return RunTimeInt(text) if dynamic else text
    if not dynamic:
        return parse_any(text)
    values = iter([int(m[0]) for m in _RUN_TIME.finditer(text)])
    return map_leaves(
        lambda x: RunTimeInt(next(values)) if isinstance(x, Unknown) else x,
        parse_any(_RUN_TIME.sub("?", text)),
    )


def map_leaves(f: Callable[[Any], Any], x: Any) -> Any:
    """`x`, a tuple, layout, composed layout or basis, with `f` applied to the integers, in the order of the
    text.
    """
    if isinstance(x, tuple):
        return tuple([map_leaves(f, y) for y in cast(Tuple, x)])
    if isinstance(x, Layout):
        return Layout(map_leaves(f, x.shape), map_leaves(f, x.stride))
    if isinstance(x, ComposedLayout):
        return ComposedLayout(map_leaves(f, x.inner), map_leaves(f, x.offset), map_leaves(f, x.outer))
    return ScaledBasis(f(x.value), x.path) if isinstance(x, ScaledBasis) else f(x)


def show(x: Any, dynamic: bool) -> str:
    """`x` as the recorded cases write it."""
    text = to_cxx(x) if dynamic else to_text(x).replace("S<", "Sw<")
    return text.replace("[", "<").replace("]", ">")
