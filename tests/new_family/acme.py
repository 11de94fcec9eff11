# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package of a made-up family: a memory of cells, and the instructions that reach it. It is installed as a file of
its own, and imports nothing of the tests.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from tilefold.base.spaces import RMEM, SMEM, Allocation, Cells, Sharer, Space
from tilefold.base.target import WARP, Target, TargetFamily, targets
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.contract import (
    ANY_BITS,
    FLAG,
    Act,
    Agent,
    AtOnce,
    AtWait,
    Completion,
    Contract,
    Counted,
    Major,
    Named,
    OnArrivals,
    OnBytes,
    Operand,
    Proxy,
    Role,
    Whose,
)
from tilefold.layout.atoms.custom import Allocates, Commits, CustomInstruction, Effect, Executes, Frees, Waits
from tilefold.layout.atoms.instructions import Custom
from tilefold.layout.atoms.numbers import Copied, MmaOperation, Numbers, Products, Summed

M, N, K = 32, 8, 16
_COPIED = Copied()
COLUMNS = 32
LANE = 1 << 16


def _cells(target: Target) -> int:
    return 128 * 512 if target.sm >= 90 else 0


XMEM = Space(
    "xmem", "xmem", "xmem_ptr", llvm=6, form=Cells(lanes=128, columns=512, warp_lanes=32, unit_bits=32),
    sharer=Sharer.BLOCK, allocation=Allocation.RUN_TIME, has_tensors=True,
    targets=TargetFamily(90, 80), limit=_cells,
)  # fmt: skip


def spaces() -> list[Space]:
    """The memory of the family."""
    return [XMEM]


def _in_cells(role: Role, act: Act, completion: Completion, layout: Layout, element: str = "f32") -> Operand:
    return Operand(role, element, (XMEM,), Named.CELL, Major.FIXED, act, Whose.OWN, completion, Proxy.TENSOR, 4, layout)


def _in_shared(role: Role, act: Act, completion: Completion, layout: Layout, element: str) -> Operand:
    proxy = Proxy.ASYNC if act is Act.READ else Proxy.GENERIC
    return Operand(role, element, (SMEM,), Named.POINTER, Major.FIXED, act, Whose.OWN, completion, proxy, 4, layout)


def _barrier(completion: Completion) -> Operand:
    return Operand(
        Role.BARRIER, ANY_BITS, (SMEM,), Named.POINTER, Major.FIXED, Act.UPDATE, Whose.OWN, completion, Proxy.ASYNC, 8,
        Layout(1, 0),
    )  # fmt: skip


def _contract(name: str, agent: Agent, operands: tuple[Operand, ...], numbers: Numbers = _COPIED) -> Contract:
    ids = Layout(WARP, 1) if agent is Agent.WARP else Layout(1, 0)
    return Contract(agent, Counted.THREADS, ids, operands, numbers, targets(90, 80), Custom(name), "the manual of Acme")


def _one(elements: int) -> Layout:
    """All elements of a matrix, by one thread."""
    return Layout((1, elements), (0, 1))


_ALL = Layout((WARP, 1), (0, 0))


def _copied(given: Mapping[Role, Any]) -> Mapping[Role, Any]:
    return {Role.DESTINATION: given[Role.SOURCE]}


def _multiplied(given: Mapping[Role, Any]) -> Mapping[Role, Any]:
    a, b = given[Role.A].reshape(M, K).astype(np.float32), given[Role.B].reshape(N, K).astype(np.float32)
    product = a @ b.T
    return {Role.D: product + given[Role.D].reshape(M, N) if Role.D in given else product}


def _text(name: str, *roles: Role, address: tuple[Role, ...] = ()) -> Any:
    def write(names: Mapping[Role, str]) -> str:
        places = [f"[{names[role]}]" if role in address else names[role] for role in roles]
        return f"{name} {', '.join(places)}".rstrip()

    return write


def _instruction(
    name: str, contract: Contract, effect: Effect, places: Mapping[Role, Layout], *memory: Role
) -> CustomInstruction:
    roles = [operand.role for operand in contract.operands]
    return CustomInstruction(name, contract, places, effect, _text(name, *roles, address=memory))


def instructions() -> list[CustomInstruction]:
    """Allocation, copy, multiplication, load, and what completes them."""
    bytes, commit, wait = OnBytes(), OnArrivals("acme.commit"), AtWait("acme.wait")
    cells = Layout((N, M), (1, LANE))
    rows = Layout((WARP, N), (N, 1))
    destination, source, barrier = Role.DESTINATION, Role.SOURCE, Role.BARRIER
    flag = Operand(
        Role.ACCUMULATE, FLAG, (RMEM,), Named.VALUE, Major.FIXED, Act.READ, Whose.OWN, AtOnce(), Proxy.GENERIC, 1,
        Layout(1, 0),
    )  # fmt: skip
    fragment = Operand(
        destination, "f32", (RMEM,), Named.VALUE, Major.FIXED, Act.WRITE, Whose.OWN, wait, Proxy.GENERIC, 4, rows
    )
    slot = _in_shared(destination, Act.WRITE, AtOnce(), _ALL, "u32")
    return [
        _instruction("acme.alloc", _contract("acme.alloc", Agent.WARP, (slot,)), Allocates(XMEM, COLUMNS),
                     {destination: Layout(1, 0)}, destination),
        _instruction("acme.free", _contract("acme.free", Agent.WARP, (_in_cells(source, Act.READ, AtOnce(), _ALL),)),
                     Frees(COLUMNS), {}),
        _instruction("acme.copy", _contract("acme.copy", Agent.ELECTED, (
            _in_cells(destination, Act.WRITE, bytes, _one(M * N)),
            _in_shared(source, Act.READ, bytes, _one(M * N), "f32"), _barrier(bytes),
        )), Executes(_copied), {destination: cells, source: Layout(M * N, 4)}, destination, source, barrier),
        _instruction("acme.mma", _contract("acme.mma", Agent.ELECTED, (
            _in_cells(Role.D, Act.UPDATE, commit, _one(M * N)),
            _in_shared(Role.A, Act.READ, commit, _one(M * K), "f16"),
            _in_shared(Role.B, Act.READ, commit, _one(N * K), "f16"),
            flag,
        ), Products((M, N, K), MmaOperation.MULTIPLY_ADD, Summed.UNMEASURED)), Executes(_multiplied),
            {Role.D: cells, Role.A: Layout(M * K, 2), Role.B: Layout(N * K, 2)}, Role.D, Role.A, Role.B),
        _instruction("acme.commit", _contract("acme.commit", Agent.ELECTED, (_barrier(AtOnce()),)), Commits(), {},
                     barrier),
        _instruction("acme.load", _contract("acme.load", Agent.WARP, (
            fragment, _in_cells(source, Act.READ, wait, rows),
        )), Executes(_copied), {source: cells}, source),
        _instruction("acme.wait", _contract("acme.wait", Agent.WARP, ()), Waits(), {}),
    ]  # fmt: skip
