# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a kernel's machine code with its operations at stage `instr`: kinds of instructions that the assembler has
left out, and those that it runs one at a time.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from tilefold.base.assembler_warnings import assembler_warnings
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import DSMEM, GMEM, SMEM, Space
from tilefold.base.target import Target
from tilefold.compiler.machine.nvdisasm import disassemble
from tilefold.dialects.ptx import EntryOp, PtxOp
from tilefold.dialects.ptx.effects import (
    Accesses,
    Act,
    Effect,
    Group,
    Mbarrier,
    Memory,
    Moment,
    NamedBarrier,
    Unit,
    agent_of,
    effects_of,
    space_of,
)
from tilefold.driver.lowering import Program
from tilefold.layout.atoms.contract import Agent, Proxy
from tilefold.runtime.settings import ptxas_settings

_STORES: Mapping[Space | None, str] = MappingProxyType({GMEM: r"ST|STG", SMEM: r"ST|STS", DSMEM: r"ST|STS"})
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
    """The kernel's instructions of a kind that its machine code, as nvdisasm prints it, lacks."""
    parts = _FUNCTION.split(text)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    have = set(_OPERATION.findall(bodies.get(entry.sym_name.data, "")))
    wanted = {
        mnemonic: operation
        for op in entry.walk()
        if isinstance(op, PtxOp) and (mnemonic := op.mnemonic()) is not None
        if (operation := _operation_for(op)) is not None
    }
    return [
        f"the machine code has nothing for {mnemonic}, which the kernel executes"
        for mnemonic, operation in sorted(wanted.items())
        if not any(re.fullmatch(operation, name) for name in have)
    ]


def _operation_for(op: PtxOp) -> str | None:
    """The pattern of the operations of machine code that have the effects of an instruction; None for one that has no
    operation of its own.
    """
    effects, agent = list(effects_of(op)), agent_of(op)
    for effect in effects:
        match effect:
            case Effect(Act.WAITS | Act.ARRIVES, NamedBarrier()):
                return r"BAR|WARPSYNC"
            case Effect(Act.WRITES, Memory(), Proxy.GENERIC, Group.CP_ASYNC):
                return r"LDGSTS"
            case Effect(Act.ISSUES, Group.WGMMA):
                return r"[A-Z]GMMA"
            case Effect(Act.ISSUES, Group() | Mbarrier(), Proxy.ASYNC):
                return r"(UBLK|UTMA)\w*"
            case Effect(Act.ISSUES, Unit.TENSOR_CORE):
                return r"[A-Z]+MMA"
            case Effect(Act.READS, Memory()) if agent is Agent.WARP and len(effects) == 1:
                return r"LDSM"
            case Effect(Act.WRITES, Memory()) if agent is Agent.WARP and len(effects) == 1:
                return r"STSM"
            case Effect(Act.WRITES, Memory() as memory, Proxy.GENERIC, Moment.NOW) if effects[0] is effect:
                return _STORES.get(space_of(op, memory))
            case Effect(Act.UPDATES, Memory(), Proxy.GENERIC):
                return r"(U)?(ATOM|RED)\w*"
            case Effect(Act.FENCES, Accesses((GMEM.ptx, SMEM.ptx))) if len(effects) == 1:
                return r"MEMBAR|FENCE"
            case Effect(Act.WAITS | Act.ENDS, Unit.REGISTERS):
                return r"USETMAXREG"
            case _:
                pass
    return None
