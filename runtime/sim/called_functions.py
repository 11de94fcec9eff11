# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that a program calls: their blocks, the branches between them, and a frame of registers for each call."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import cf, func
from xdsl.ir import Block, Operation
from xdsl.traits import SymbolTable

from ...base.errors import Code as ErrorCode
from .faults import SimulationError, Site, site_of
from .translate import BODIES_BETWEEN_PAUSES, Code, Event, Pause, Translator
from .values import Value, varies
from .warp import Warp

MAX_DEPTH = 1000
"""How deep functions may call each other."""
MAX_FRAMES = 1 << 22
"""How many values the frames of all functions that have not returned may hold."""

Jump: TypeAlias = Callable[[Warp], tuple[int, tuple[int, ...]]]
"""The successor of a block: the number of the next, and the registers with its arguments."""


@dataclass(slots=True)
class Function:
    """A translated function: the initial frame, its blocks, and the successor of each (None: it returns)."""

    site: Site
    frame: list[Value] = field(default_factory=lambda: [])
    blocks: list[Code] = field(default_factory=lambda: [])
    jumps: list[Jump | None] = field(default_factory=lambda: [])

    def run(self, warp: Warp, arguments: list[Value]) -> Generator[Event, None, list[Value]]:
        """Calls the function in the active lanes. A generator that suspends where it must, and returns the results.

        Raises SimulationError (E3212) where calls nest too deeply.
        """
        caller = warp.registers
        warp.calls.append(caller)
        if len(warp.calls) > MAX_DEPTH or len(self.frame) + sum(map(len, warp.calls)) > MAX_FRAMES:
            lane = int(warp.lane_numbers()[0])
            text = f"functions call each other {len(warp.calls)} levels deep"
            warp.fault(ErrorCode.SIM_DEPTH, self.site, lane, text, f"at most {MAX_DEPTH} calls can nest; use a loop")
        warp.registers = list(self.frame)
        number, values, jumps, pause = 0, arguments, 0, Pause(self.site)
        while True:
            block = self.blocks[number]
            for slot, value in zip(block.args, values, strict=True):
                warp.registers[slot] = value
            yield from block.enter(warp)
            jump = self.jumps[number]
            if jump is None:
                break
            jumps += 1
            if jumps % BODIES_BETWEEN_PAUSES == 0:
                yield pause
            number, passed = jump(warp)
            values = [warp.registers[slot] for slot in passed]
        results = [warp.registers[slot] for slot in block.results]
        warp.registers = caller
        warp.calls.pop()
        return results


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
    raise SimulationError(ErrorCode.SIM_UNSUPPORTED, f"@{name} {problem}", site=site_of(op))


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
                        warp.fault(ErrorCode.SIM_UNSUPPORTED, site, lane, text, "use scf.if, scf.for or scf.while")
                    chosen = bool(active.any())
                return then if chosen else otherwise

            return choose
        case _:
            return None
