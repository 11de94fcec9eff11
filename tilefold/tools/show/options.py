# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of `tilefold show tiled-copy`, read into a request, and its tiled copy; each mistake marks the value at
fault.
"""

import argparse
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from tilefold.base.element_types import ELEMENT_TYPES
from tilefold.base.errors import Code, LayoutError, TilefoldError
from tilefold.base.spaces import GMEM, RMEM, SMEM
from tilefold.layout.algebra.core import Layout, LayoutLike, plain_layout
from tilefold.layout.algebra.inttuple import leaves, wrap
from tilefold.layout.algebra.inverse import right_inverse
from tilefold.layout.atoms.bulk_copy import cp_async_name
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.instructions import Absent
from tilefold.layout.atoms.ldmatrix import ldmatrix_name, stmatrix_name
from tilefold.layout.atoms.universal import universal_name
from tilefold.layout.text.layouts import parse_tiler
from tilefold.layout.text.printing import cxx_style, plain_style
from tilefold.layout.tiling.tiled_copy import (
    BY_MMA,
    TiledCopy,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_tv,
    tile_shape,
)
from tilefold.tools.show.cta_tile import read_cta_tile
from tilefold.tools.show.option_text import OptionText, tensor_layout, unswizzled_layout
from tilefold.tools.show.ragged import check_covered
from tilefold.tools.show.tiled_mma import read_tiled_mma
from tilefold.tools.show.view import Request, Tensor

_WIDTHS: Mapping[str, int] = {
    **{name: element.bits for element in ELEMENT_TYPES for name in (element.ptx, element.mlir, *element.cxx) if name},
    **{element.name: max(element.bits, 8) if element.kind == "bool" else element.bits for element in ELEMENT_TYPES},
}
"""The widths in bits of element types by their names in PTX, the IR, C++ and Python."""
_NUMBERED = re.compile(r"(?:[isu]|u?int)(8|16|32|64|128)(?:_t)?|(1|4|8|16|32|64|128)b?")


def element_bits(text: str) -> int:
    """The width in bits of an element type, from `f16`, `f8E4M3FN`, `uint16_t`, `half_t`, `Float16`, `16b`.

    TilefoldError for others.
    """
    name = text.strip().removeprefix("cute::").removeprefix("cutlass::").removeprefix("cute.")
    if (bits := _WIDTHS.get(name)) is not None:
        return bits
    match = _NUMBERED.fullmatch(name)
    if match is None:
        near = get_close_matches(name[:40], _WIDTHS, n=3)
        raise TilefoldError(
            Code.CLI_VALUE,
            f"unknown element type {text[:40]!r}",
            (f"similar names: {', '.join(near)}; " if near else "use f16, bf16, f32, f64, i8 to i64, half_t, ")
            + "or a width: 16b",
        )
    return int(match[1] or match[2])


def atom_of(text: str, bits: int) -> CopyAtom:
    """The atom of CuTe's name, or of a short one such as `cp.async.ca.16`, for values of `bits` bits.

    LayoutError for an unknown atom (E0302), one that PTX does not have (E0304) or that splits values (E0303).
    """
    atom = copy_atom(_cute_name("".join(text.split()).replace("cute::", "")), bits)
    if isinstance(atom.instruction, Absent):
        raise LayoutError(Code.ATOM_OPERAND, f"PTX has no instruction for {atom.name}, so it cannot copy")
    return atom


def _cute_name(text: str) -> str:
    """CuTe's name for one of our short ones, which follow PTX; any other text unchanged."""
    match text.split("."):
        case ["auto"]:
            return "AutoVectorizingCopy"
        case ["copy", bits] if bits.isdecimal():
            return universal_name(int(bits))
        case ["cp", "async", ("ca" | "cg") as cache, ("4" | "8" | "16") as size]:
            return cp_async_name(cache, int(size), zfill=False)
        case [("ldmatrix" | "stmatrix") as kind, ("x1" | "x2" | "x4") as matrices, *trans] if trans in ([], ["trans"]):
            name = ldmatrix_name if kind == "ldmatrix" else stmatrix_name
            return name(int(matrices[1:]), bool(trans))
        case _:
            return text


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


def read_tiled_copy(args: argparse.Namespace, atom: OptionText, bits: int) -> tuple[TiledCopy, dict[str, Layout]]:
    """The tiled copy, and the layouts that it was made of, by their roles."""
    copy_atom = atom.read(lambda text: atom_of(text, bits))
    ways = ("thr", "val", "tv", "tiler", "cotiled", "data", "mma")
    match [name for name in ways if getattr(args, name) is not None]:
        case ["thr"] | ["thr", "val"]:
            thr, val = args.thr, args.val
            by_thread, by_value = OptionText("--thr", thr), OptionText("--val", "1:0" if val is None else val)
            threads = by_thread.read(unswizzled_layout)
            values = by_value.read(unswizzled_layout)
            numbers = by_value if right_inverse(threads).size == threads.size else by_thread
            copy = _make(lambda: make_tiled_copy(copy_atom, threads, values), atom, by_thread, by_value, numbers)
            return copy, {"thread": threads, "vector": values}
        case ["tv", "tiler"]:
            text = OptionText("--tv", args.tv)
            layout_tv, tile = text.read(_layout_tv), OptionText("--tiler", args.tiler).read(_static_tiler)
            return _make(lambda: make_tiled_copy_tv(copy_atom, layout_tv, tile), atom, text, text), {}
        case ["cotiled", "data"]:
            text = OptionText("--cotiled", args.cotiled)
            atom_tv, data = text.read(_layout_tv), OptionText("--data", args.data).read(unswizzled_layout)
            return _make(lambda: make_cotiled_copy(copy_atom, atom_tv, data), atom, text, text), {}
        case ["mma"]:
            mma, make = read_tiled_mma(args, "--mma"), BY_MMA[args.operand]
            return _make(lambda: make(copy_atom, mma), atom, atom, atom), {}
        case _:
            raise TilefoldError(
                Code.CLI_VALUE,
                "a tiled copy is made of a thread and a value layout, of a thread-value layout and a tiler, or of an "
                "operand of a tiled MMA",
                "give --thr and --val, --tv and --tiler, --cotiled and --data, or --mma and --operand",
            )


def _layout_tv(text: str) -> Layout:
    layout = unswizzled_layout(text)
    if len(layout) != 2:
        raise LayoutError(Code.RANK_MISMATCH, f"a thread-value layout has two modes, not {len(layout)}")
    return layout


def _static_tiler(text: str) -> Any:
    tiler = parse_tiler(text)
    if not all(type(leaf) is int for leaf in leaves(tile_shape(tiler))):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, "the tiler of a tiled copy must be static, of integers")
    return tiler


def _make(
    make: Callable[[], TiledCopy],
    atom: OptionText,
    threads: OptionText,
    values: OptionText,
    numbers: OptionText | None = None,
) -> TiledCopy:
    """The tiled copy, or its mistake at the value that it comes from."""
    try:
        return make()
    except LayoutError as error:
        places = {Code.ATOM_VALUE_WIDTH: atom, Code.TOO_FEW_VALUES: values, Code.NOT_A_NUMBERING: numbers or threads}
        blamed = places.get(error.code, threads)
        raise blamed.error(error) from error
