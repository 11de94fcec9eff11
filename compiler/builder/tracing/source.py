# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source of a kernel that was written in Python: lines of files, and the program as text where one is needed."""

import linecache
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from xdsl.dialects.builtin import ModuleOp

from ...frontend.program import print_program
from ...frontend.source import Source

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
    "by --resident": "by launch(..., resident=...)",
    "by --no-races": "by launch(..., races=False)",
    "so that ptx.bar.warp.sync will do": "so that cute.arch.sync_warp() will do",
    "put ptx.bar.warp.sync": "put cute.arch.sync_warp()",
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
