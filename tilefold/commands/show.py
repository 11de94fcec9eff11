# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold show`: prints tiled copies and tiled MMAs in the form of CuTe's print."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import GMEM, RMEM, SMEM
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.launching import add_launch, add_simulation, choose_launches, simulation
from tilefold.commands.options import add_file, add_pictures, add_target, is_picture, read_source, write_pictures
from tilefold.driver.output import write_output, write_picture

if TYPE_CHECKING:
    from tilefold.driver.lowering import Program
    from tilefold.layout.drawing.drawings import Table
    from tilefold.layout.drawing.scene import Picture

_EPILOG = """\
examples:
  tilefold show tiled-copy --thr "(2,3):(3,1)" --val "(2,3):(1,2)" --atom copy.64 --type f64 --table
  tilefold show tiled-mma --atom SM80_16x8x16_F32F16F16F32_TN --atoms "(2,2,1)" --permute "(32,32,16)"
  tilefold show kernel.cute -o kernel.html
  tilefold show kernel.cute --accesses -o banks.svg
  tilefold show 'S<3,3,3> o 0 o (8,64):(64,1)' -o swizzle.svg
  tilefold show tiled-copy --help
"""

_PROGRAM = """\
Draws a program's use of threads and memory: each tiled copy, source and destination side by side; the fragments A, B
and C of each tiled MMA; each tensor in shared memory, with its swizzle, by the 32 banks; and with --accesses the lanes
that each bank serves in the worst execution of each access, and who holds and uses the columns of tensor memory when.
Or draws an expression of the layout algebra: a layout, a
tiled copy or a tiled MMA.
"""

_C_ATOM = """\
Prints the steps of CuTe's make_tiled_copy_C_atom for atoms that move 1, 2, 4, ... values of a thread: the first
values of each thread in the accumulator's tile (layout_TV), the places that they cover (tiler), these places in the
tile (tile2mma), and the place among them of each value of each thread (layout_tv, with its table). --table, --svg and
--png show the thread and value at each place of the copy's tile.
"""

_C_ATOM_EPILOG = """\
examples:
  tilefold show c-atom --atom SM80_16x8x16_F16F16F16F16_TN --permute "(16,8,16)" --copy-V 1,2,4
  tilefold show c-atom --atom SM80_16x8x16_F16F16F16F16_TN --copy-V 2 --table --svg c_atom.svg
"""

_TILED_MMA = """\
Prints in the form of CuTe's print: the tiled MMA made of an atom, a layout of atoms and a permutation; the tile that
all its threads multiply at once; for each operand the layout that maps (thread, value) to a place in the tile; and the
place of one thread among the atoms, with its part of each given tensor and the fragment for that part.
"""

_TILED_MMA_EPILOG = """\
atoms: CuTe's names, such as SM80_16x8x16_F32F16F16F32_TN, SM80_16x8x8_F32TF32TF32F32_TN, UniversalFMA<float>.

example: four warps, each multiplies 16 x 16 x 16 of a tile of 32 x 32 x 16:
  tilefold show tiled-mma --atom SM80_16x8x16_F32F16F16F32_TN --atoms "(2,2,1):(1,2,4)" --permute "(32,32,16)" \\
      --A "(128,32):(32,1)" --thread 37
others:
  tilefold show tiled-mma --atom SM70_8x8x4_F32F16F16F32_NT --table
  tilefold show tiled-mma --atom SM80_16x8x16_F32F16F16F32_TN --A "(100,?):(1,100)" --ragged
  tilefold show tiled-mma --atom "UniversalFMA<float>" --atoms "(16,16,1):(1,16,0)" --permute "[(16,4):(4,1);_;_]"
"""

_TILED_COPY = """\
Prints in the form of CuTe's print: a source and a destination tensor, the tile of a block, the tiled copy made of an
atom and of thread and value layouts, one thread's slice of it, and the parts of the tensors that this thread copies.
--src, --dst and --cta-tiler are optional; without --cta-tiler, the copy partitions the whole source.
"""

