# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Marks for a tool that traces events within kernels (`cutlass.cute.experimental.iket`). A kernel that runs without the
tool, as all kernels do here, has no instructions for them.
"""

__all__ = ["mark", "range_end", "range_pop", "range_push", "range_start"]


def range_push(name: str, payload: object = None) -> None:
    """A range of the thread's timeline begins; `payload` is a number to show with it."""


def range_pop() -> None:
    """The range that began last ends."""


def mark(name: str, payload: object = None) -> None:
    """A point of the thread's timeline; `payload` is a number to show with it."""


def range_start(name: str, payload: object = None) -> None:
    """A range of the timeline begins, which `range_end` ends; others may begin and end in between."""


def range_end(range_id: object = None, payload: object = None) -> None:
    """A range that `range_start` began ends."""
