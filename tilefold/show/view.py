# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a tiled copy gives to two tensors and a thread, and the lines in which CuTe's print would show it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from tilefold.layout.core import Layout, LayoutLike
from tilefold.layout.printing import Style, tensor_text, thr_copy_lines, tiled_copy_lines
from tilefold.layout.run_time import RunTimeInt, value_of
from tilefold.layout.swizzled_slice import slice_as_cute
from tilefold.layout.tiled_copy import TiledCopy


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: its name, kind of pointer (`gmem_ptr`), element width in bits, address in bytes, and layout.

    A part of a tensor starts `start` elements after the tensor named `whole`.
    """

    name: str
    pointer: str
    bits: int
    address: int
    layout: LayoutLike
    start: int = 0
    whole: str = ""

    def part(self, name: str, found: tuple[LayoutLike, Any]) -> Self:
        """A part of the tensor, by its layout and the element at which it starts."""
        layout, start = found
        distance = value_of(start)
        return replace(
            self,
            name=name,
            layout=layout,
            address=self.address + distance * self.bits // 8,
            start=self.start + distance,
            whole=self.whole or self.name,
        )

    def lines(self, style: Style) -> list[str]:
        """The tensor's name, and the tensor."""
        return [
            f"{self.name}:",
            tensor_text(self.pointer, self.bits, f"{self.address:#x}", style(self.layout)),
        ]


@dataclass(frozen=True, slots=True)
class Request:
    """A tiled copy, the tensors it moves between, and the thread to look at.

    `layouts` are those that the tiled copy was made of, by what they lay out; `tile` is the block's part of the
    source; `spaces` are the memory spaces of source and destination; `style` writes layouts and integers;
    with `tv_layouts` the layouts of source and destination by thread and value are shown, too.
    """

    name: str
    copy: TiledCopy
    thread: int
    layouts: Mapping[str, Layout]
    src: Tensor | None
    dst: Tensor | None
    tile: Tensor | None
    style: Style
    spaces: tuple[str, str]
    tv_layouts: bool = False

    @property
    def read_from(self) -> Tensor | None:
        """What is partitioned as the source: the block's tile, or the whole tensor."""
        return self.src if self.tile is None else self.tile

    def partitions(self) -> list[Tensor]:
        """The thread's parts of source and destination. Raises `LayoutError`."""
        thread, found = RunTimeInt(self.thread), list[Tensor]()
        if (src := self.read_from) is not None:
            found.append(src.part(self._part_name(src), _slice(self.copy.tidfrg_S(src.layout), src.layout, thread)))
        if (dst := self.dst) is not None:
            found.append(dst.part(self._part_name(dst), _slice(self.copy.tidfrg_D(dst.layout), dst.layout, thread)))
        return found

    def _part_name(self, tensor: Tensor) -> str:
        return f"thread_layout_{self.name}_{tensor.name}"

    def lines(self) -> list[str]:
        """Everything, in this order: tensors, layouts, the tiled copy, the thread's slice of it, its partitions."""
        tensors = [tensor for tensor in (self.src, self.tile, self.dst) if tensor is not None]
        parts = self.partitions()
        lines = [line for tensor in tensors for line in tensor.lines(self.style)]
        for kind, layout in self.layouts.items():
            lines += [f"{kind}_layout_{self.name}:", self.style(layout)]
        space = self.src.name.split("_")[0] if self.src is not None else "gmem"
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
        moved = [part for part in (self.tile, *parts) if part is not None and part.start]
        return [*lines, *(f"{part.name} starts {part.start} elements after {part.whole}" for part in moved)]

    def warnings(self) -> list[str]:
        """What is worth saying although everything could be computed."""
        found: list[str] = []
        for role, space, able in (
            ("source", self.spaces[0], self.copy.atom.src_spaces),
            ("destination", self.spaces[1], self.copy.atom.dst_spaces),
        ):
            given = self.src if role == "source" else self.dst
            if given is not None and space != "ptr" and space not in able:
                found.append(f"{self.copy.atom.name} has its {role} in {' or '.join(able)}, not in {space}")
        return found


def _slice(tiled: LayoutLike, tensor: LayoutLike, thread: RunTimeInt) -> tuple[LayoutLike, Any]:
    """Of `tensor` as (Thr,(FrgV,FrgX),(RestM,RestN,...)), a thread's part and where it starts."""
    rest = (None,) * len(tensor) if len(tensor) > 1 else None
    coord: Any = (thread, None, rest)
    return slice_as_cute(coord, tiled)
