# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of tensor memory: the columns of a block from top to bottom, time from left to right; allocations as frames,
and in them the instructions that use the columns.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from tilefold.layout.drawing.scene import Box, Label, Line, Picture, Primitive, text_width
from tilefold.runtime.sim.tcgen05.column_events import HELD, READ, ColumnEvent

MAX_BLOCKS = 4
"""The blocks that are drawn."""
COLOURS: Mapping[str, str] = MappingProxyType({
    HELD: "#eef0f4", "mma": "#7aa6e8", READ: "#c9b3ea", "cp": "#9a6fd0", "shift": "#5d4aa0", "ld": "#8fce9b",
    "st": "#f0b26a",
})  # fmt: skip
_NAMES = {HELD: "allocated", "mma": "mma writes", READ: "mma reads"}
_WIDTH, _LEFT, _TOP, _GAP = 900, 64, 46, 34
_TALL = 0.75
"""The pixels of a column."""
_SMALL = 10
_INK = "#8a90a0"


def column_picture(label: str, events: Sequence[ColumnEvent]) -> Picture | None:
    """The columns of the first blocks of a launch over time; None where it allocates none."""
    blocks = list(dict.fromkeys(event.block for event in events if event.kind == HELD))[:MAX_BLOCKS]
    if not blocks:
        return None
    cycles = max(event.over for event in events) or 1
    parts, top = list(_legend(label, {event.kind for event in events})), float(_TOP)
    for block in blocks:
        own = [event for event in events if event.block == block]
        columns = max(event.end for event in own)
        parts += _panel(f"block ({','.join(map(str, block))})", own, columns, cycles, top)
        top += columns * _TALL + 18 + _GAP
    shown = f"columns of tensor memory of {label}: {_told(events, blocks)}"
    return Picture(shown, _LEFT + _WIDTH + 24, top, tuple(parts))


def _legend(label: str, kinds: Collection[str]) -> Iterator[Primitive]:
    """The title, and the colours of these kinds."""
    yield Label(8, 16, f"{label}: columns of tensor memory, by cycles of the model", anchor="start", bold=True)
    at = float(_LEFT)
    for kind, colour in [(kind, colour) for kind, colour in COLOURS.items() if kind in kinds]:
        yield Box(at, 22, 12, 10, colour, _INK)
        name = _NAMES.get(kind, kind)
        yield Label(at + 16, 31, name, _SMALL, anchor="start")
        at += 28 + text_width(name, _SMALL)


def _panel(name: str, events: Sequence[ColumnEvent], columns: int, cycles: int, top: float) -> Iterator[Primitive]:
    """The columns of a block below its name."""
    yield Label(8, top + 6, name, _SMALL, anchor="start")
    top += 18
    scale, height = _WIDTH / cycles, columns * _TALL
    for column in range(0, columns + 1, max(32, columns // 4)):
        yield Label(_LEFT - 6, top + column * _TALL + 3, str(column), _SMALL, _INK, "end")
    step = next(n for power in range(20) for n in (10**power, 2 * 10**power, 5 * 10**power) if cycles <= 8 * n)
    for cycle in range(0, cycles + 1, step):
        at = _LEFT + cycle * scale
        yield Line((at, top), (at, top + height), 0.5, COLOURS[HELD])
        yield Label(at, top + height + 11, str(cycle), _SMALL, _INK)
    for kind in COLOURS:
        for first, end, left, right in _merged([event for event in events if event.kind == kind], scale):
            inset = 0.0 if kind == HELD else 1.0
            tall = max((end - first) * _TALL - 2 * inset, 1.0)
            border = _INK if kind == HELD else ""
            yield Box(_LEFT + left, top + first * _TALL + inset, max(right - left, 1.0), tall, COLOURS[kind], border)
    for event in events:
        if event.kind == HELD:
            text = f"{event.end - event.first} columns, warp {event.warp}, {_place(event)}"
            yield Label(_LEFT + event.begin * scale + 4, top + event.end * _TALL - 3, text, 9, anchor="start")


def _merged(events: Iterable[ColumnEvent], scale: float) -> Iterator[tuple[int, int, float, float]]:
    """Columns and pixels of events of a kind, those of the same columns together where they lie close."""
    by_columns: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in sorted(events, key=lambda event: event.begin):
        spans = by_columns.setdefault((event.first, event.end), [])
        left, right = event.begin * scale, event.over * scale
        if spans and left <= spans[-1][1] + 0.5:
            spans[-1] = spans[-1][0], max(spans[-1][1], right)
        else:
            spans.append((left, right))
    for (first, end), spans in by_columns.items():
        for left, right in spans:
            yield first, end, left, right


def _place(event: ColumnEvent) -> str:
    return event.site.location.replace("\\", "/").rpartition("/")[2]


def _told(events: Iterable[ColumnEvent], blocks: Sequence[tuple[int, int, int]]) -> str:
    """The allocations in words, for readers that do not see them."""
    held = [event for event in events if event.kind == HELD and event.block in blocks]
    return "; ".join(f"{event.text}, cycles {event.begin} to {event.over}" for event in held)
