# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A package with atoms of its own instructions: a warp multiplies matrices in shared memory into registers, and a
thread copies a tile of shared memory that an mbarrier completes. It is installed as a file of its own.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from tilefold.base.spaces import RMEM, SMEM
from tilefold.base.target import WARP, targets
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.contract import (
    ANY_BITS,
    FLAG,
    Act,
    Agent,
    AtOnce,
    Completion,
    Contract,
    Counted,
    Major,
    Named,
    OnBytes,
    Operand,
    Proxy,
    Role,
    Whose,
)
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.custom import CustomInstruction, Executes
from tilefold.layout.atoms.instructions import Custom
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.numbers import Copied, MmaOperation, Numbers, Products, Summed

M, N, K, ELEMENTS = 32, 8, 16, 64


_AT_ONCE = AtOnce()


def _operand(role: Role, element: str, act: Act, layout: Layout, completion: Completion = _AT_ONCE) -> Operand:
    space, named, proxy = (RMEM, Named.VALUE, Proxy.GENERIC)
    if role not in (Role.D, Role.ACCUMULATE):
        space, named = SMEM, Named.POINTER
    if not isinstance(completion, AtOnce):
        proxy = Proxy.ASYNC
    align = 8 if role is Role.BARRIER else 4
    return Operand(role, element, (space,), named, Major.FIXED, act, Whose.OWN, completion, proxy, align, layout)


def _contract(name: str, agent: Agent, operands: tuple[Operand, ...], numbers: Numbers) -> Contract:
    ids = Layout(WARP, 1) if agent is Agent.WARP else Layout(1, 0)
    return Contract(agent, Counted.THREADS, ids, operands, numbers, targets(90, 80), Custom(name), "PTX ISA of Mine")


def _all(elements: int) -> Layout:
    """All elements of a matrix for each lane."""
    return Layout((WARP, elements), (0, 1))


MULTIPLY = _contract(
    "mine.mma",
    Agent.WARP,
    (
        _operand(Role.D, "f32", Act.UPDATE, Layout((WARP, N), (1, WARP))),
        _operand(Role.A, "f16", Act.READ, _all(M * K)),
        _operand(Role.B, "f16", Act.READ, _all(N * K)),
        _operand(Role.ACCUMULATE, FLAG, Act.READ, Layout(1, 0)),
    ),
    Products((M, N, K), MmaOperation.MULTIPLY_ADD, Summed.UNMEASURED),
)
_TILE, _BYTES = Layout((1, ELEMENTS), (0, 1)), OnBytes()
MOVE = _contract(
    "mine.copy",
    Agent.THREAD,
    (
        _operand(Role.SOURCE, "f16", Act.READ, _TILE, _BYTES),
        _operand(Role.DESTINATION, "f16", Act.WRITE, _TILE, _BYTES),
        _operand(Role.BARRIER, ANY_BITS, Act.UPDATE, Layout(1, 0), _BYTES),
    ),
    Copied(),
)


def atoms() -> list[MmaAtom | CopyAtom]:
    """The atoms, by which kernels say tile.gemm and tile.copy."""
    return [MmaAtom("MINE_32x8x16", MULTIPLY), CopyAtom("MINE_COPY", MOVE)]


def _multiplied(given: Mapping[Role, Any]) -> Mapping[Role, Any]:
    """Matrices come in the order of their layouts, the first mode fastest."""
    a, b = (given[role].astype(np.float32).reshape(K, -1) for role in (Role.A, Role.B))
    product = b.T @ a
    return {Role.D: product + given[Role.D].reshape(N, M) if Role.D in given else product}


def _text(name: str, roles: tuple[Role, ...]) -> Any:
    def write(names: Mapping[Role, str]) -> str:
        return f"{name} {', '.join(names[role] for role in roles)}"

    return write


def instructions() -> list[CustomInstruction]:
    """The instructions, with their numbers and their text."""
    d, a, b, p = Role.D, Role.A, Role.B, Role.ACCUMULATE
    source, target = Role.SOURCE, Role.DESTINATION
    return [
        CustomInstruction("mine.mma", MULTIPLY, {a: Layout(M * K, 2), b: Layout(N * K, 2)}, Executes(_multiplied),
                          _text("mine.mma", (d, a, b, p))),
        CustomInstruction("mine.copy", MOVE, {source: Layout(ELEMENTS, 2), target: Layout(ELEMENTS, 2)},
                          Executes(lambda given: {target: given[source]}),
                          _text("mine.copy", (target, source, Role.BARRIER))),
    ]  # fmt: skip
