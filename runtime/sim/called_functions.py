# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that a program calls: their blocks, the branches between them, and a frame of registers for each call."""

from xdsl.dialects import cf, func
from xdsl.ir import Block, Operation
from xdsl.traits import SymbolTable

from ...base.errors import Code
from .faults import SimulationError, site_of
from .translate import Function, Jump, Translator
from .values import varies
from .warp import Warp


def function(op: Operation, t: Translator) -> Function:
    """The translation of a function's operation, made when it is first met; `t` is that of the caller."""
    if op not in t.functions:
        known = t.functions[op] = Function(site_of(op))
        own = t.frame()
        body = op.regions[0]
        numbers = {block: number for number, block in enumerate(body.blocks)}
        for block in body.blocks:
            known.blocks.append(own.block(block))
            known.jumps.append(_jump(block, numbers, own))
        known.frame = own.initial
    return t.functions[op]


def callee(op: Operation, name: str) -> Operation:
    """The function that a call names. SimulationError (E3201) where it has no body here."""
    known = SymbolTable.lookup_symbol(op, name)
    if isinstance(known, func.FuncOp) and known.body.blocks:
        return known
    problem = "is not defined in this program" if known is None else "is not a function with a body"
    raise SimulationError(Code.SIM_UNSUPPORTED, f"@{name} {problem}", site=site_of(op))


def _jump(block: Block, numbers: dict[Block, int], t: Translator) -> Jump | None:
    match end := block.last_op:
        case cf.BranchOp():
            target = numbers[end.successor], t.slots(end.arguments)
            return lambda warp: target
        case cf.ConditionalBranchOp():
            condition, site = t.slot(end.cond), site_of(end)
            then = numbers[end.then_block], t.slots(end.then_arguments)
            otherwise = numbers[end.else_block], t.slots(end.else_arguments)

            def choose(warp: Warp) -> tuple[int, tuple[int, ...]]:
                chosen = warp.registers[condition]
                warp.note(site, "decides by", chosen)
                if varies(chosen):
                    active = warp.select(chosen)
                    if active.any() and not active.all():
                        lane = int(warp.lane_numbers()[int(active.argmin())])
                        text = "lanes of one warp branch to different blocks, which the simulator does not follow"
                        warp.fault(Code.SIM_UNSUPPORTED, site, lane, text, "use scf.if, scf.for or scf.while")
                    chosen = bool(active.any())
                return then if chosen else otherwise

            return choose
        case _:
            return None