_TILED_COPY_EPILOG = """\
layouts: "(8,4):(1,8)", nested "((2,4),8):((8,1),16)", swizzled "S<3,3,3> o 0 o (64,64):(64,1)";
  "(_8,_4):(_1,_8)" and "Sw<3,3,3>" are also valid, and a shape alone, "(8,4)", is compact.
tilers: "(128,32)", or a layout for each mode "[4:2;(2,8):(1,4)]".
types: f16, bf16, f32, f64, f8E4M3FN, i8, si4, ..., e4m3, tf32, u16, ..., half_t, float_e4m3_t, uint16_t, float,
  ..., Float16, ..., or a width such as 16b.
atoms: CuTe's names, such as UniversalCopy<uint128_t>, UniversalCopy<double>, SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>,
  SM75_U32x4_LDSM_N, AutoVectorizingCopy; or copy.128 (8 to 128 bits), cp.async.ca.16 (4, 8, 16 bytes),
  cp.async.cg.16, ldmatrix.x4, ldmatrix.x4.trans (x1, x2, x4), stmatrix.x4, stmatrix.x4.trans, auto.
spaces: gmem, smem and rmem print gmem_ptr, smem_ptr and ptr; 'ptr' is memory without a tag, such as an
  ordinary host array.

Write '?' for run-time extents and strides, and '?{div=8}' if 8 divides them. With --ragged, tiles may extend beyond
their tensor. The last lines then give the excess and the number of the thread's elements inside.

Coordinate and thread index are run-time integers and everything else is static, as in a kernel; with --run-time-tiler
the extents of the CTA tiler are run-time integers too, as in make_shape(bM, bN, bK) of ints. Static integers print as
_8, like in C++; --plain omits the underscores. Pointers are addresses in bytes from an arbitrary start; if a tile or a
part starts elsewhere than its tensor, the last lines give the distance in elements. A part of a swizzled tensor is a
plain layout unless it covers two bits that the swizzle combines; its strides then depend on the thread.

example: 1024 x 1024 elements of 16 bits, column-major; 32 threads copy a 128 x 32 tile to shared memory by
cp.async, 16 bytes each at a time:
  tilefold show tiled-copy --src "(1024,1024):(1,1024)" --dst "(128,32):(1,128)" --type u16 \\
      --cta-tiler "(128,128,32)" --cta-coord "(0,0,_)" --proj "(1,X,1)" --run-time-tiler \\
      --thr "(8,4):(1,8)" --val "(8):(1)" --atom "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>" --thread 0
others:
  tilefold show tiled-copy --thr "(2,3):(3,1)" --val "(2,3):(1,2)" --atom copy.64 --type f64 --table
  tilefold show tiled-copy --thr "(8,4):(1,8)" --val "8:1" --atom copy.128 --type f16 --src "(1000,30):(1,1000)" \\
      --cta-tiler "(64,8)" --cta-coord "(15,3)" --ragged --thread 5
  tilefold show tiled-copy --thr "(8,4):(1,8)" --val "8:1" --atom copy.128 --type f16 --ragged \\
      --src "(?,?):(1,?{div=8})" --cta-tiler "(64,8)" --cta-coord "(1,_)"
  tilefold show tiled-copy --tv "((4,8),(2,2,2)):((32,1),(16,8,128))" --tiler "(16,16)" --atom ldmatrix.x4 \\
      --type f16 --src "S<3,3,3> o 0 o (64,64):(64,1)" --src-space smem --thread 9
"""


KINDS = ("file", "tiled-copy", "tiled-mma", "c-atom")


