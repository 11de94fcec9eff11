# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chooses the launch of a kernel that fits the arguments: most likely the last one, else an earlier one.

Each launch itself checks whether the arguments have its types ([direct](direct.py)); the tables here only say which
launches to ask. Arguments without a prepared launch go to `resolve`, which checks everything and prepares.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from ..arrays.constants import constant_key, is_exact
from ..options import LaunchAttributes, dim3
from .comparison import Rules
from .direct import Args, DirectLaunch, Repeated, write

_RECENT = 4
"""The launches to try before the table."""
_ALIKE = 16
"""The launches that are kept for arguments of the same shapes."""
_SHAPES = 1024
"""The shapes for which launches are kept, so that a program whose shapes keep changing does not grow."""


Resolve = Callable[[Args, Any, Any, Any, LaunchAttributes], tuple[Any, Any]]
"""Launches arguments that no prepared launch fits yet, or none ever will, such as copies of the host's arrays.

Takes the arguments of `Launcher.launch`; returns the report of the launch, and for the next time, if there is one, the
prepared launch of which `Launcher.write` makes a function.
"""


@dataclass
class Launcher:
    """The launches of one kernel, whose parameters `rules` describe.

    `fast`, with the parameters of `launch`, launches arguments like those before; it has done nothing where it returns
    NotImplemented.
    """

    rules: Rules
    resolve: Resolve
    write: Callable[[Rules, Args, Any, Any], DirectLaunch | None] = write
    fast: DirectLaunch = field(init=False)
    _recent: tuple[DirectLaunch, ...] = field(init=False, default=())
    _known: dict[Hashable, tuple[DirectLaunch, ...]] = field(init=False, default_factory=lambda: {})

    def __post_init__(self) -> None:
        self.fast = _nothing_yet

    def launch(
        self, args: Args, block: object, grid: object, stream: object = None, attributes: LaunchAttributes = ()
    ) -> Any:
        """Launches on arguments in the order of the parameters. None, or the result of `resolve`.

        `stream` is a handle, an object of torch, CuPy or cuda.core, one of `runtime.streams`, or None: torch's current
        stream where a torch tensor is an argument, else the default stream. Raises the errors of `resolve` and the
        driver raise.
        """
        result = self.fast(args, block, grid, stream, attributes)
        return result if result is not NotImplemented else self.search(args, block, grid, stream, attributes)

    def search(self, args: Args, block: Any, grid: Any, stream: Any, attributes: LaunchAttributes) -> Any:
        """The same for arguments that are not for `fast`."""
        if not isinstance(block, int | tuple):
            block = dim3("block", block)
        for launch in self._recent:
            if launch is not self.fast:
                result = launch(args, block, grid, stream, attributes)
                if result is not NotImplemented:
                    self.fast = launch
                    return result
        hint = self._hint(args, block)
        known = self._known.get(hint, ())
        for launch in known:
            if launch not in self._recent:
                result = launch(args, block, grid, stream, attributes)
                if result is not NotImplemented:
                    self._prefer(launch)
                    return result
        result, prepared = self.resolve(args, block, grid, stream, attributes)
        if prepared is not None:
            launch = self.write(self.rules, args, block, prepared)
            if launch is not None:
                if isinstance(launch, Repeated):
                    launch.replace = self._replace
                self._known[hint] = (launch, *known[: _ALIKE - 1])
                if len(self._known) > _SHAPES:
                    self._known.pop(next(iter(self._known)))
                self._prefer(launch)
        return result

    def _prefer(self, launch: DirectLaunch) -> None:
        self.fast = launch
        self._recent = (launch, *self._recent[: _RECENT - 1])

    def _replace(self, old: DirectLaunch, new: DirectLaunch) -> None:
        """Takes one launch instead of another from now on."""
        self._recent = tuple(new if each is old else each for each in self._recent)
        for hint, launches in self._known.items():
            if old in launches:
                self._known[hint] = tuple(new if each is old else each for each in launches)
        if self.fast is old:
            self.fast = new

    def _hint(self, args: Args, block: Any) -> Hashable:
        """A key that tells most launches apart: the shapes of the arrays and the constants. LaunchError for a constant
        without a key.
        """
        rules = self.rules
        parts: list[Any] = [block]
        for name, arg in zip(rules.names, args, strict=False):
            if name in rules.constants:
                parts.append(arg if is_exact(arg) else constant_key(name, arg))
            elif name not in rules.dynamic:
                shape = getattr(arg, "shape", None)
                parts.append(shape if isinstance(shape, tuple) else None)
        return tuple(parts)


def _nothing_yet(args: Args, block: object, grid: object, stream: object, attributes: LaunchAttributes) -> Any:
    return NotImplemented
