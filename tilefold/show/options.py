# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of `tilefold show tiled-copy`, read into a request; each mistake marks the value at fault."""

import argparse
from typing import Any

from tilefold.dialects.tile.divisibility import check_tiles
from tilefold.layout.atoms.copy_atom import CopyAtom
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
    atom = OptionText("--atom", args.atom).read(lambda text: atom_of(text, bits))
    copy, layouts = _tiled_copy(args, atom)
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
    return Tensor(name, _POINTERS[space], bits, address, OptionText(option, text).read(_static_layout))


def _static_layout(text: str) -> LayoutLike:
    """A layout; a shape alone stands for the compact layout of it, first mode fastest."""
    layout = parse_layout(text) if ":" in text else make_layout(parse_int_tuple(text))
    inner = layout if isinstance(layout, Layout) else layout.inner
    offset = () if isinstance(layout, Layout) else (layout.offset,)
    if not all(type(leaf) is int for leaf in leaves((inner.shape, inner.stride, *offset))):
        raise LayoutError(
            Code.DYNAMIC_UNSUPPORTED, "the layout must be static, of integers", "write a number for every '?'"
        )
    return layout


def _plain_layout(text: str) -> Layout:
    layout = _static_layout(text)
    if not isinstance(layout, Layout):
        raise LayoutError(Code.COMPOSED_UNSUPPORTED, "the layouts of a tiled copy are plain ones, without a swizzle")
    return layout


def _tiled_copy(args: argparse.Namespace, atom: CopyAtom) -> tuple[TiledCopy, dict[str, Layout]]:
    """The tiled copy, and the layouts of which it was made by what they lay out."""
    match args.thr, args.val, args.tv, args.tiler:
        case str(thr), val, None, None:
            return _from_thr_val(atom, OptionText("--thr", thr), OptionText("--val", val or "1:0"))
        case None, None, str(tv), str(tiler):
            return _from_tv(atom, OptionText("--tv", tv), OptionText("--tiler", tiler)), {}
        case _:
            raise TilefoldError(
                Code.CLI_VALUE,
                "a tiled copy is made of a thread and a value layout, or of a thread-value layout and a tiler",
                "give --thr and --val, or --tv and --tiler",
            )


def _from_thr_val(atom: CopyAtom, thr: OptionText, val: OptionText) -> tuple[TiledCopy, dict[str, Layout]]:
    threads, values = thr.read(_plain_layout), val.read(_plain_layout)
    try:
        return make_tiled_copy(atom, threads, values), {"thread": threads, "vector": values}
    except LayoutError as error:
        about_values = error.code == Code.TOO_FEW_VALUES.id or error.message.startswith("the value layout")
        raise (val if about_values else thr).error(error) from error


def _from_tv(atom: CopyAtom, tv: OptionText, tiler: OptionText) -> TiledCopy:
    layout_tv, tile = tv.read(_plain_layout), tiler.read(parse_tiler)
    if len(layout_tv) != 2:
        raise tv.fail(Code.RANK_MISMATCH, f"a thread-value layout has two modes, not {len(layout_tv)}")
    if not all(type(leaf) is int for leaf in leaves(tile_shape(tile))):
        raise tiler.fail(Code.DYNAMIC_UNSUPPORTED, "the tiler of a tiled copy must be static, of integers")
    with tv.blamed():
        return make_tiled_copy_tv(atom, layout_tv, tile)


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
