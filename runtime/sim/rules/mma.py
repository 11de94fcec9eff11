# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for matrix multiplications: of whole tensors, single executions of an atom, and the instruction."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation

from ....base.errors import Code
from ....base.target import WARP
from ....dialects import ptx, tile
from ....dialects.ptx.mma import REGISTER_TYPES
from ....dialects.tile.gemm import scale_types
from ....dialects.tile.gemm_rules import infer_gemm_modes
from ....layout.algebra.core import Layout, join, plain_layout, size
from ....layout.algebra.modes import append
from ....layout.atoms.contract import Agent, AtOnce
from ....layout.atoms.instructions import Custom, MmaSync, Umma
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.mma_sync import registers
from ....layout.atoms.summation import summation
from ...engine import NumPyArray
from ..atoms.mma_arithmetic import executor, from_bytes, to_bytes
from ..atoms.scaled import check_scales, check_shifted, scaled_executor
from ..atoms.sparse import Metadata, sparse_executor
from ..events import Step
from ..faults import Site, site_of
from ..memory.elements import Elements, elements
from ..memory.tensors import tensor_value
from ..number_faults import check_product
from ..translate import Rules, Translator
from ..values import Value, ValueKind, kind_of
from ..warp import Warp
from .tile_packages import package_gemm
from .tile_tensor_memory import tensor_call, tensor_gemm
from .tile_wgmma import warpgroup_call, warpgroup_gemm

Bytes: TypeAlias = NDArray[np.uint8]
MmaFunction: TypeAlias = Callable[..., Bytes]
"""D of a warp and the bytes (..., active, bytes) of A, B, C and the scales in the executing lanes, of one execution or
several.
"""


def _multiplication(op: Operation, atom: MmaAtom, t: Translator, threads: tuple[int, int] = (0, 0)) -> MmaFunction:
    """One execution of an atom; a fault where only part of a warp executes an instruction of the whole. `threads` say
    which lanes have the scales.
    """
    how = None if t.launch.tensor_cores is None else summation(atom, t.launch.tensor_cores)
    exact, site = t.launch.exact, site_of(op)
    execute = scaled_executor(atom, how, threads, exact) if atom.has_scales else executor(atom, exact, how)
    of_d, of_a, of_b, of_c = atom.types
    in_bytes = isinstance(atom.instruction, MmaSync) and atom.instruction.in_bytes
    shifted = in_bytes and "e2m1" in (of_a, of_b)

    def multiply(warp: Warp, a: Bytes, b: Bytes, c: Bytes, *scales: Bytes) -> Bytes:
        if atom.contract.agent is not Agent.THREAD:
            check_whole(warp, site, atom)
        if shifted:
            check_shifted(warp, site, atom, a, b)
        if scales:
            check_scales(warp, site, atom, scales, threads)
        operands = from_bytes(of_a, a, in_bytes), from_bytes(of_b, b, in_bytes), from_bytes(of_c, c)
        d = execute(*operands, *scales)
        if t.launch.numbers:
            check_product(warp, site, atom.name, operands, d)
        return to_bytes(of_d, d)

    return multiply


def _outlives(atom: MmaAtom) -> bool:
    """Whether an execution goes on after the instruction, so that blocks must not run in step."""
    return not isinstance(atom.operand("D").completion, AtOnce)


