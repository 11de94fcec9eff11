# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold explain E0203`: the cause of an error, an example, and the cure. `tilefold explain FILE`: the decisions of
the compiler for a program, and its costs, line by line.
"""

import argparse
import re
from difflib import get_close_matches
from itertools import groupby
from textwrap import fill, indent
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.explanations import Sample, explanation
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.launching import add_launch, add_simulation, choose_launches, load_program, simulated_costs
from tilefold.commands.options import add_cache, add_parameters, add_target
from tilefold.driver.output import write_output

if TYPE_CHECKING:
    from tilefold.driver.lowering import Program

_CODE = re.compile(r"[Ee]?\d{1,5}|[Ee]\d\w*")
_EPILOG = """\
For a file without options, the command prints the compiler's remarks. `-o report.html` writes a self-contained page
instead: source, code at every stage, passes, remarks, faults, costs, layouts as pictures, and resources.

--costs runs each launch of the file on the simulator, and prints a table of its lines, the most costly first:
wavefronts of shared memory and sectors of global memory beside the least possible numbers, the bytes of the sectors
beside the distinct bytes, the lanes that meet in a bank, and the reasons for narrow accesses. For a tensor with bank
conflicts it tries swizzles and padding in further launches. It also launches without each barrier.

examples:
  tilefold explain E3206                    the cause of an error, an example, and the cure
  tilefold explain                          all codes
  tilefold explain kernel.cute              the decisions of the compiler, line by line
  tilefold explain kernel.cute -o report.html   everything on one page
  tilefold explain kernel.ptx -o report.html --block 128 --arg A=f32[128] --fill A=arange
  tilefold explain kernel.cute --source     the code of each line: operations, PTX, machine code
  tilefold explain kernel.cute --source=sass    the machine code, with the line of each instruction
  tilefold explain kernel.cute --costs      the costs of the lines, and cheaper variants
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `explain`."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "what", nargs="*", metavar="CODE|FILE", help="codes to explain, such as E0203 (default: list all), or a program"
    )
    group = parser.add_argument_group("of a FILE")
    add_parameters(group)
    add_target(group, None, f"{DEFAULT_ARCH}, or one that supports the kernel")
    group.add_argument("--costs", action="store_true", help="print the simulated cost of each line")
    group.add_argument(
        "--source",
        nargs="?",
        const="lines",
        choices=("lines", "ir", "ptx", "sass"),
        metavar="=FORM",
        help="print each line's operations at stage instr, PTX and machine code; =ir, =ptx or =sass print that form, "
        "with the source line of each of its lines",
    )
    group.add_argument(
        "-o", "--output", metavar="OUT", help="write to this file; a page with everything, if it ends in .html"
    )
    add_launch(group)
    add_simulation(group)
    add_cache(group)


def execute(args: argparse.Namespace) -> int:
    """Prints the page of each code, a list of all codes, or the analysis of a file."""
    known = {code.id: code for code in Code}
    if len(args.what) == 1 and not _CODE.fullmatch(args.what[0]):
        args.file = args.what[0]
        return _explain_file(args)
    codes: list[str] = [_identifier(code) for code in args.what]
    for identifier in codes:
        if identifier not in known:
            near = get_close_matches(identifier, sorted(known), 3)
            hint = f"did you mean {', '.join(near)}? " if near else ""
            message = f"unknown error code '{identifier}'"
            raise TilefoldError(Code.CLI_VALUE, message, f"{hint}`tilefold explain` lists them all")
    text = "\n\n".join([_page(known[identifier]) for identifier in codes]) if codes else _list()
    write_output(f"{text}\n", args.output)
    return 0


def _identifier(code: str) -> str:
    """A code as the catalogue writes it: its E and its zeros may be left out."""
    digits = code.upper().removeprefix("E")
    return f"E{digits:0>4}" if digits.isdigit() else code.upper()


def _explain_file(args: argparse.Namespace) -> int:
    from tilefold.driver.lowering import PTX_STAGE

    program = load_program(args)
    if program.simulated_stage == PTX_STAGE and not (args.costs or _is_page(args)):
        message = f"{args.file[:80]} has no stages before ptx, and no decisions of tilefold's compiler"
        raise TilefoldError(Code.CLI_VALUE, message, "-o report.html writes a page, --costs a table of costs")
    with program.explaining():
        if _is_page(args):
            text = _report(args, program)
        elif args.source:
            text = _source(program, args.source)
        elif args.costs:
            text = "\n".join(map(str, simulated_costs(args, program)))
        else:
            remarks = program.remarks(program.simulated_target("instr", by_stages=True), compiled=True)
            text = "".join(f"{remark.diagnostic.render()}\n" for remark in remarks)
    write_output(text, args.output)
    return 0


def _is_page(args: argparse.Namespace) -> bool:
    """Whether the name of the output asks for a report."""
    return (args.output or "").lower().endswith((".html", ".htm")) and not (args.source or args.costs)


def _report(args: argparse.Namespace, program: "Program") -> str:
    """The page about a program: of its launches too, if it has any."""
    from tilefold.commands.check import checked_launch
    from tilefold.dialects.run import LaunchOp
    from tilefold.driver.lowering import PTX_STAGE
    from tilefold.tools.joined import report_on

    is_ptx = program.simulated_stage == PTX_STAGE  # the options say its launch
    has_launches = is_ptx or args.launch is not None or any(isinstance(op, LaunchOp) for op in program.module.walk())
    launches = choose_launches(args, program, "launch its kernels by run.launch") if has_launches else []
    return report_on(program, [checked_launch(args, program, launch) for launch in launches])


def _source(program: "Program", form: str) -> str:
    """The map from the source to its code, or from the code in one form back."""
    from tilefold.driver.source_text import by_code, by_lines, source_map

    lines = source_map(program, program.simulated_target("instr"))
    return by_lines(lines, program.source) if form == "lines" else by_code(lines, form, program.source)


def _list() -> str:
    families = groupby(sorted(Code, key=lambda code: code.id), lambda code: code.area)
    return "\n\n".join(
        ["\n".join([area, *[f"  {code.id}  {code.summary}" for code in codes]]) for area, codes in families]
    )


def _page(code: Code) -> str:
    page = explanation(code)
    parts = [f"{code.id} ({code.area}): {code.summary}", f"Cause\n{_prose(page.cause)}"]
    parts += [f"Example\n{_code(page.example)}", f"Cure\n{_prose(page.cure)}"]
    return "\n\n".join([*parts, _code(page.cured)] if page.cured else parts)


def _prose(text: str) -> str:
    """Paragraphs, indented and no wider than 80 columns."""
    paragraphs = [fill(paragraph, 80, initial_indent="  ", subsequent_indent="  ") for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraphs)


def _code(sample: Sample) -> str:
    return indent(sample.text, "    ")
