# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tiled copy applied to two tensors and a thread, in the lines of CuTe's print."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from tilefold.base.spaces import GMEM, RMEM
from tilefold.layout.algebra.core import Layout, LayoutLike, Tiler
from tilefold.layout.algebra.scalars import RunTimeInt, value_of
from tilefold.layout.algebra.swizzled_slice import slice_as_cute
from tilefold.layout.text.printing import Style, tensor_text, thr_copy_lines, tiled_copy_lines
from tilefold.layout.tiling.tiled_copy import TiledCopy
from tilefold.tools.show.option_text import has_unknowns
from tilefold.tools.show.ragged import Cut, ragged_lines, within


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: its name, kind of pointer (`gmem_ptr`), element width in bits, address in bytes, and layout.

    A part of a tensor starts `start` elements after the tensor named `whole`, which is at the address.
    """

    name: str
    pointer: str
    bits: int
    address: int
    layout: LayoutLike
    start: Any = 0
    whole: str = ""

    def part(self, name: str, placed: tuple[LayoutLike, object]) -> Self:
        """A part of the tensor, by its layout and the element at which it starts."""
        layout, start = placed
        distance = value_of(start)
        return replace(self, name=name, layout=layout, start=self.start + distance, whole=self.whole or self.name)

    def lines(self, style: Style) -> list[str]:
        """The tensor's name, and the tensor."""
        start = self.start
        at = f"{self.address + start * self.bits // 8:#x}" if isinstance(start, int) else "?"
        return [f"{self.name}:", tensor_text(self.pointer, self.bits, at, style(self.layout))]


@dataclass(frozen=True, slots=True)
class CtaTile:
    """The tile of a block, the layout that it would have if everything were static, the tiler that the tensor is
    divided by, and how the tile is cut out of a tensor of its shape.
    """

    tensor: Tensor
    static_layout: LayoutLike
    tiler: Tiler
    cut: Cut


@dataclass(frozen=True, slots=True)
class Request:
    """A tiled copy, the tensors it moves between, and the thread to look at.

    `layouts` are those that the tiled copy was made of, by their roles; `tile` is the block's part of the
    source; `spaces` are the memory spaces of source and destination; `style` writes layouts and integers;
    with `tv_layouts` the layouts of source and destination by thread and value are shown, too.
    """

    name: str
    copy: TiledCopy
    thread: int
    layouts: Mapping[str, Layout]
    src: Tensor | None
    dst: Tensor | None
    tile: CtaTile | None
    style: Style
    spaces: tuple[str, str]
    tv_layouts: bool = False

    @property
    def read_from(self) -> Tensor | None:
        """The partitioned source: the block's tile, or the whole tensor."""
        return self.src if self.tile is None else self.tile.tensor

    def partitions(self) -> list[Tensor]:
        """The thread's parts of source and destination. Raises `LayoutError`."""
        parts = list[Tensor]()
        if (src := self.read_from) is not None:
            parts.append(src.part(self._part_name(src), self._slice(self.copy.tidfrg_S, src.layout)))
        if (dst := self.dst) is not None:
            parts.append(dst.part(self._part_name(dst), self._slice(self.copy.tidfrg_D, dst.layout)))
        return parts

    def _slice(self, tidfrg: Callable[[LayoutLike], Any], tensor: LayoutLike) -> tuple[LayoutLike, Any]:
        """The view of a tensor as (Thr,(FrgV,FrgX),(RestM,RestN,...)): the thread's part and where it starts."""
        rest = (None,) * len(tensor) if len(tensor) > 1 else None
        coord: Any = (self.thread if has_unknowns(tensor) else RunTimeInt(self.thread), None, rest)
        return slice_as_cute(coord, tidfrg(tensor))

    def _ragged_lines(self) -> Iterator[str]:
        """Which tiles reach beyond their tensor, and how much of the thread's parts is within it."""
        for tensor, tile, tidfrg in (
            (self.src, self.tile, self.copy.tidfrg_S),
            (self.dst, None, self.copy.tidfrg_D),
        ):
            if tensor is None:
                continue
            read = tensor if tile is None else tile.tensor
            lines = [] if tile is None else [*ragged_lines(tensor.name, tensor.layout, tile.tiler)]
            lines += ragged_lines(read.name, read.layout if tile is None else tile.static_layout, self.copy.tiler)
            cut = partial(self._part, tile, tidfrg)
            if lines and (counted := within(tensor.layout, cut)) is not None:
                inside, count = counted
                lines.append(f"{self._part_name(read)}: {inside} of {count} elements are within {tensor.name}")
            yield from lines

    def _part(
        self, tile: CtaTile | None, tidfrg: Callable[[LayoutLike], object], layout: LayoutLike
    ) -> tuple[LayoutLike, Any]:
        """The thread's part of a whole tensor of this layout, and where it starts."""
        whole, start = (layout, 0) if tile is None else tile.cut(layout)
        part, offset = self._slice(tidfrg, whole)
        return part, value_of(start) + value_of(offset)

    def _part_name(self, tensor: Tensor) -> str:
        return f"thread_layout_{self.name}_{tensor.name}"

    def lines(self) -> list[str]:
        """Everything, in this order: tensors, layouts, the tiled copy, the thread's slice of it, its partitions."""
        tile = None if self.tile is None else self.tile.tensor
        tensors = [tensor for tensor in (self.src, tile, self.dst) if tensor is not None]
        parts = self.partitions()
        lines = [line for tensor in tensors for line in tensor.lines(self.style)]
        for kind, layout in self.layouts.items():
            lines += [f"{kind}_layout_{self.name}:", self.style(layout)]
        space = self.src.name.split("_")[0] if self.src is not None else GMEM.name
        lines += [f"{space}_tiled_copy_{self.name}:", *tiled_copy_lines(self.copy, self.style), ""]
        if self.tv_layouts:
            lines += [f"LayoutS_TV: {self.style(self.copy.get_layoutS_TV())}"]
            lines += [f"LayoutD_TV: {self.style(self.copy.get_layoutD_TV())}", ""]
        lines += [
            f"thread_{space}_copy_{self.name}:",
            *thr_copy_lines(self.copy, self.thread, self.style),
            "",
        ]
        for part in parts:
            lines += part.lines(self.style)
        moved = [part for part in (tile, *parts) if part is not None and part.start != 0]
        lines += [f"{part.name} starts {_elements(part.start)} after {part.whole}" for part in moved]
        return [*lines, *self._ragged_lines()]

    def warnings(self) -> list[str]:
        """Warnings about a request that could be computed."""
        problems: list[str] = []
        for role, space, able in (
            ("source", self.spaces[0], self.copy.atom.source.spaces),
            ("destination", self.spaces[1], self.copy.atom.destination.spaces),
        ):
            given = self.src if role == "source" else self.dst
            names = [row.name for row in able]
            if given is not None and space not in (RMEM.pointer, *names):
                problems.append(f"{self.copy.atom.name} has its {role} in {' or '.join(names)}, not in {space}")
        return problems


def _elements(count: object) -> str:
    return "1 element" if count == 1 else f"{count} elements"
