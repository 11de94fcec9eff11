# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a kernel's machine code with its operations at stage `instr`: kinds of instructions that the assembler has
left out, and those that it runs one at a time.
"""

import re

from tilefold.base.assembler_warnings import assembler_warnings
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.machine.nvdisasm import disassemble
from tilefold.dialects.ptx import EntryOp, PtxOp
from tilefold.driver.lowering import Program
from tilefold.runtime.settings import ptxas_settings

_FORMS = {
    r"(bar|barrier)\.(?!cluster|warp)": r"BAR|WARPSYNC",
    r"cp\.async\.(ca|cg)": r"LDGSTS",
    r"cp\.async\.bulk\.(?!commit|wait|prefetch)": r"(UBLK|UTMA)\w*",
    r"mma\.": r"[A-Z]+MMA",
    r"wgmma\.mma": r"[A-Z]GMMA",
    r"ldmatrix": r"LDSM",
    r"stmatrix": r"STSM",
    r"st\.(\w+\.)*global": r"ST|STG",
    r"st\.(\w+\.)*shared": r"ST|STS",
    r"(atom|red)\.": r"(U)?(ATOM|RED)\w*",
    r"(fence|membar)\b(?!\.mbarrier_init|\.proxy)": r"MEMBAR|FENCE",
    r"setmaxnreg": r"USETMAXREG",
}
"""The instructions of PTX that have effects, and the operations of machine code that do the same."""
_FUNCTION = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
_OPERATION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", re.MULTILINE)


def assembler_changes(program: Program, kernel: str, target: Target) -> tuple[str, ...]:
    """The changes that the assembler makes to a kernel unasked, a line for each; or why that is not known."""
    name = kernel.rpartition("::")[2]
    entries = [entry for entry in program.entries(target) if entry.sym_name.data == name]
    try:
        cubin = program.cubin(target)
        text = disassemble(cubin.code, ptxas_settings().cuda_home)
    except TilefoldError as error:
        if error.code == Code.ASSEMBLE_UNAVAILABLE:
            return (f"machine code is not compared: {error.message}",)
        return (error.message,)
    slower = [
        f"the assembler: {message.cause}" for message in assembler_warnings(cubin.log) if message.kernel in ("", name)
    ]
    return (*(missing for entry in entries for missing in find_dropped(entry, text)), *slower)


def find_dropped(entry: EntryOp, text: str) -> list[str]:
    """The instructions of a kernel of which machine code, as nvdisasm prints it, has none of the kind."""
    parts = _FUNCTION.split(text)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    have = set(_OPERATION.findall(bodies.get(entry.sym_name.data, "")))
    wanted = sorted({name for op in entry.walk() if isinstance(op, PtxOp) and (name := op.mnemonic()) is not None})
    return [
        f"the machine code has nothing for {mnemonic}, which the kernel executes"
        for mnemonic in wanted
        for form, operation in _FORMS.items()
        if re.match(form, mnemonic) and not any(re.fullmatch(operation, name) for name in have)
    ]
