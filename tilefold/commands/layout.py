# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold layout`: evaluates the layout algebra on the command line."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.printable import printable
from tilefold.commands.options import add_pictures, is_picture, write_pictures
from tilefold.driver.output import terminal_of, write_output
from tilefold.layout.text.layouts import parse_int_tuple
from tilefold.tools.show.option_text import OptionText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilefold.layout.drawing.drawings import Table
    from tilefold.layout.drawing.scene import Picture
    from tilefold.layout.text.evaluate import Evaluator, Result

_EPILOG = """\
An expression is a layout, a tiler, a swizzle, a shape or a coordinate in its usual text. Any part of it may be a
call, a name or a mode: `f(a,b)` is an operation under its CuTe name, `A(3)` and `A(1,_)` a layout at a coordinate,
`A[0]` a mode, `size<0>(A)` an operation with template arguments, `A o B` a composition. `A=...` names a value for
later expressions; `;` separates expressions in one argument.

Tables, pictures and explanations show the expressions without a name, or the last one if all have names. --tv reads
the result as a map from (thread,value) to a place in the tile, whose shape --tile gives; a tiled copy or MMA knows its
tile.

examples:
  tilefold layout 'raked_product((8,4):(1,8), 8:1)'
  tilefold layout 'A=(8,4):(1,8)' 'B=complement(A,64)' 'logical_divide(B,4)' 'A o 4:2' 'A(3,1)'
  tilefold layout --table 'S<2,0,3> o 0 o (8,8):(8,1)'
  tilefold layout --tv --tile '(16,8)' '((4,8),(2,2)):((32,1),(16,8))'
  tilefold layout --tv --svg mma.svg 'make_tiled_mma(mma_atom("SM80_16x8x16_F32F16F16F32_TN"))'
  tilefold layout --explain 'composition((6,2):(8,2), (4,3):(3,1))'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `layout`."""
    parser.epilog = _EPILOG
    parser.add_argument("expressions", nargs="*", metavar="EXPR", help="the expressions to evaluate")
    parser.add_argument("--operations", action="store_true", help="list all operations and their arguments")
    parser.add_argument("--cxx", action="store_true", help="print static integers as CuTe C++ does: _8")
    parser.add_argument("--explain", action="store_true", help="explain the result step by step")
    drawn = parser.add_argument_group("tables")
    drawn.add_argument("--table", action="store_true", help="also print the index of every coordinate")
    drawn.add_argument("--tv", action="store_true", help="also print the thread and value at each place of a tile")
    drawn.add_argument("--tile", metavar="SHAPE", help="the shape of the tile for --tv (default: a column)")
    add_pictures(drawn, "print a picture instead")
    drawn.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour tables (default: on a terminal)"
    )


def execute(args: argparse.Namespace) -> int:
    """Prints the requested values."""
    from tilefold.layout.drawing.drawings import make_text_table
    from tilefold.layout.drawing.scene import side_by_side
    from tilefold.layout.text.evaluate import Evaluator

    if args.operations:
        write_output(_operations(), args.output)
        return 0
    if not args.expressions:
        raise TilefoldError(Code.CLI_VALUE, "no expression to evaluate", "write an expression, or --operations")
    if args.tile is not None and not args.tv:
        raise TilefoldError(Code.CLI_VALUE, "--tile is the tile of a thread-value picture", "add --tv")
    evaluator = Evaluator()
    results: list[tuple[OptionText, Result]] = []
    for text in args.expressions:
        written = OptionText("expression", text)
        results += [(written, result) for result in written.read(evaluator.run)]
    shown = [(written, result) for written, result in results if not result.name] or results[-1:]
    if args.explain:  # an explanation ends with the result
        defined = [value for value in results if value not in shown]
        blocks = [_results(defined, cxx=args.cxx)] if defined else []
        blocks += [_explanation(written, result, evaluator) for written, result in shown]
    else:
        blocks = [_results(results, cxx=args.cxx)]
    tile = None if args.tile is None else OptionText("--tile", args.tile).read(parse_int_tuple)
    if args.svg is not None or args.png is not None or is_picture(args.output):
        pictures: list[Picture] = []
        for written, result in shown:
            with written.blamed():
                pictures.append(_picture(result.value, tile, args))
        write_pictures(args, lambda: side_by_side(pictures))
    elif args.table or args.tv:
        colour = args.color == "always" or (args.color == "auto" and args.output is None and sys.stdout.isatty())
        for written, result in shown:
            with written.blamed():
                blocks += [make_text_table(table, colour=colour) for table in _tables(result.value, tile, args)]
        if colour:  # by control characters of ours, beside the texts of others in the results
            print(printable(blocks[0]), *blocks[1:], sep="\n", end="", file=terminal_of(sys.stdout))
            return 0
    write_output("\n".join(blocks), None if is_picture(args.output) else args.output)
    return 0


