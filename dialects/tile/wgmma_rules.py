# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of a multiplication for its operands in shared memory, for registers in use, and of the block."""

from math import prod

from xdsl.ir import Operation

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.occupancy import REGISTERS
from ...base.target import MAX_REGISTERS, WARP
from ...layout.algebra.core import ComposedLayout, LayoutLike, flat_modes, join, plain_layout
from ...layout.algebra.integers import divisor
from ...layout.atoms.contract import Act, AtOnce, Named, Role
from ...layout.atoms.instructions import Umma
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_sync import registers
from ...layout.atoms.wgmma_smem import UNIT, MatrixDescriptor, find_operand_swizzle, operand_align, operand_descriptor
from ..kernel import kernel_of
from .threads import by_every_thread
from .types import TensorType
from .umma_rules import umma_alignment, umma_descriptor_of

OTHER_REGISTERS = 24
"""The registers that a thread needs beside the operands of wgmma, at least: for descriptors, addresses and loops."""


def descriptor_of(atom: MmaAtom, operand: str, layout: LayoutLike) -> MatrixDescriptor:
    """The descriptor of operand "A" or "B" in shared memory at address 0, of one execution: `layout` is (MN,K).

    Raises `LayoutError` (E0315) if no descriptor describes the layout.
    """
    while len(layout) == 1 and isinstance(plain_layout(layout).shape, tuple):
        layout = layout[0]  # the only mode
    described = atom.operand(operand)
    return operand_descriptor(layout, BY_PTX[described.element].bits, described.major.value)


def check_shared(atom: MmaAtom, operand: str, tensor: TensorType, layout: LayoutLike) -> None:
    """Checks an operand in shared memory, as (V,...) by `layout`: that descriptors describe it, and its alignment.

    Raises `LayoutError`: E0315 for another layout, E0312 for another alignment.
    """
    align, at = _described_alignment(atom, operand, tensor, layout), f"operand {operand} of {atom.name}"
    is_swizzled = align > UNIT
    if tensor.align.data % align:
        swizzle = f", as the hardware swizzles {align >> 3} bytes by bits of the address" if is_swizzled else ""
        raise LayoutError(
            Code.ATOM_MISALIGNED,
            f"{at} must be aligned to {align} bytes{swizzle}; it is known to be aligned to {tensor.align.data}",
            f"allocate it with align<{align}>",
        )
    start = layout.offset if isinstance(layout, ComposedLayout) else 0
    rest = join(list(plain_layout(layout))[1:]) if len(layout) > 1 else None
    steps = [stride for extent, stride in flat_modes(rest) if extent != 1] if rest is not None else []
    for step in (start, *steps):
        bytes = divisor(step) * tensor.element_bits // 8
        if bytes % UNIT:
            raise LayoutError(
                Code.ATOM_MISALIGNED,
                f"{at} begins at a multiple of {bytes} bytes; descriptors count units of {UNIT} bytes",
                "take tiles of whole instructions by partition_A and partition_B",
            )
        if is_swizzled and type(step) is int and bytes & (align - 1) & ~0x7F:
            raise LayoutError(
                Code.NOT_A_WGMMA_OPERAND,
                f"{at} begins within the {align} bytes of its swizzle, {bytes} bytes after the start of its tensor",
                "let tiles begin at multiples of 8 rows of a K-major operand, or of 8 columns of an MN-major one",
            )


def _described_alignment(atom: MmaAtom, operand: str, tensor: TensorType, layout: LayoutLike) -> int:
    """The alignment in bytes of an operand that a descriptor describes."""
    if isinstance(atom.instruction, Umma):
        _ = umma_descriptor_of(atom, operand, layout[0])
        return umma_alignment(atom, operand, layout)
    _ = descriptor_of(atom, operand, layout[0])
    return operand_align(find_operand_swizzle(layout, tensor.element_bits))


def check_accumulation(atom: MmaAtom, separate: bool, accumulates: bool) -> None:
    """Checks the result of a multiplication: whether D is `separate` from C, and a value says whether it `accumulates`.
    Raises `LayoutError` (E0318).
    """
    contract = atom.contract
    if contract.operand(Role.D).act is Act.UPDATE and separate:
        raise LayoutError(
            Code.MMA_OPERAND,
            f"{atom.name} adds to its accumulators in place: D is C",
            "pass only A, B and C; `accumulate` says whether to add C",
        )
    if accumulates and not contract.has(Role.ACCUMULATE):
        raise LayoutError(
            Code.MMA_OPERAND,
            f"{atom.name} always adds C; `accumulate` is for wgmma and tcgen05.mma",
            "fill C with zeros before the first multiplication",
        )


def check_block(op: Operation, atom: MmaAtom) -> None:
    """Checks that the block around `op` has threads for whole agents, or leaves threads out. Raises `LayoutError`
    (E0321).
    """
    kernel, agent = kernel_of(op), atom.contract.agent
    if kernel is None or agent.issuing <= WARP:  # of warps, the simulator and the tiled MMA see to that
        return
    threads = prod(kernel.block)
    if threads < agent.issuing or (threads % agent.issuing and by_every_thread(op)):
        raise LayoutError(
            Code.BLOCK_THREADS,
            f"{atom.name} is executed by {agent.name.lower()}s of {agent.issuing} threads, but the block has {threads}",
            f"launch blocks of a multiple of {agent.issuing} threads",
        )


def check_registers(op: Operation, atom: MmaAtom, executions: int, held: int) -> None:
    """Checks that the registers of a thread hold the values in use until the executions have completed: the
    accumulators of all of them and `held` registers of A. Raises `LayoutError` (E0325).
    """
    d = atom.operand("D")
    if d.named is not Named.VALUE or isinstance(d.completion, AtOnce):
        return
    kernel, most = kernel_of(op), MAX_REGISTERS
    if kernel is not None:
        bounds, threads = kernel.launch_bounds, prod(kernel.block)
        if not any(inner.name == "ptx.setmaxnreg" for inner in kernel.walk()):
            most = min(most, bounds.max_registers or most, REGISTERS // threads)
    accumulators = executions * registers(atom, "C").count
    if accumulators + held + OTHER_REGISTERS > most:
        also = f" and {held} of A" if held else ""
        raise LayoutError(
            Code.MMA_REGISTERS,
            f"the accumulators take {accumulators} registers of each thread{also}, and at least {OTHER_REGISTERS} are "
            f"needed beside them; a thread has {most}",
            "share the tile among more warpgroups, or take a smaller one; "
            "ptx.setmaxnreg moves registers from other warpgroups",
        )
