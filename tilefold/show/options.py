# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of `tilefold show tiled-copy`, read into a request; each mistake marks the value at fault."""

import argparse
from collections.abc import Callable
from typing import Any

from tilefold.dialects.tile.divisibility import check_tiles
from tilefold.layout.core import Layout, LayoutLike, make_layout
from tilefold.layout.errors import Code, LayoutError, TilefoldError
from tilefold.layout.inttuple import leaves, wrap
from tilefold.layout.printing import cxx_style, plain_style
from tilefold.layout.text import parse_int_tuple, parse_layout, parse_tiler
from tilefold.layout.tiled_copy import TiledCopy, make_tiled_copy, make_tiled_copy_tv, tile_shape
from tilefold.show.cta_tile import read_cta_tile
from tilefold.show.names import atom_of, element_bits
from tilefold.show.values import OptionText
from tilefold.show.view import Request, Tensor

_POINTERS = {"gmem": "gmem_ptr", "smem": "smem_ptr", "rmem": "ptr", "ptr": "ptr"}
_SRC_ADDRESS, _DST_ADDRESS = 0x7F00_0000_0000, 0x7E00_0000_0000


def read_request(args: argparse.Namespace) -> Request:
    """The request that the options make. TilefoldError for what they get wrong, with the value at fault marked."""
    bits = OptionText("--type", args.type).read(element_bits)
    copy, layouts = _tiled_copy(args, OptionText("--atom", args.atom), bits)
    src = _tensor(args.src, "--src", args.src_space, f"{_named(args.src_space, 'gmem')}_tensor_{args.name}", bits)
    dst = _tensor(args.dst, "--dst", args.dst_space, f"{_named(args.dst_space, 'smem')}_tensor_{args.name}", bits)
    tile = read_cta_tile(args, src)
    request = Request(
        name=args.name,
        copy=copy,
        thread=OptionText("--thread", args.thread).read(lambda text: _thread(text, copy)),
        layouts=layouts,
        src=src,
        dst=dst,
        tile=None if tile is None else tile.tensor,
        style=plain_style if args.plain else cxx_style,
        spaces=(args.src_space, args.dst_space),
    )
    if dst is not None:
        _check_covered(OptionText("--dst", args.dst), dst.layout, copy)
    if tile is not None:
        _check_covered(OptionText("--cta-tiler", args.cta_tiler), tile.static_layout, copy)
    elif src is not None:
        _check_covered(OptionText("--src", args.src), src.layout, copy)
    return request


def _named(space: str, otherwise: str) -> str:
    """The space in a tensor's name: untagged memory is called what it stands for."""
    return otherwise if space == "ptr" else space


def _tensor(text: str | None, option: str, space: str, name: str, bits: int) -> Tensor | None:
    if text is None:
        return None
    address = _SRC_ADDRESS if option == "--src" else _DST_ADDRESS
    return Tensor(name, _POINTERS[space], bits, address, OptionText(option, text).read(static_layout))


def static_layout(text: str) -> LayoutLike:
    """A layout; a shape alone stands for the compact layout of it, first mode fastest."""
    layout = parse_layout(text) if ":" in text else make_layout(parse_int_tuple(text))
    inner = layout if isinstance(layout, Layout) else layout.inner
    offset = () if isinstance(layout, Layout) else (layout.offset,)
    if not all(type(leaf) is int for leaf in leaves((inner.shape, inner.stride, *offset))):
        raise LayoutError(
            Code.DYNAMIC_UNSUPPORTED, "the layout must be static, of integers", "write a number for every '?'"
        )
    return layout


def plain_layout(text: str) -> Layout:
    layout = static_layout(text)
    if not isinstance(layout, Layout):
        raise LayoutError(Code.COMPOSED_UNSUPPORTED, "the layouts of a tiled copy are plain ones, without a swizzle")
    return layout


def _tiled_copy(args: argparse.Namespace, atom: OptionText, bits: int) -> tuple[TiledCopy, dict[str, Layout]]:
    """The tiled copy, and the layouts of which it was made by what they lay out."""
    found = atom.read(lambda text: atom_of(text, bits))
    match args.thr, args.val, args.tv, args.tiler:
        case str(thr), val, None, None:
            by_thread, by_value = OptionText("--thr", thr), OptionText("--val", "1:0" if val is None else val)
            threads, values = by_thread.read(plain_layout), by_value.read(plain_layout)
            copy = _made(lambda: make_tiled_copy(found, threads, values), atom, by_thread, by_value)
            return copy, {"thread": threads, "vector": values}
        case None, None, str(tv), str(tiler):
            text = OptionText("--tv", tv)
            layout_tv, tile = text.read(_layout_tv), OptionText("--tiler", tiler).read(_static_tiler)
            return _made(lambda: make_tiled_copy_tv(found, layout_tv, tile), atom, text, text), {}
        case _:
            raise TilefoldError(
                Code.CLI_VALUE,
                "a tiled copy is made of a thread and a value layout, or of a thread-value layout and a tiler",
                "give --thr and --val, or --tv and --tiler",
            )


def _layout_tv(text: str) -> Layout:
    layout = plain_layout(text)
    if len(layout) != 2:
        raise LayoutError(Code.RANK_MISMATCH, f"a thread-value layout has two modes, not {len(layout)}")
    return layout


def _static_tiler(text: str) -> Any:
    tiler = parse_tiler(text)
    if not all(type(leaf) is int for leaf in leaves(tile_shape(tiler))):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, "the tiler of a tiled copy must be static, of integers")
    return tiler


def _made(make: Callable[[], TiledCopy], atom: OptionText, threads: OptionText, values: OptionText) -> TiledCopy:
    """The tiled copy, or its mistake at the value that it comes from."""
    try:
        return make()
    except LayoutError as error:
        blamed = {Code.ATOM_VALUE_WIDTH.id: atom, Code.TOO_FEW_VALUES.id: values}.get(error.code, threads)
        if error.code == Code.NOT_A_NUMBERING.id and error.message.startswith("the value layout"):
            blamed = values
        raise blamed.error(error) from error


def _thread(text: str, copy: TiledCopy) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) >= copy.threads:
        raise TilefoldError(
            Code.CLI_VALUE,
            f"{text[:40]!r} is none of the threads",
            f"the tiled copy has threads 0 to {copy.threads - 1}",
        )
    return int(text)


def _check_covered(text: OptionText, layout: Any, copy: TiledCopy) -> None:
    """Refuses a tensor that the tiled copy cannot partition, or whose last tiles would reach beyond it."""
    with text.blamed():
        copy.partition_S(layout, 0)
        copy.partition_D(layout, 0)
        inner = layout if isinstance(layout, Layout) else layout.inner
        if len(inner) < len(wrap(copy.tiler)):
            raise LayoutError(Code.TILE_RANK, f"{layout} has fewer modes than the tiler of the tiled copy")
        check_tiles(inner, copy.tiler)
