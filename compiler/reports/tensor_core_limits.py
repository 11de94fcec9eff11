# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of kernels that multiply into tensor memory, from the published rates of a B200. They are a model: none
has been measured here.

One instruction multiplies 32 bytes of K in N / 2 clocks, in every kind, which follows from the peaks of all kinds. Its
operands come from shared memory at 128 bytes a clock at most, as on Hopper. The function units compute 16 exponentials
a clock (FlashAttention-4, arXiv 2603.05451). A B200 has 148 multiprocessors, each with 512 columns of tensor memory.
"""

from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...base.target import WARP
from ...dialects import ptx
from ...dialects.ptx.tcgen05.base import constant_of
from ...dialects.ptx.tcgen05.mma import TensorMmaBase
from ...dialects.run import LaunchOp
from ...layout.tmem.cells import COLUMNS

MODEL = "model of a B200, not measured"
MULTIPROCESSORS = 148
SHARED_RATE = 128
"""The bytes of shared memory that the tensor core reads a clock."""
EXPONENTIALS = 16
"""Those of a clock."""


def tensor_core_limits(written: ModuleOp, module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """The limits of the multiplications of a program, given as written and at stage `instr`: for each multiplication
    its clocks and its bytes of shared memory, for each exponential its clocks, for each allocation its columns, for
    each launch its waves. Nothing of programs without such multiplications.
    """
    kernels: set[str] = set()
    for entry in module.walk():
        if not isinstance(entry, ptx.EntryOp):
            continue
        products = [op for op in entry.walk() if isinstance(op, TensorMmaBase)]
        if not products:
            continue
        kernels.add(entry.sym_name.data)
        for op in products:
            if (text := _of_product(op)) is not None:
                yield op, f"{text} ({MODEL})"
        yield from _of_columns(entry)
        yield from _of_exponentials(entry)
    for launch in written.walk():
        if isinstance(launch, LaunchOp) and launch.kernel.string_value().rpartition(".")[2] in kernels:
            yield launch, f"{_waves(prod(launch.grid.get_values()))} ({MODEL})"


def _of_product(op: TensorMmaBase) -> str | None:
    """The clocks of a multiplication and its bytes of shared memory in a block; None where only the run knows them."""
    given, a, b = op.described, op.a_bytes, op.b_bytes
    if given is None or a is None or b is None:
        return None
    blocks = op.group.value.data
    clocks = given.n // 2
    read = (0 if op.a_in_tensor_memory else a // blocks) + b // blocks
    rate = read / clocks
    bound = "the tensor core bounds it"
    if rate > SHARED_RATE:
        bound = f"shared memory bounds it: {-(-read // SHARED_RATE)} clocks"
    elif rate == SHARED_RATE:
        bound = "both bound it"
    return f"{clocks} clocks, and {read} bytes of shared memory, {rate:.0f} a clock of {SHARED_RATE}: {bound}"


def _of_columns(entry: ptx.EntryOp) -> Iterator[tuple[Operation, str]]:
    for op in entry.walk():
        if isinstance(op, ptx.TensorAllocOp) and (count := constant_of(op.columns)) is not None:
            blocks = COLUMNS // count
            text = "one block fits" if blocks == 1 else f"at most {blocks} blocks fit"
            yield op, f"{count} of {COLUMNS} columns of tensor memory: {text} on a multiprocessor"


def _of_exponentials(entry: ptx.EntryOp) -> Iterator[tuple[Operation, str]]:
    for op in entry.walk():
        if isinstance(op, ptx.Ex2Op):
            clocks = WARP // EXPONENTIALS
            yield op, f"{clocks} clocks each time a warp executes it, {EXPONENTIALS} exponentials a clock ({MODEL})"


def _waves(blocks: int) -> str:
    """How a grid fills the multiprocessors, one block on each."""
    waves = -(-blocks // MULTIPROCESSORS)
    last = blocks - (waves - 1) * MULTIPROCESSORS
    subject = f"{blocks} block{'s' if blocks > 1 else ''} for {MULTIPROCESSORS} multiprocessors"
    if waves == 1:
        return f"{subject}: one wave, {MULTIPROCESSORS - last} idle"
    return f"{subject}: {waves} waves, the last of {last}"