def _gemm(op: tile.GemmOp, t: Translator) -> Step:
    atom = op.mma_atom
    if isinstance(atom.atom.instruction, Custom):
        return package_gemm(op, t)
    if _outlives(atom.atom):
        t.launch.leave_lockstep()
        return (tensor_gemm if isinstance(atom.atom.instruction, Umma) else warpgroup_gemm)(op, t)
    d, a, b, c = op.types
    modes = infer_gemm_modes(atom, d, a, b, c)
    slots = t.slots((op.d, op.a, op.b, op.c))
    target = elements(op, d, plain_layout(modes.d), "store", t)
    operands = ((a, modes.a), (b, modes.b), (c, modes.c))
    sources = [elements(op, type, plain_layout(layout), "load", t) for type, layout in operands]
    factors, scales = _scales(op, atom.atom, t), t.slots(op.scales)
    multiply = _multiplication(op, atom.atom, t)
    m, n, k = size(modes.c[1]), size(modes.c[2]), size(modes.a[2])
    site = site_of(op)

    def step(warp: Warp) -> None:
        to, *where = [tensor_value(warp.registers[slot]) for slot in slots]
        warp.launch.spend(m * n * k * warp.warps, site)
        left, right, total = [
            np.moveaxis(operand.load(warp, tensor).reshape(warp.active, rows, columns, -1), 0, 2)
            for operand, tensor, rows, columns in zip(sources, where, (k, k, n), (m, n, m), strict=True)
        ]
        given = [
            np.moveaxis(part.load(warp, tensor_value(warp.registers[slot])).reshape(warp.active, k, rows, -1), 0, 2)
            for part, slot, rows in zip(factors, scales, (m, n), strict=False)
        ]
        for p in range(k):  # all rows and columns of one step along K, each execution as by itself
            of_scales = (given[0][p], given[1][p][:, None]) if given else ()
            total = multiply(warp, left[p], right[p][:, None], total, *of_scales)
        target.store(warp, to, np.moveaxis(total, 2, 0).reshape(warp.active, -1))

    return step


def _scales(op: tile.GemmOp | tile.MmaCallOp, atom: MmaAtom, t: Translator) -> list[Elements]:
    """The scales of A and B, those of one execution after the other; each once, not once for each of its elements."""
    found: list[Elements] = []
    for type in scale_types(op):
        once, modes = Layout(atom.products.factors, 1), append(plain_layout(type.layout.data), 3)
        parts = (once, modes[1], modes[2]) if isinstance(op, tile.GemmOp) else (once,)
        found.append(elements(op, type, join(parts), "load", t))
    return found


def _mma_call(op: tile.MmaCallOp, t: Translator) -> Step:
    if _outlives(op.atom.atom):
        t.launch.leave_lockstep()
        return (tensor_call if isinstance(op.atom.atom.instruction, Umma) else warpgroup_call)(op, t)
    slots = t.slots((op.d, op.a, op.b, op.c))
    d, *others = op.types
    target = elements(op, d, plain_layout(d.layout.data), "store", t)
    sources = [elements(op, type, plain_layout(type.layout.data), "load", t) for type in others]
    sources += _scales(op, op.atom.atom, t)
    slots += t.slots(op.scales)
    multiply = _multiplication(op, op.atom.atom, t)

    def step(warp: Warp) -> None:
        to, *where = [tensor_value(warp.registers[slot]) for slot in slots]
        given = [operand.load(warp, tensor) for operand, tensor in zip(sources, where, strict=True)]
        target.store(warp, to, multiply(warp, *given))

    return step


def _mma_sync(op: ptx.MmaSyncOp, t: Translator) -> Step:
    atom = op.atom
    operands = [(t.slots(values), _kind(atom, operand)) for operand, values in (("A", op.a), ("B", op.b), ("C", op.c))]
    results, kind = t.slots(op.d), _kind(atom, "D")
    multiply = _multiplication(op, atom, t)

    def step(warp: Warp) -> None:
        held = warp.registers
        a, b, c = [_bytes(warp, [held[slot] for slot in slots], kind) for slots, kind in operands]
        d = warp.in_lanes(multiply(warp, a, b, c).view(kind.dtype))
        for index, slot in enumerate(results):
            held[slot] = d[:, index]

    return step