def with_kind(words: Sequence[str]) -> list[str]:
    """The arguments, with `file` before a program or an expression that follows `show` itself."""
    bare = len(words) > 1 and words[1] not in KINDS and not words[1].startswith("--") and words[1] != "-h"
    return [words[0], "file", *words[1:]] if bare else list(words)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the things to show, each with its options."""
    parser.epilog = _EPILOG
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)

    def add(name: str, summary: str, description: str, epilog: str | None = None) -> argparse.ArgumentParser:
        form = argparse.RawDescriptionHelpFormatter
        made = kinds.add_parser(
            name, help=summary, description=description, epilog=epilog, formatter_class=form, allow_abbrev=False
        )
        made.set_defaults(parser=made)
        return made

    summary = "draw a program's copies, multiplications and shared memory, or an expression; the word is optional"
    _add_program(add("file", summary, _PROGRAM))
    copy = add("tiled-copy", "the tensors, tiles and partitions of a tiled copy", _TILED_COPY, _TILED_COPY_EPILOG)
    tensors = copy.add_argument_group("tensors")
    tensors.add_argument("--src", metavar="LAYOUT", help="the layout of the source tensor")
    tensors.add_argument("--dst", metavar="LAYOUT", help="the layout of the destination tensor")
    tensors.add_argument("--type", metavar="TYPE", required=True, help="the type of their elements")
    spaces = (GMEM.name, SMEM.name, RMEM.name, RMEM.pointer)
    tensors.add_argument("--src-space", choices=spaces, default=GMEM.name, help="where the source is (default: gmem)")
    tensors.add_argument(
        "--dst-space", choices=spaces, default=RMEM.pointer, help="where the destination is (default: ptr)"
    )
    tensors.add_argument("--name", default="A", help="the letter in the names of the tensors (default: A)")
    tile = copy.add_argument_group("the tile of a block (CuTe's local_tile of the source)")
    tile.add_argument("--cta-tiler", metavar="TILER", help="the tile")
    tile.add_argument("--cta-coord", metavar="COORD", help="which tile; _ keeps a mode (default: the first tile)")
    tile.add_argument(
        "--proj", metavar="STEP", help="which modes of tiler and coordinate count: X drops one, 1 keeps it"
    )
    tile.add_argument("--run-time-tiler", action="store_true", help="the tiler's extents are run-time integers")
    _add_ragged(tile)
    made = copy.add_argument_group(
        "the tiled copy, of --thr and --val, --tv and --tiler, --cotiled and --data, or --mma"
    )
    made.add_argument("--atom", required=True, help="the copy atom")
    made.add_argument("--thr", metavar="LAYOUT", help="the thread layout: place in the tile to thread")
    made.add_argument(
        "--val", metavar="LAYOUT", help="the value layout: place in a thread's part to value (default: 1:0)"
    )
    made.add_argument("--tv", metavar="LAYOUT", help="(thread,value) to a place in the tile")
    made.add_argument("--tiler", metavar="TILER", help="the tile that --tv covers")
    made.add_argument("--cotiled", metavar="LAYOUT", help="(thread,value) to an index that --data takes")
    made.add_argument("--data", metavar="LAYOUT", help="the layout of the data of --cotiled")
    made.add_argument("--mma", metavar="ATOM", help="the MMA atom of a tiled MMA, with --atoms and --permute")
    made.add_argument("--atoms", metavar="LAYOUT", help="place of an atom in (M,N,K) to the threads that execute it")
    made.add_argument("--permute", metavar="TILER", help="for M, N and K a tile size, a layout that reorders it, or _")
    made.add_argument("--operand", choices=("A", "B", "C", "C_atom"), default="A", help="the copied operand of the MMA")
    made.add_argument("--thread", metavar="N", default="0", help="the index of the thread to show (default: 0)")
    form = copy.add_argument_group("form")
    form.add_argument("--plain", action="store_true", help="canonical text: no marks on static integers")
    form.add_argument("--tv-layouts", action="store_true", help="also print get_layoutS_TV() and get_layoutD_TV()")
    form.add_argument("--table", action="store_true", help="also print the thread and value at each place of the tile")
    add_pictures(form, "these tables")

    mma = add("tiled-mma", "the threads, values and fragments of a tiled MMA", _TILED_MMA, _TILED_MMA_EPILOG)
    _add_mma_arguments(mma)
    c_atom = add("c-atom", "how make_tiled_copy_C_atom finds its layout", _C_ATOM, _C_ATOM_EPILOG)
    _add_tiled_mma_options(c_atom)
    c_atom.add_argument("--copy-V", metavar="LIST", default="1,2,4", help="values that the copy atom moves (1,2,4)")
    _add_form(c_atom)


def _add_ragged(parser: Any) -> None:
    text = "tiles may extend beyond their tensor, like the last ones of ragged views"
    parser.add_argument("--ragged", action="store_true", help=text)


def _add_tiled_mma_options(parser: argparse.ArgumentParser) -> None:
    made = parser.add_argument_group("the tiled MMA")
    made.add_argument("--atom", required=True, help="the MMA atom")
    made.add_argument("--atoms", metavar="LAYOUT", help="place of an atom in (M,N,K) to the threads that execute it")
    made.add_argument("--permute", metavar="TILER", help="for M, N and K a tile size, a layout that reorders it, or _")


def _add_mma_arguments(mma: argparse.ArgumentParser) -> None:
    _add_tiled_mma_options(mma)
    for operand, modes in (("A", "M,K"), ("B", "N,K"), ("C", "M,N")):
        mma.add_argument(f"--{operand}", metavar="LAYOUT", help=f"the layout of a tensor {operand} ({modes})")
    _add_ragged(mma)
    mma.add_argument("--thread", metavar="N", default="0", help="the index of the thread to show (default: 0)")
    _add_form(mma)


def _add_form(parser: argparse.ArgumentParser) -> None:
    form = parser.add_argument_group("form")
    form.add_argument("--plain", action="store_true", help="canonical text: no marks on static integers")
    form.add_argument("--table", action="store_true", help="also print the thread and value at each place")
    add_pictures(form, "these tables")


def _print(
    args: argparse.Namespace,
    lines: "Iterable[str]",
    tables: "Callable[[], Iterable[Table]]",
    picture: "Callable[[], Picture]",
) -> None:
    """Prints lines and, if they are asked for, tables; writes the picture to the files that are named."""
    from tilefold.layout.drawing.drawings import make_text_table

    text = "\n".join(lines) + "\n"
    if args.table:
        text += "\n" + "\n".join(map(make_text_table, tables()))
    write_pictures(args, picture)
    write_output(text, None if is_picture(args.output) else args.output)


def _execute_mma(args: argparse.Namespace) -> int:
    from tilefold.layout.drawing.drawings import operand_tables
    from tilefold.layout.drawing.pictures import picture
    from tilefold.tools.show.tiled_mma import read_mma

    request = read_mma(args)
    _print(args, request.lines(), lambda: operand_tables(request.mma), lambda: picture(request.mma))
    return 0


def _execute_c_atom(args: argparse.Namespace) -> int:
    from tilefold.layout.drawing.pictures import draw_tables
    from tilefold.tools.show.c_atom import read_c_atom

    request = read_c_atom(args)
    title = f"C_atom of {request.mma.atom.name}"
    _print(args, request.lines(), request.tables, lambda: draw_tables(request.tables(), title))
    return 0


def _add_program(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_target(parser, None, f"{DEFAULT_ARCH}, or one that supports the kernel")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="write this file, which ends in .svg, .png or .html"
    )
    parser.add_argument(
        "--accesses",
        action="store_true",
        help="simulate the launches, and add for each access to shared memory its worst execution: the lanes by banks; "
        "and the columns of tensor memory over time",
    )
    add_launch(parser)
    add_simulation(parser)


def _execute_program(args: argparse.Namespace) -> int:
    from tilefold.driver.lowering import load
    from tilefold.tools.show.program_pictures import page, pictures_of, stack

    kind = args.output.lower().rpartition(".")[2]
    if kind not in ("svg", "png", "html"):
        raise TilefoldError(Code.CLI_VALUE, f"-o {args.output[:100]}: must end in .svg, .png or .html")
    left_out: list[str] = []
    if _is_file(args.file):
        program = load(read_source(args), args.target)
        with program.explaining():
            pictures = [
                *(_accesses(args, program, left_out) if args.accesses else ()),
                *pictures_of(program.module, left_out),
            ]
        for text in left_out:
            print(f"left out: {text}", file=sys.stderr)
        if not pictures:
            hint = "tiled copies, tiled MMAs and tensors in shared memory have pictures, and accesses with --accesses"
            raise TilefoldError(Code.CLI_VALUE, f"{args.file[:100]} has nothing to draw", hint)
    else:
        pictures = _of_expression(args.file)
    if kind == "html":
        write_output(page(args.file, pictures), args.output)
    else:
        write_picture(stack(pictures), args.output, png=kind == "png")
    return 0


def _is_file(text: str) -> bool:
    """Whether a program is to be drawn, and no expression: an expression has no suffix."""
    return text == "-" or text.endswith(".cute") or Path(text).exists()


def _of_expression(text: str) -> "list[Picture]":
    """The picture of an expression of the layout algebra, or of several with `;` between them."""
    from tilefold.commands.layout import drawn
    from tilefold.layout.drawing.pictures import picture
    from tilefold.layout.text.evaluate import Evaluator
    from tilefold.tools.show.option_text import OptionText

    written = OptionText("expression", text)
    with written.blamed():
        return [picture(drawn(result.value)) for result in written.read(Evaluator().run) if not result.name]


def _accesses(args: argparse.Namespace, program: "Program", left_out: list[str]) -> "Iterator[Picture]":
    """The worst execution of each access to shared memory, those with most conflicts first, and the columns of tensor
    memory over time, as the simulator sees them. `left_out` gets the number of the accesses to one place.
    """
    from dataclasses import replace

    from tilefold.driver.column_picture import column_picture
    from tilefold.layout.drawing.pictures import draw_tables
    from tilefold.runtime.sim.memory.sampler import Sampler
    from tilefold.runtime.sim.memory.space_state import wavefronts
    from tilefold.runtime.sim.preparation import SimProgram
    from tilefold.runtime.sim.timeline import Timeline
    from tilefold.tools.show.program_pictures import lane_table

    target = program.simulated_target("instr")
    module = program.reached("instr", target)
    for launch in choose_launches(args, program, "launch its kernels by run.launch"):
        arguments, config, engine = simulation(args, launch)
        sampler = Sampler()
        timeline = Timeline(other=sampler, target=target)
        observed = replace(engine, journal=timeline)
        observed.launch(SimProgram(module, launch.kernel), config, arguments.launchable())
        tables: list[tuple[int, Table]] = []
        single = 0
        for (site, space), sampled in sampler.sampled.items():
            if space == SMEM.ptx and sampled.patterns:
                worst = sampled.worst()
                if len(set(worst.offsets.tolist())) == 1:
                    single += 1
                    continue
                total, least = wavefronts(worst.offsets, worst.lanes, sampled.width)
                count = f"{total - least} bank conflict{'' if total - least == 1 else 's'}"
                if total > least:
                    count += f", {total} wavefronts instead of {least}"
                title = f"{count}: {site}, the lanes that each bank serves"
                table = lane_table(title, worst.offsets.tolist(), worst.lanes.tolist(), sampled.width)
                tables.append((least - total, table))
        for _, table in sorted(tables, key=lambda pair: pair[0]):
            yield draw_tables([table])
        if single:
            accesses = "1 access" if single == 1 else f"{single} accesses"
            left_out.append(f"{accesses} to shared memory of {launch.label}, in which all lanes want the same place")
        if (cells := column_picture(launch.label, timeline.columns)) is not None:
            yield cells


def execute(args: argparse.Namespace) -> int:
    """Prints the requested lines, tables and pictures."""
    if args.kind == "file":
        return _execute_program(args)
    for name, value in vars(args).items():
        if value == []:  # argparse's value for the text "--"
            setattr(args, name, "--")
    if args.kind == "tiled-mma":
        return _execute_mma(args)
    if args.kind == "c-atom":
        return _execute_c_atom(args)
    from tilefold.layout.drawing.drawings import thread_value_tables
    from tilefold.layout.drawing.pictures import picture
    from tilefold.tools.show.options import read_request

    request = read_request(args)
    _print(args, request.lines(), lambda: thread_value_tables(request.copy), lambda: picture(request.copy))
    for warning in request.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    return 0
