# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source of a kernel that is written in Python: the line being executed, the line that raised an error and its
callers, and the program as text where one is needed.
"""

import linecache
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import CodeType, FrameType, FunctionType, MappingProxyType, TracebackType
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ...compiler.frontend.diagnostics import Place
from ...compiler.frontend.source import Source

_INTERNAL = ("tilefold", "xdsl")
"""The packages whose frames are not the user's code, like the frames of Python's library."""
_KERNELS = "tilefold.kernels"
"""The package whose kernels are written as a user's are: its code and objects count as such."""
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_PACKAGES = os.sep + "site-packages" + os.sep
RESULT = "__result__"
"""The variable in which the code of a rewritten function keeps its result."""
_PARTS = re.compile(r"__(?:then|else|while|for|test)_\d+__$|<(?:lambda|listcomp|setcomp|dictcomp|genexpr)>$")
"""The names of functions that are parts of the function around them."""


def package_of(module: str) -> str:
    """The package of a module, by its first name; the library of kernels is one by itself."""
    return _KERNELS if module == _KERNELS or module.startswith(f"{_KERNELS}.") else module.partition(".")[0]


def lines_of(function: object) -> Sequence[str]:
    """The lines of the file that a function comes from, as they are now; none where Python keeps none."""
    if not isinstance(function, FunctionType):
        return ()
    linecache.checkcache(function.__code__.co_filename)
    return linecache.getlines(function.__code__.co_filename, function.__globals__)


def is_users(frame: FrameType) -> bool:
    """Whether a frame executes code of the user's."""
    code = frame.f_code
    return _is_users(code.co_filename, code.co_name, str(frame.f_globals.get("__name__", "")))


@lru_cache(maxsize=4096)
def _is_users(file: str, name: str, module: str) -> bool:
    is_made = file == "<string>" and name.startswith("__")  # by dataclasses and the like
    is_library = file.startswith((_LIBRARY, "<frozen ")) and _PACKAGES not in file
    return not is_made and not is_library and package_of(module) not in _INTERNAL


def user_frame() -> FrameType | None:
    """The innermost frame of the user's code; None if all frames are tilefold's."""
    frame: FrameType | None = _getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return frame


def user_place() -> Place | None:
    """The place of the user's code that is being executed; None if all frames are tilefold's."""
    frame = user_frame()
    return None if frame is None else place_of_code(frame.f_code, frame.f_lasti, frame.f_globals)


def places_of_traceback(traceback: TracebackType | None) -> list[Place]:
    """The places of the user's code that led to an error: where it was raised, its caller, and so on outwards."""
    places: list[Place] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_users(traceback.tb_frame):
            place = place_of_code(code, traceback.tb_lasti, traceback.tb_frame.f_globals)
            if _PARTS.search(code.co_name) and places:
                places.pop()  # the statement that this is a part of
            places.append(place)
        traceback = traceback.tb_next
    return list(dict.fromkeys(reversed(places)))  # of a recursion each line once


def place_of_code(code: CodeType, at: int, names: "dict[str, Any] | None" = None) -> Place:
    """The place of an instruction, with its line as text; the end is 0 if it is on another line."""
    line, last, start, end = next(islice(code.co_positions(), at // 2, None), (None,) * 4)
    if line is None:
        return place_of_line(code.co_filename, code.co_firstlineno)
    text = linecache.getline(code.co_filename, line, names).rstrip("\r\n")
    until = column_of(text, end) if last == line and end else 0
    return Place(code.co_filename, line, column_of(text, start or 0), until, text)


def place_of_line(file: str, line: int) -> Place:
    """The beginning of a line of a file, with its text if the file can be read."""
    return Place(file, line, 1, text=linecache.getline(file, line).rstrip("\r\n"))


def column_of(line: str, offset: int) -> int:
    """The column, from 1, of the character at an offset in bytes, as Python counts."""
    return (offset if line.isascii() else len(line.encode()[:offset].decode(errors="ignore"))) + 1


_SPELLING: Mapping[str, str] = MappingProxyType({
    "{unroll = 4 : i64}": "cute.range(..., unroll=4)",
    "{unroll}": "with cute.range(..., unroll_full=True)",
    "by tile.load and tile.store": "as t[i, j]",
    "that tile.bounds": "that cute.bounds",
    "by tile.local_tile": "by cute.local_tile",
    "by tile.copy": "by cute.copy",
    "compute the destination by tile.map": "write dst.store(src.load().to(dst.element_type))",
    "for --target sm_": "for the target sm_",
    "by --max-steps": "by launch(..., max_steps=...)",
    "by --max-memory": "by launch(..., max_memory=...)",
    "by --max-seconds": "by a smaller launch",
    "by --resident": "by launch(..., resident=...)",
    "by --no-races": "by launch(..., races=False)",
    "so ptx.bar.warp.sync suffices": "so cute.arch.sync_warp() suffices",
    "put ptx.bar.warp.sync": "put cute.arch.sync_warp()",
    'put ptx.fence "acq_rel"': "put cute.arch.fence_acq_rel_gpu()",
    "use ptx.atom or ptx.red": "use cute.arch.atomic_add or another of its kind",
    "execute ptx.fence.mbarrier_init": "call cute.arch.mbarrier_init_fence()",
    "execute ptx.fence.proxy.async": 'call cute.arch.fence_proxy("async")',
    "execute ptx.barrier.cluster.arrive": "call cute.arch.cluster_arrive()",
    "by ptx.barrier.cluster.arrive and ptx.barrier.cluster.wait": "by cute.arch.cluster_arrive() and cluster_wait()",
    "with ptx.mbarrier.init": "with cute.arch.mbarrier_init",
    "or give the argument values that may stay": "or name the outputs by check(..., outputs=[...])",
})  # fmt: skip
"""Quotations of the IR in messages, and their forms in Python."""


def spell_in_python(message: str) -> str:
    """A message in the words of Python where it quotes the IR's, such as `cute.range` for the hints of loops."""
    for written, ours in _SPELLING.items():
        message = message.replace(written, ours)
    return message


class PythonSource(Source):
    """Shows lines of Python files for the locations of a module.

    Its text is the module's as it was built, with locations, for readers of program text.
    """

    def __init__(self, file: str, module: ModuleOp) -> None:  # the text is made when it is needed
        object.__setattr__(self, "name", file)
        object.__setattr__(self, "_module", module)

    @cached_property
    def text(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The program as text."""
        from ...compiler.frontend.program import print_program

        return print_program(self.__dict__["_module"], locations=True)

    @property
    def expanded(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The same: it has no parameters."""
        return self.text

    def line_of(self, file: str, number: int) -> str:
        """The text of a line of a file, without its end; empty without any."""
        return linecache.getline(file, number).rstrip("\r\n")

    def spelled(self, message: str) -> str:
        """A message in the words of Python."""
        return spell_in_python(message)