def _mma_scaled(op: ptx.MmaSyncScaledOp, t: Translator) -> Step:
    atom = op.atom
    operands = [(t.slots(values), _kind(atom, operand)) for operand, values in (("A", op.a), ("B", op.b), ("C", op.c))]
    results, kind, of_scales = t.slots(op.d), _kind(atom, "D"), kind_of(i32)
    assert of_scales is not None
    (byte_a, thread_a, byte_b, thread_b), factors = op.selected, atom.products.factors
    registers = tuple(zip(t.slots((op.scale_a, op.scale_b)), (byte_a, byte_b), strict=True))
    multiply = _multiplication(op, atom, t, (thread_a, thread_b))

    def step(warp: Warp) -> None:
        held = warp.registers
        a, b, c = [_bytes(warp, [held[slot] for slot in slots], kind) for slots, kind in operands]
        scales = [_bytes(warp, [held[slot]], of_scales)[:, byte : byte + factors] for slot, byte in registers]
        d = warp.in_lanes(multiply(warp, a, b, c, *scales).view(kind.dtype))
        for index, slot in enumerate(results):
            held[slot] = d[:, index]

    return step


def _mma_sparse(op: ptx.MmaSyncSparseOp, t: Translator) -> Step:
    atom, site = op.atom, site_of(op)
    operands = [(t.slots(values), _kind(atom, operand)) for operand, values in (("A", op.a), ("B", op.b), ("C", op.c))]
    results, kind, word, of_words = t.slots(op.d), _kind(atom, "D"), t.slot(op.metadata), kind_of(i32)
    assert of_words is not None
    metadata = Metadata(atom, op.select.value.data, op.ordered is not None)
    how = None if t.launch.tensor_cores is None else summation(atom, t.launch.tensor_cores)
    execute, of_d = sparse_executor(atom, metadata, how, t.launch.exact), atom.types[0]

    def step(warp: Warp) -> None:
        held = warp.registers
        check_whole(warp, site, atom)
        words = _bytes(warp, [held[word]], of_words).view(np.uint32)[:, 0]
        given = [
            from_bytes(name, _bytes(warp, [held[slot] for slot in slots], kind))
            for name, (slots, kind) in zip(atom.types[1:], operands, strict=True)
        ]
        parts: list[NumPyArray] = []
        for first in range(0, len(words), WARP):  # the warps of blocks that go in step
            one = slice(first, first + WARP)
            metadata.check(warp, site, words[one], base=first)
            a, b, c = (operand[one] for operand in given)
            parts.append(execute(a, b, c, words[one]))
        d = np.concatenate(parts)
        if t.launch.numbers:
            check_product(warp, site, atom.name, given, d)
        values = warp.in_lanes(to_bytes(of_d, d).view(kind.dtype))
        for index, slot in enumerate(results):
            held[slot] = values[:, index]

    return step


def check_whole(warp: Warp, site: Site, atom: MmaAtom) -> None:
    """A fault (E3208) where only part of a warp executes an instruction of the whole."""
    if not warp.is_whole:
        text = f"{warp.active} lanes execute {atom.name}; all {WARP} of the warp must"
        warp.fault(Code.SIM_CONVERGENCE, site, None, text, "move it out of divergent control flow")


def _kind(atom: MmaAtom, operand: str) -> ValueKind:
    """The NumPy side of an operand's registers."""
    kind = kind_of(REGISTER_TYPES[registers(atom, operand).kind])
    assert kind is not None
    return kind


def _bytes(warp: Warp, values: list[Value], kind: ValueKind) -> Bytes:
    """Registers in the executing lanes as bytes (active, bytes), the first register first."""
    whole = np.empty((warp.lanes, len(values)), kind.dtype)
    for index, value in enumerate(values):
        whole[:, index] = value
    return warp.select(whole.view(np.uint8))


MMA: Rules = {
    tile.GemmOp: _gemm,
    tile.MmaCallOp: _mma_call,
    ptx.MmaSyncOp: _mma_sync,
    ptx.MmaSyncScaledOp: _mma_scaled,
    ptx.MmaSyncSparseOp: _mma_sparse,
}
