# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies and multiplications of tensors by atoms whose instruction a package defines: its executions in their order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ....dialects import tile
from ....dialects.tile.custom import call_instruction
from ....dialects.tile.gemm_rules import infer_gemm_modes
from ....layout.algebra.core import Layout, LayoutLike, plain_layout, size
from ....layout.atoms.contract import Contract, Role
from ..faults import site_of
from ..memory.tensors import move, tensor_value
from ..translate import Step, Translator
from ..values import TensorValue
from ..warp import Warp
from .tile_tma import as_instruction


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions of an atom on parts of tensors: the tensors, their slots, and the slots of the parts."""

    tensors: Mapping[Role, tile.TensorType]
    slots: Mapping[Role, int]
    parts: Mapping[Role, int]
    flag: int | None
    step: Step

    def run(self, warp: Warp, begins: Mapping[Role, int], accumulates: object = True) -> None:
        """One execution, on the parts that begin at these elements."""
        registers = warp.registers
        for role, at in begins.items():
            whole = tensor_value(registers[self.slots[role]])
            registers[self.parts[role]] = move(whole, at, self.tensors[role])
        if self.flag is not None:
            registers[self.flag] = accumulates
        self.step(warp)


def executions(
    op: tile.CopyOp | tile.GemmOp,
    contract: Contract,
    operands: Mapping[Role, tuple[SSAValue, LayoutLike]],
    others: Mapping[Role, SSAValue | None],
    t: Translator,
) -> Executions:
    """The executions on parts of `operands`, each a tensor and the layout of the values of one execution in it."""
    tensors = {role: value.type for role, (value, _) in operands.items()}
    types = {
        role: type.with_layout(operands[role][1]) for role, type in tensors.items() if isinstance(type, tile.TensorType)
    }
    flagged = contract.has(Role.ACCUMULATE)

    def instruction(values: "list[SSAValue] | tuple[SSAValue, ...]") -> tile.InstructionOp:
        given: dict[Role, SSAValue | None] = {**others, **dict(zip(types, values, strict=False))}
        if flagged:
            given[Role.ACCUMULATE] = values[-1]
        return call_instruction(contract, given)

    step, slots = as_instruction(
        op, t, [*types.values(), *([i1] if flagged else [])], lambda values: instruction(tuple(values))
    )
    whole = {role: type for role, type in tensors.items() if isinstance(type, tile.TensorType)}
    return Executions(
        whole,
        {role: t.slot(value) for role, (value, _) in operands.items()},
        dict(zip(types, slots, strict=False)),
        slots[-1] if flagged else None,
        step,
    )


def package_gemm(op: tile.GemmOp, t: Translator) -> Step:
    """The rule of a multiplication: K by K, of each M and N one execution."""
    modes, atom, site = infer_gemm_modes(op.mma_atom, *op.types), op.mma_atom.atom, site_of(op)
    given = {Role.D: (op.d, modes.d), Role.A: (op.a, modes.a), Role.B: (op.b, modes.b), Role.C: (op.c, modes.c)}
    given = {role: value for role, value in given.items() if atom.contract.has(role)}
    made = executions(op, atom.contract, {role: (x, layout[0]) for role, (x, layout) in given.items()}, {}, t)
    plain = {role: plain_layout(layout) for role, (_, layout) in given.items()}
    m, n, k = size(plain[Role.D][1]), size(plain[Role.D][2]), size(plain[Role.A][2])
    flag = None if op.accumulate is None else t.slot(op.accumulate)
    rests = {Role.A: _first_and_last, Role.B: _second_and_last, Role.C: _first_and_second, Role.D: _first_and_second}

    def step(warp: Warp) -> None:
        warp.launch.spend(m * n * k, site)
        accumulates = True if flag is None else warp.registers[flag]
        for p in range(k):
            for i in range(m):
                for j in range(n):
                    made.run(warp, {role: rests[role](layout, i, j, p) for role, layout in plain.items()}, accumulates)
            accumulates = True

    return step


def _first_and_last(layout: Layout, i: int, j: int, p: int) -> int:
    return int(layout[1](i) + layout[2](p))


def _second_and_last(layout: Layout, i: int, j: int, p: int) -> int:
    return int(layout[1](j) + layout[2](p))


def _first_and_second(layout: Layout, i: int, j: int, p: int) -> int:
    return int(layout[1](i) + layout[2](j))


def package_copy(
    op: tile.CopyOp,
    contract: Contract,
    values: tuple[LayoutLike, LayoutLike],
    begins: list[tuple[int, int]],
    t: Translator,
) -> Callable[[Warp, TensorValue, TensorValue, object], None]:
    """How a copy by a package's atom moves: by executions on the parts that begin at these elements; no predicates
    apply.
    """
    t.launch.leave_lockstep()
    operands = {Role.SOURCE: (op.src, values[0]), Role.DESTINATION: (op.dst, values[1])}
    made = executions(op, contract, operands, {Role.BARRIER: op.mbarrier}, t)

    def move_all(warp: Warp, source: TensorValue, target: TensorValue, _: object) -> None:
        for first, second in begins:
            made.run(warp, {Role.SOURCE: first, Role.DESTINATION: second})

    return move_all
