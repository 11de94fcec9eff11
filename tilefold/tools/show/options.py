# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of `tilefold show tiled-copy`, read into a request; each mistake marks the value at fault."""

import argparse

from tilefold.base.errors import Code, LayoutError, TilefoldError
from tilefold.base.spaces import GMEM, RMEM, SMEM
from tilefold.layout.algebra.core import LayoutLike, plain_layout
from tilefold.layout.algebra.inttuple import wrap
from tilefold.layout.text.printing import cxx_style, plain_style
from tilefold.layout.tiling.tiled_copy import TiledCopy
from tilefold.tools.show.atom_names import element_bits
from tilefold.tools.show.cta_tile import read_cta_tile
from tilefold.tools.show.layouts import tensor_layout
from tilefold.tools.show.option_text import OptionText
from tilefold.tools.show.ragged import check_covered
from tilefold.tools.show.tiled_copy_options import read_tiled_copy
from tilefold.tools.show.view import Request, Tensor

_POINTERS = {space.name: space.pointer for space in (GMEM, SMEM, RMEM)} | {RMEM.pointer: RMEM.pointer}
_SRC_ADDRESS, _DST_ADDRESS = 0x7F00_0000_0000, 0x7E00_0000_0000


def read_request(args: argparse.Namespace) -> Request:
    """The request that the options make. TilefoldError for a wrong option, with the value at fault marked."""
    bits = OptionText("--type", args.type).read(element_bits)
    copy, layouts = read_tiled_copy(args, OptionText("--atom", args.atom), bits)
    src = _tensor(
        args.src, "--src", args.src_space, f"{_name_space(args.src_space, GMEM.name)}_tensor_{args.name}", bits
    )
    dst = _tensor(
        args.dst, "--dst", args.dst_space, f"{_name_space(args.dst_space, SMEM.name)}_tensor_{args.name}", bits
    )
    tile = read_cta_tile(args, src)
    request = Request(
        name=args.name,
        copy=copy,
        thread=OptionText("--thread", args.thread).read(lambda text: _thread(text, copy)),
        layouts=layouts,
        src=src,
        dst=dst,
        tile=tile,
        style=plain_style if args.plain else cxx_style,
        tv_layouts=args.tv_layouts,
        spaces=(args.src_space, args.dst_space),
    )
    if dst is not None:
        _check_partition(OptionText("--dst", args.dst), dst.layout, copy, args.ragged)
    if tile is not None:
        _check_partition(OptionText("--cta-tiler", args.cta_tiler), tile.static_layout, copy, args.ragged)
    elif src is not None:
        _check_partition(OptionText("--src", args.src), src.layout, copy, args.ragged)
    return request


def _name_space(space: str, otherwise: str) -> str:
    """The space in a tensor's name: untagged memory has the name of the space it stands for."""
    return otherwise if space == RMEM.pointer else space


def _tensor(text: str | None, option: str, space: str, name: str, bits: int) -> Tensor | None:
    if text is None:
        return None
    address = _SRC_ADDRESS if option == "--src" else _DST_ADDRESS
    return Tensor(name, _POINTERS[space], bits, address, OptionText(option, text).read(tensor_layout))


def _thread(text: str, copy: TiledCopy) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) >= copy.threads:
        raise TilefoldError(
            Code.CLI_VALUE,
            f"{text[:40]!r} is not one of the threads",
            f"the tiled copy has threads 0 to {copy.threads - 1}",
        )
    return int(text)


def _check_partition(text: OptionText, layout: LayoutLike, copy: TiledCopy, ragged: bool) -> None:
    """Refuses a tensor that the tiled copy cannot partition, or whose last tiles would reach beyond it unless they may
    be `ragged`.
    """
    with text.blamed():
        copy.partition_S(layout, 0)
        copy.partition_D(layout, 0)
        if len(plain_layout(layout)) < len(wrap(copy.tiler)):
            raise LayoutError(Code.TILE_RANK, f"{layout} has fewer modes than the tiler of the tiled copy")
        if not ragged:
            check_covered(layout, copy.tiler)