def _operations() -> str:
    """A line for each operation: its name and the kinds of its arguments, those in brackets optional."""
    from tilefold.layout.text.operations import OPERATIONS

    text = ""
    for name, operation in sorted(OPERATIONS.items()):
        least, most = operation.arity()
        kinds = [kind.name if i < least else f"[{kind.name}]" for i, kind in enumerate(operation.kinds)]
        text += f"{name}({', '.join(kinds)}{', ...' if most is None else ''})\n"
    return text


def _results(results: "Sequence[tuple[OptionText, Result]]", *, cxx: bool) -> str:
    """The lines of the values; those of several have their names before them."""
    from tilefold.layout.text.printing import cxx_style, lines, plain_style

    style = cxx_style if cxx else plain_style
    text = ""
    for written, result in results:
        with written.blamed():
            label = f"{result.name} = " if result.name else ""
            text += f"{label}{chr(10).join(lines(result.value, style))}\n"
    return text


def _explanation(written: OptionText, result: "Result", evaluator: "Evaluator") -> str:
    from tilefold.layout.text.explain import explain

    def explained(_: str) -> str:
        call = evaluator.prepare(result.expression)
        return f"{explain(call.operation.function, *call.arguments)}\n"

    return written.read(explained)


def _tables(value: object, tile: object, args: argparse.Namespace) -> "Sequence[Table]":
    from tilefold.layout.algebra.core import Layout
    from tilefold.layout.drawing.drawings import make_thread_value_table, tables

    if isinstance(value, Layout) and args.tv:
        return (make_thread_value_table(str(value), value, tile),)
    return tables(drawn(value, by_thread=args.tv))


def _picture(value: object, tile: object, args: argparse.Namespace) -> "Picture":
    from tilefold.layout.algebra.core import Layout
    from tilefold.layout.drawing.pictures import draw_tables, picture

    if isinstance(value, Layout) and args.tv:
        return draw_tables(_tables(value, tile, args))
    return picture(drawn(value, by_thread=args.tv))


def drawn(value: object, *, by_thread: bool = False) -> Any:
    """A value that has tables, `by_thread` one of threads and values. TilefoldError (E4003) for any other."""
    from tilefold.layout.algebra.core import ComposedLayout, Layout
    from tilefold.layout.atoms.copy_atom import CopyAtom
    from tilefold.layout.atoms.mma_atom import MmaAtom
    from tilefold.layout.tiling.tiled_copy import TiledCopy
    from tilefold.layout.tiling.tiled_mma import TiledMma

    of_threads = (TiledCopy, CopyAtom, TiledMma, MmaAtom)
    if not isinstance(value, of_threads if by_thread else (Layout, ComposedLayout, *of_threads)):
        kind = "thread-value layout" if by_thread else "layout"
        raise TilefoldError(Code.CLI_VALUE, f"the result is not a {kind}, so it has no table")
    return value
