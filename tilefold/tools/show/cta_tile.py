# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tile of a block, from the options --cta-tiler, --cta-coord and --proj."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import Layout, LayoutLike, Tiler, plain_layout, size
from tilefold.layout.algebra.divide import zipped_divide
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves, wrap
from tilefold.layout.algebra.scalars import run_time
from tilefold.layout.algebra.swizzled_slice import slice_as_cute
from tilefold.layout.text.layouts import parse_coord, parse_tiler
from tilefold.layout.tiling.partition import inner_partition, project
from tilefold.tools.show.option_text import OptionText, has_unknowns
from tilefold.tools.show.ragged import check_covered
from tilefold.tools.show.view import CtaTile, Tensor


def read_cta_tile(args: argparse.Namespace, src: Tensor | None) -> CtaTile | None:
    """The tile that the options choose of the source, or None without --cta-tiler. OptionError for faulty ones."""
    if args.cta_tiler is None or src is None:
        _refuse_useless(args, "--src" if src is None else "--cta-tiler")
        return None
    tiler_text = OptionText("--cta-tiler", args.cta_tiler)
    tiler = tiler_text.read(lambda text: _known(parse_tiler(text)))
    count = len(wrap(tiler))
    step = None
    used = list(range(count))
    if args.proj is not None:
        proj_text = OptionText("--proj", args.proj)
        step = proj_text.read(_step)
        _check_rank(step, count, proj_text)
        used = [i for i, keep in enumerate(step) if keep is not None]
    chosen = tiler if step is None else project(step, tiler)
    _check_tiler(src.layout, chosen, tiler_text, used, args.ragged)
    origin = f"({','.join(['0'] * count)})" if isinstance(tiler, tuple) else "0"
    coord_text = OptionText("--cta-coord", args.cta_coord or origin)
    coord = coord_text.read(lambda text: _known(parse_coord(text)))
    if step is not None:
        _check_rank(coord, count, coord_text)
        coord = project(step, coord)
    _check_coord(src.layout, chosen, coord, coord_text, used)
    with tiler_text.blamed():
        part, cut = inner_partition(src.layout, chosen, coord), partial(inner_partition, tiler=chosen, coord=coord)
        if not has_unknowns(src.layout):
            applied = run_time(chosen) if args.run_time_tiler else chosen
            shown = inner_partition(src.layout, applied, run_time(coord), slice_as_cute)
        elif args.run_time_tiler:
            message = "--run-time-tiler prints the values of run-time integers, but '?' has no value"
            raise LayoutError(Code.CLI_VALUE, message, "leave out --run-time-tiler, or write numbers for '?'")
        else:
            shown = part
        name = src.name.replace("_tensor_", "_cta_tensor_")
        return CtaTile(src.part(name, shown), part[0], chosen, cut)


def _refuse_useless(args: argparse.Namespace, needed: str) -> None:
    given = (("--cta-tiler", args.cta_tiler), ("--cta-coord", args.cta_coord), ("--proj", args.proj))
    for option, text in given:
        if text is not None:
            raise OptionText(option, text).fail(Code.CLI_VALUE, f"it needs {needed}", f"give {needed} as well")


def _known(t: Any) -> Any:
    """`t`, a tiler or a coordinate, if its integers have values."""
    if any(isinstance(leaf, Unknown) for part in leaves(t) for leaf in leaves(getattr(part, "shape", part))):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, "all its integers must have values", "write a number for '?'")
    return t


def _step(text: str) -> tuple[Any, ...]:
    """A projection, from `(1,X,1)`, `(1,_,1)` or `Step<_1,X,_1>`; X and _ become None."""
    stripped = text.strip()
    if stripped.startswith("Step<") and stripped.endswith(">"):
        text = f"    ({stripped[5:-1]})"  # the blanks keep offsets of mistakes right
    step = wrap(parse_coord(text))
    if not all(s is None or type(s) is int for s in step) or not any(type(s) is int for s in step):
        raise LayoutError(Code.CLI_VALUE, "a projection is a tuple of X and at least one 1", "for example (1,X,1)")
    return step


def _check_rank(given: Any, count: int, text: OptionText) -> None:
    if len(wrap(given)) != count:
        raise text.fail(Code.RANK_MISMATCH, f"it has {len(wrap(given))} modes, and the tiler {count}")


def _check_tiler(layout: LayoutLike, tiler: Tiler, text: OptionText, used: Sequence[int], ragged: bool) -> None:
    """Refuses tiles that do not cover the tensor exactly unless they may be `ragged`, marking the mode; `used` are its
    places in the text.
    """
    inner = plain_layout(layout)
    if not isinstance(tiler, tuple):
        with text.blamed():
            if not ragged:
                check_covered(inner, tiler)
        return
    parts = wrap(tiler)  # pyright: ignore[reportUnknownArgumentType]
    if len(parts) > len(inner):
        raise text.fail(
            Code.RANK_MISMATCH,
            f"it has {len(parts)} modes for a tensor of {len(inner)}",
            "leave modes out with --proj" if len(used) == len(parts) else "",
        )
    for place, number in enumerate(() if ragged else used):
        try:
            check_covered(inner, (*[None] * place, parts[place]))
        except LayoutError as error:
            raise text.error(error, *text.part(number)) from error


def _check_coord(layout: LayoutLike, tiler: Tiler, coord: object, text: OptionText, used: Sequence[int]) -> None:
    """Refuses a coordinate beyond the tiles, marking the mode."""
    inner = plain_layout(layout)
    rest: Layout = zipped_divide(inner, tiler)[1]
    if not isinstance(coord, tuple):
        _check_index(coord, rest.size, text, None)
        return
    parts = wrap(coord)  # pyright: ignore[reportUnknownArgumentType]
    if len(parts) > len(rest):
        raise text.fail(Code.RANK_MISMATCH, f"it has {len(parts)} modes; there are {len(rest)} to select from")
    for place, (part, mode) in enumerate(zip(parts, rest, strict=False)):
        span = text.part(used[place] if place < len(used) else place)
        with text.blamed():
            mode(part)  # refuses a part that does not fit the profile
        _check_index(part, size(mode), text, span)


def _check_index(index: object, count: object, text: OptionText, span: tuple[int, int] | None) -> None:
    if type(index) is int and type(count) is int and not 0 <= index < count:
        raise text.fail(Code.CLI_VALUE, f"there is no tile {index}", f"tiles are numbered 0 to {count - 1} here", span)
