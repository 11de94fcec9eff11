# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch as one function, written for one prepared kernel and arguments of the types that it is for.

The function reads from each argument all that the kernel's type depends on and compares it with its earlier value. If
all is equal, it writes the addresses and numbers into the memory of a frame and calls the driver; else it has done
nothing, and says so. Nothing is remembered of an object, since tensors may change in place.

Like `dataclasses`, this writes the text of a function, because a loop over the arguments would take longer than all
the rest.
"""

import sys
from collections.abc import Callable
from functools import cache
from struct import error as StructError  # noqa: N812  # it is an exception
from types import CodeType
from typing import Any

from ..options import LaunchAttributes
from ..streams import current_stream_of, handle_of
from .comparison import Comparison, Rules
from .prepared import Prepared

Args = tuple[Any, ...]
Launch = Callable[[Args, Any, Any, Any, LaunchAttributes], Any]
"""Launches on arguments, with a block, a grid, a stream and attributes, or returns NotImplemented."""


def write(rules: Rules, args: Args, block: Any, prepared: Prepared) -> Launch | None:
    """The launch of a prepared kernel for arguments like these. None where they have what cannot be compared at a
    launch.
    """
    if len(args) != len(rules.names):
        return None
    text = Comparison(rules, block, prepared.kernel.artifact.parameters)
    if not all([text.add(number, value) for number, value in enumerate(args)]):
        return None
    text.finish()
    scope = text.scope
    scope.update(
        prepared=prepared, kernel=prepared.kernel, take=prepared.take, give=prepared.give, pack=prepared.pack,
        frame_of=prepared.frame, handle_of=handle_of, StructError=StructError,
    )  # fmt: skip
    if text.has_torch:
        scope["raw_stream"] = current_stream_of(sys.modules["torch"])
    lines = [
        "def launch(args, block, grid, stream, attributes):",
        "    try:",
        f"        {', '.join(f'a{i}' for i in range(len(args)))}, = args" if args else "        () = args",
        *(f"        {line}" for line in text.lines),
        "    except Exception:",  # of an argument that is something else, or is refused: `resolve` says so
        "        return NotImplemented",
        "    try:",
        "        frame = take()",
        "    except IndexError:",
        "        frame = frame_of()",
        "    try:",
        f"        pack({', '.join(['frame.memory', '0', *text.values])})",
        "    except (StructError, OverflowError, TypeError):",
        "        return NotImplemented",
        *_maps(prepared, text.values, scope),
        "    if attributes is not frame.attributes:",
        "        frame.attach(attributes)",
        "    if grid != frame.grid:",
        "        frame.place(kernel, grid)",
        "    if stream is None:",
        f"        stream = {f'raw_stream({prepared.ordinal})' if text.has_torch else '0'}",
        "    elif stream.__class__ is not int:",
        "        stream = handle_of(stream)",
        "    if stream != frame.stream:",
        "        frame.queue(stream)",
        "    status = frame.call()",
        "    if status:",
        "        prepared.recover(frame, status)",
        "    give(frame)",
    ]
    exec(_compiled("\n".join(lines)), scope)
    return scope["launch"]


def _maps(prepared: Prepared, values: list[str], scope: dict[str, Any]) -> list[str]:
    """The lines that make the tensor maps anew where a value has changed on which they depend."""
    if prepared.encoder is None:
        return []
    scope["encoded"] = prepared.encoder.encoded
    return [
        f"    mapped = ({', '.join(values[place] for place in prepared.encoder.places)},)",
        "    if mapped != frame.mapped:",
        "        frame.map(mapped, encoded(mapped))",
    ]


@cache
def _compiled(text: str) -> CodeType:
    """The code of a text; many kernels have the same."""
    return compile(text, "<launch of a kernel>", "exec")
