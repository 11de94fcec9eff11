# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch as one function, written for one prepared kernel and the types of its arguments.

The function reads from each argument all that the kernel's type depends on and compares it with its earlier value. If
all is equal, it writes the addresses and numbers into the memory of a frame and calls the driver; else it has done
nothing, and says so. Nothing is remembered of an object, since tensors may change in place.

Like `dataclasses`, this writes the text of a function, because a loop over the arguments would take longer than all
the rest.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from struct import error as StructError  # noqa: N812  # it is an exception
from types import CodeType
from typing import Any

from ..options import LaunchAttributes
from ..streams import current_stream_of, handle_of
from .comparison import Comparison, Rules
from .native_launch import native
from .prepared import Prepared

REPEATS = 100
"""The launches after which a native one is made."""

Args = tuple[Any, ...]
DirectLaunch = Callable[[Args, Any, Any, Any, LaunchAttributes], Any]
"""Launches on arguments, with a block, a grid, a stream and attributes, or returns NotImplemented."""


@dataclass(frozen=True, slots=True)
class Step:
    """A launch of a prepared kernel: the expressions of the values to pack, of grid, stream and attributes, and whether
    None is torch's current stream, and not the default one.
    """

    prepared: Prepared
    values: Sequence[str]
    of_torch: bool
    grid: str = "grid"
    stream: str = "stream"
    attributes: str = "attributes"


def write(rules: Rules, args: Args, block: object, prepared: Prepared) -> DirectLaunch | None:
    """The launch of a prepared kernel for arguments like these. None if a launch cannot compare a part of them."""
    if len(args) != len(rules.names):
        return None
    text = Comparison(rules, block)
    kinds = iter([parameter.kind for parameter in prepared.kernel.artifact.parameters])
    if not all([text.add(number, value, kinds) for number, value in enumerate(args)]):
        return None
    launch = written(text, len(args), [Step(prepared, text.values, text.has_torch)])
    return Repeated(text, prepared, launch) if len(text.arguments) == len(args) and not prepared.has_grid_of else launch


class Repeated:
    """A launch that counts itself, and is replaced by a native one when that is worth the time to make it."""

    __slots__ = ("_launch", "_left", "_prepared", "_text", "replace")

    def __init__(self, text: Comparison, prepared: Prepared, launch: DirectLaunch) -> None:
        self._text, self._prepared, self._launch = text, prepared, launch
        self._left = REPEATS
        self.replace: Callable[[DirectLaunch, DirectLaunch], None] = _keep

    def __call__(self, args: Args, block: Any, grid: Any, stream: Any, attributes: LaunchAttributes) -> Any:
        result = self._launch(args, block, grid, stream, attributes)
        if result is None:
            self._left -= 1
            if not self._left:
                self.replace(self, native(self._text, self._prepared, grid, self._launch) or self._launch)
        return result


def _keep(old: DirectLaunch, new: DirectLaunch) -> None:
    """Replaces nothing."""


def written(text: Comparison, count: int, steps: Sequence[Step]) -> DirectLaunch:
    """The launches of kernels for `count` arguments that a text compares: all are packed before the first is queued."""
    text.finish()
    scope = text.scope
    scope.update(handle_of=handle_of, StructError=StructError)
    if any(step.of_torch for step in steps):
        scope["raw_stream"] = current_stream_of(sys.modules["torch"])
    lines = [
        "def launch(args, block, grid, stream, attributes):",
        "    try:",
        f"        {', '.join(f'a{i}' for i in range(count))}, = args" if count else "        () = args",
        *(f"        {line}" for line in text.lines),
        "    except Exception:",  # of an argument that is something else, or is refused: `resolve` says so
        "        return NotImplemented",
    ]
    for number, step in enumerate(steps):
        lines += write_packing(number, step, scope)
    for number, step in enumerate(steps):
        lines += write_queueing(number, step)
    exec(_compile("\n".join(lines)), scope)
    return scope["launch"]


def write_packing(n: int, step: Step, scope: dict[str, object]) -> list[str]:
    """The lines that take a frame and write the values into it."""
    made = step.prepared
    scope.update({
        f"prepared{n}": made, f"kernel{n}": made.kernel, f"take{n}": made.take, f"give{n}": made.give,
        f"pack{n}": made.pack, f"frame_of{n}": made.frame,
    })  # fmt: skip
    return [
        "    try:",
        f"        frame{n} = take{n}()",
        "    except IndexError:",
        f"        frame{n} = frame_of{n}()",
        "    try:",
        f"        pack{n}({', '.join([f'frame{n}.memory', '0', *step.values])})",
        "    except (StructError, OverflowError, TypeError):",
        "        return NotImplemented",
        *_maps(n, step, scope),
    ]


def write_queueing(n: int, step: Step) -> list[str]:
    """The lines that say where a frame is launched, and launch it."""
    return [
        f"    if {step.attributes} is not frame{n}.attributes:",
        f"        frame{n}.attach({step.attributes})",
        f"    if {step.grid} != frame{n}.grid:",
        f"        frame{n}.place(kernel{n}, {step.grid})",
        f"    handle = {step.stream}",
        "    if handle is None:",
        f"        handle = {f'raw_stream({step.prepared.ordinal})' if step.of_torch else '0'}",
        "    elif handle.__class__ is not int:",
        "        handle = handle_of(handle)",
        f"    if handle != frame{n}.stream:",
        f"        frame{n}.queue(handle)",
        f"    status = frame{n}.call()",
        "    if status:",
        f"        prepared{n}.recover(frame{n}, status)",
        f"    give{n}(frame{n})",
    ]


def _maps(n: int, step: Step, scope: dict[str, object]) -> list[str]:
    """The lines that make the tensor maps anew where a value has changed on which they depend."""
    encoder = step.prepared.encoder
    if encoder is None:
        return []
    scope[f"encoded{n}"] = encoder.encoded
    return [
        f"    mapped = ({', '.join(step.values[place] for place in encoder.places)},)",
        f"    if mapped != frame{n}.mapped:",
        f"        frame{n}.map(mapped, encoded{n}(mapped))",
    ]


@cache
def _compile(text: str) -> CodeType:
    """The code of a text; many kernels have the same."""
    return compile(text, "<launch of a kernel>", "exec")
