# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/reference/, the pictures of the folders and of the route, and the grammar of editors from the code, and
the tables of README.md and docs/performance.md from the records: `python -m docs.generate`, or `make docs`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import getmodule, signature
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

import numpy as np
from tilefold.base.errors import Code
from tilefold.base.explanations import Sample, explanation
from tilefold.base.spaces import SPACES, Bytes, Cells
from tilefold.base.target import DEFAULT_ARCH, Target, known_targets
from tilefold.compiler.pipeline import OUR_DIALECTS, OUR_PASSES, PASSES, STAGES
from tilefold.dialects import gpu
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.copy_table import COPY_ATOMS
from tilefold.layout.atoms.instructions import Absent
from tilefold.layout.atoms.mma_table import MMA_ATOMS, SPARSE_ATOMS, mma_atom
from tilefold.layout.atoms.ptx_text import copy_text, mma_mnemonic
from tilefold.layout.atoms.tmem_copy import CP_SHAPES, SHAPES
from tilefold.layout.atoms.umma import UMMA_KINDS
from tilefold.layout.drawing.scene import Picture
from tilefold.passes.check_stage import LEGAL_TILE_OPS
from tilefold.runtime.check.fill import make_generators
from tilefold.runtime.check.functions import FUNCTIONS

from docs import folders, route
from docs.describe import dialect, docstring
from docs.figures import SHOWING, with_tables
from docs.python_api import in_a_row, python_pages
from docs.spaces import instructions_of
from tilefold.tools.editing.highlighting import grammar

REFERENCE = Path(__file__).parent / "reference"
GRAMMAR = Path(__file__).parent.parent / "editors" / "vscode" / "syntaxes" / "cute.tmLanguage.json"
PICTURES: Mapping[Path, Callable[[], Picture]] = MappingProxyType(
    {folders.ARCHITECTURE: folders.picture, route.ROUTE: route.picture}
)
"""The pictures that are drawn from the code, by their files."""

_NOTE = "<!-- Written by `make docs` from the code; change the docstrings there. -->\n\n"


