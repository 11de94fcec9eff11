# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The map from the source to its code and back: made of a program, and as text."""

from pathlib import Path

from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.emit.lineinfo import source_files
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.machine.assemble import AssembleError, Cubin, assemble
from tilefold.compiler.machine.nvdisasm import disassemble
from tilefold.compiler.reports.listing import Lister
from tilefold.compiler.reports.source_map import CodeLine, SourceMap, Spot, ir_lines, map_ptx_lines, map_sass_lines
from tilefold.driver.lowering import Program
from tilefold.driver.ptx_program import PtxProgram
from tilefold.runtime.settings import ptxas_settings


def source_map(program: Program, target: Target) -> SourceMap:
    """The operations of stage `instr`, the PTX and the machine code of a program, by the lines of its source.

    Machine code is left out where there is no assembler for the kernel or no nvdisasm. Raises ProgramError if a pass
    refuses the program.
    """
    module = program.reached("instr", target)
    files = source_files(program.entries(target))
    forms = {
        "ir": ir_lines(Lister().list(module)),
        "ptx": map_ptx_lines(program.ptx(target, lines=True), files),
    }
    try:
        with_lines = program
        if not program.writes_lines():
            with_lines = Program(program.source, program.module, program.context, program.target, lines=True)
        text = disassemble(with_lines.cubin(target).code, ptxas_settings().cuda_home)
    except AssembleError as error:
        if error.code != Code.ASSEMBLE_UNAVAILABLE:
            raise
        return SourceMap(forms, {"sass": error.message})
    return SourceMap({**forms, "sass": map_sass_lines(text, files)}, {})


def ptx_source_map(program: PtxProgram, target: Target) -> tuple[SourceMap, Cubin | None]:
    """The operations, the PTX and the machine code of a program that was read from PTX, by the lines of its source: the
    PTX itself, or that from which a compiler made it. Also the machine code with the figures of its kernels.
    """
    read, name = program.read, program.source.name
    if read.compiled_text:
        files = {read.module.files[number]: file for number, file in read.files.items()}
        ptx = map_ptx_lines(read.compiled_text, files)
    else:
        lines = enumerate(program.source.text.splitlines(), 1)
        ptx = [CodeLine(number, text, (name, number) if _is_code(text) else None) for number, text in lines]
    forms = {"ir": ir_lines(Lister().list(program.module)), "ptx": ptx}
    try:
        cubin = assemble(read.compiled_text or program.source.text, target)
        text = disassemble(cubin.code, ptxas_settings().cuda_home)
    except AssembleError as error:
        return SourceMap(forms, {"sass": error.message}), None
    return SourceMap({**forms, "sass": map_sass_lines(text, {})}, {}), cubin


def _is_code(line: str) -> bool:
    """Whether a line of PTX is more than a directive, a comment, or a brace."""
    return not line.lstrip().startswith((".", "//", "{", "}", "(", ")")) and bool(line.strip())


def by_lines(source_map: SourceMap, source: Source) -> str:
    """Each line of the source, followed by the code that it became."""
    parts: list[str] = []
    for file, line in source_map.spots():
        parts.append(f"{_name((file, line))}: {source.line_of(file, line).strip()}")
        parts += [f"  {form:4} {code.number:>5}  {code.text.strip()}" for form, code in source_map.at((file, line))]
    return _text(parts, source_map)


def by_code(source_map: SourceMap, form: str, source: Source) -> str:
    """The code in one form, each line with that of the source before it, and the text of this where it changes."""
    lines = source_map.forms.get(form, ())
    width = max((len(_name(line.spot)) for line in lines if line.spot is not None), default=0)
    parts: list[str] = []
    last: Spot | None = None
    for line in lines:
        if line.spot is not None and line.spot != last:
            parts.append(f"{_name(line.spot):{width}}  // {source.line_of(*line.spot).strip()}")
            last = line.spot
        parts.append(_show_code_line(line, width))
    return _text(parts, source_map)


def _show_code_line(line: CodeLine, width: int) -> str:
    return f"{_name(line.spot) if line.spot else '':{width}}  {line.text.expandtabs(8)}".rstrip()


def _text(parts: list[str], source_map: SourceMap) -> str:
    parts += [f"no {form}: {why}" for form, why in source_map.missing.items()]
    return "".join(f"{part}\n" for part in parts)


def _name(spot: Spot) -> str:
    return f"{Path(spot[0]).name}:{spot[1]}"