def atoms() -> str:
    """The page of the atoms."""
    lines = [
        "# Atoms",
        "",
        "## Copy atoms",
        "",
        "An atom is named as in CuTe and moves values of a given type: "
        '`#tile.copy_atom<"SM75_U32x4_LDSM_N", f16>`. One without an instruction has layouts, but cannot copy. '
        "Where the name has a type of some width, another type of that width is as good: `UniversalCopy<double>` is "
        "`UniversalCopy<uint64_t>`. An atom that needs sm_100f runs on every target with a suffix from sm_100 on.",
        "",
        "| atom | threads | instruction | from | to | needs | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in COPY_ATOMS:
        atom = copy_atom(name)
        ptx = "none" if isinstance(atom.instruction, Absent) else f"`{copy_text(atom)}`"
        spaces = " | ".join([", ".join(map(str, side.spaces)) for side in (atom.source, atom.destination)])
        lines.append(f"| `{name}` | {atom.threads} | {ptx} | {spaces} | {atom.targets} | {atom.contract.section} |")
    lines += [
        "",
        "## MMA atoms",
        "",
        '`#tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">`. The name has the architecture, M, N and K, the types of D, '
        "A, B and C, and the majors of A and B; in those of a warpgroup, "
        "`SM90_64x128x16_F32F16F16_SS<Major::K,Major::K>`, C is D. "
        "`UniversalFMA<D,A,B,C>` multiplies A and B and adds C in the type of D, to which the others widen: "
        "`UniversalFMA<float,half_t>`, `UniversalFMA<int32_t,int8_t,uint8_t,int32_t>`.",
        "",
        "| atom | threads | instruction | needs |",
        "|---|---|---|---|",
    ]
    lines += map(_mma_row, MMA_ATOMS)
    lines += [
        "",
        "With a sparse A, whose K is twice that of the elements that are there. CuTe has no names for those of a warp; "
        "those of a warpgroup, `SM90_SPARSE_64x128x32_F32F16F16_SS<Major::K,Major::K>`, are in its namespace "
        "SM90::GMMA::SPARSE. They are the instructions `ptx.mma.sync.sp` and `ptx.wgmma.mma_async`, which take "
        "metadata; `tile.gemm` has none.",
        "",
        "| atom | threads | instruction | needs |",
        "|---|---|---|---|",
        *map(_mma_row, SPARSE_ATOMS),
    ]
    lines += ["", "## tcgen05", "", *_tensor_memory()]
    return "\n".join(lines) + "\n"


def _mma_row(name: str) -> str:
    mma = mma_atom(name)
    return f"| `{name}` | {mma.threads} | `{mma_mnemonic(mma)}` | {mma.targets} |"


def _tensor_memory() -> list[str]:
    """The atoms that reach tensor memory, of which there are many of each kind."""
    lines = [
        "Copies between tensor memory and registers, by four warps: `SM100_TMEM_LOAD_32dp32b8x` and "
        "`SM100_TMEM_STORE_32dp32b8x`, with 1, 2, 4 or more repetitions of a shape; with `_16b` at the end a register "
        "has the lower halves of two cells. Copies from shared memory: `SM100_UTCCP_4x32dp128bit_1cta`, with `_2cta` "
        "for a pair.",
        "",
        "| shape | PTX | most repetitions |",
        "|---|---|---|",
        *(f"| `{word}` | `.{name}` | {most} |" for name, (word, _, _, most) in SHAPES.items()),
        *(f"| `{word}` | `.{'.'.join(filter(None, form[:2]))}` | |" for word, form in CP_SHAPES.items()),
        "",
        "Multiplications into tensor memory: `SM100_MMA_F16BF16_2x1SM_SS<half_t,half_t,float,256,128,Major::K,"
        "Major::MN>` has the types of A, B and D, M and N of the pair, and the majors. Without `_2x1SM` one block "
        "multiplies; with `_TS` A is in tensor memory. After D there is the type of scale factors, if there are any, "
        "and for packed elements of 4 bits after N the values that share one. `_WS` is `.ws`, a name of tilefold's; "
        "`_SPARSE` has a sparse A. `SM103::SM103_MXF4_ULTRA_SS_VS` has K = 96.",
        "",
        "| name | kind | K | A: B | D | values and type of scale factors |",
        "|---|---|---|---|---|---|",
    ]
    for kind in UMMA_KINDS.values():
        inputs = "; ".join(f"{a}: {', '.join(b)}" for a, b in kind.inputs.items())
        scales = ", ".join(f"{values} {scale}" for values, scale in kind.scales)
        lines.append(f"| {kind.family} | {kind.name} | {kind.k} | {inputs} | {', '.join(kind.results)} | {scales} |")
    return lines


def passes() -> str:
    """The page of the passes."""
    parts = ["# Passes", "By name on the command line: `tilefold opt FILE -p fold-layouts,cse`."]
    for name, factory in OUR_PASSES.items():
        applied = factory()
        parts.append(f"## `{name}`")
        parts.append(docstring(applied))
        fields = [field for field in dataclasses.fields(applied) if field.name != "name"]
        if fields:
            options = [f"`{field.name}` (default `{field.default}`)" for field in fields]
            parts.append(f"Options: {', '.join(options)}.")
    others = ", ".join(f"`{name}`" for name in PASSES if name not in OUR_PASSES)
    parts.append(f"The pipeline also uses passes of xDSL: {others}.")
    return "\n\n".join(parts) + "\n"


def stages() -> str:
    """The page of the stages."""
    parts = ["# Stages", docstring(import_module("tilefold.passes.check_stage").CheckStagePass)]
    for stage in STAGES:
        legal = LEGAL_TILE_OPS[stage.name]
        operations = "all" if legal is None else ", ".join(f"`{op}`" for op in sorted(legal)) or "none"
        steps = "\n".join(f"1. `{text.format(target=DEFAULT_ARCH)}`" for text in stage.passes)
        parts.append(f"## `{stage.name}`\n\n{stage.summary[:1].upper()}{stage.summary[1:]}.")
        parts.append(f"The passes that lead here:\n\n{steps}\n\nOperations of `tile` that are legal: {operations}.")
    return "\n\n".join(parts) + "\n"


def memory_spaces() -> str:
    """The page of the memory spaces."""
    lines = ["# Memory spaces", "", docstring(import_module("tilefold.base.spaces")), ""]
    heads = "tensors", "PTX", "address", "one for each", "allocation", "instructions", "units on sm_80, sm_90a, sm_100a"
    lines += [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in SPACES.values():
        match row.form:
            case Bytes(bits):
                address = f"{bits} bits, in bytes"
            case Cells(lanes, columns):
                address = f"a lane of {lanes} and a column of {columns}, of {row.unit_bits} bits"
        limits = [row.limit(Target(name)) for name in ("sm_80", "sm_90a", "sm_100a")]
        units = ", ".join("any" if limit is None else str(limit) for limit in limits)
        reached = ", ".join(instructions_of(row)) or "none that tilefold has"
        cells = row.name, row.ptx, address, row.sharer.value, row.allocation.value, reached, units
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def errors() -> str:
    """The page of the error codes."""
    parts = ["# Error codes", docstring(import_module("tilefold.base.errors"))]
    parts.append("`tilefold explain CODE` prints the text of a code. Some cures are diffs against their example.")
    for area, codes in groupby(sorted(Code, key=lambda code: code.id), lambda code: code.area):
        parts.append(f"## {area[:1].upper()}{area[1:]}")
        parts += [_explained(code) for code in codes]
    return "\n\n".join(parts) + "\n"


def _explained(code: Code) -> str:
    page = explanation(code)
    parts = [f"### {code.id}: {code.summary}", page.cause, _fenced(page.example), page.cure]
    return "\n\n".join([*parts, _fenced(page.cured)] if page.cured else parts)


def _fenced(sample: Sample) -> str:
    return f"```{sample.kind}\n{sample.text}\n```"


def targets() -> str:
    """The page of the targets."""
    lines = ["# Targets", "", docstring(getmodule(Target)), "", f"The default is `{DEFAULT_ARCH}`.", ""]
    lines += ["| target | PTX ISA | shared memory of a block | runs on |", "|---|---|---|---|"]
    scope = {"": "this and every later GPU", "f": "its family", "a": "this GPU alone"}
    for name in known_targets():
        target = Target(name)
        version = f"{target.ptx_version // 10}.{target.ptx_version % 10}"
        lines.append(f"| `{name}` | {version} | {target.max_shared_bytes} bytes | {scope[target.suffix]} |")
    return "\n".join(lines) + "\n"


def expressions() -> str:
    """The page of the expression language of fills and checks."""
    parts = ["# Expressions", docstring(import_module("tilefold.dialects.run.grammar"))]
    parts += ["## Fills", docstring(import_module("tilefold.runtime.check.fill"))]
    parts.append(_functions(make_generators("A", (1,), np.dtype(np.float32), 0)))
    parts += ["## Checks", docstring(import_module("tilefold.runtime.check.condition"))]
    parts += ["## Functions", docstring(import_module("tilefold.runtime.check.evaluate"))]
    parts.append(_functions(FUNCTIONS))
    return "\n\n".join(parts) + "\n"


def _functions(functions: Mapping[str, object]) -> str:
    lines = ["| function | |", "|---|---|"]
    for name, function in functions.items():
        parameters: list[str] = []
        for parameter in signature(function).parameters.values():  # pyright: ignore[reportArgumentType]
            default = "" if parameter.default is parameter.empty else f"={parameter.default}"
            parameters.append(parameter.name + default)
        lines.append(f"| `{name}({', '.join(parameters)})` | {in_a_row(docstring(function))} |")
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    pages = {
        "atoms.md": atoms(),
        "passes.md": passes(),
        "stages.md": stages(),
        "errors.md": errors(),
        "targets.md": targets(),
        "spaces.md": memory_spaces(),
        "expressions.md": expressions(),
        "dialect-gpu.md": dialect(gpu.GPU, docstring(gpu), only=gpu.__name__),
    }
    for name, make in OUR_DIALECTS.items():
        introduction = docstring(import_module(f"tilefold.dialects.{name}"))
        pages[f"dialect-{name}.md"] = dialect(make(), introduction)
    pages |= python_pages()
    titles = {name: text.splitlines()[0].lstrip("# ") for name, text in pages.items()}
    index = [f"- [{titles[name]}]({name})" for name in sorted(pages)]
    pages["README.md"] = "# Reference\n\n" + "\n".join(index) + "\n"
    return {name: _NOTE + text for name, text in pages.items()}


def main() -> None:
    """Writes every page, the pictures, the tables and the grammar, and removes pages that are no longer made."""
    for page in SHOWING:
        page.write_text(with_tables(page), encoding="utf-8")
    for file, draw in PICTURES.items():
        file.write_text(draw().svg(), encoding="utf-8")
    GRAMMAR.write_text(grammar(), encoding="utf-8")
    REFERENCE.mkdir(exist_ok=True)
    made = pages()
    for stale in set(REFERENCE.glob("*.md")) - {REFERENCE / name for name in made}:
        stale.unlink()
    for name, text in made.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
