# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which registers an instruction writes and reads, and the types in which it does."""

from collections.abc import Iterator

from .syntax import Address, Arguments, Instruction, Not, Operand, Pair, Register, Subword, Vector

CARRY = "%CC.CF"
"""The flag that `add.cc` and others write, and `addc` and others read, as the name of a predicate."""
_WITHOUT_RESULT = frozenset((
    "st", "red", "bar", "barrier", "cp", "fence", "membar", "stmatrix", "prefetch", "prefetchu", "discard",
    "applypriority", "griddepcontrol", "nanosleep", "setmaxnreg", "tensormap", "bra", "brx", "ret", "exit", "trap",
    "brkpt", "pmevent",
))  # fmt: skip
"""Instructions whose first operand is not written, by opcode."""
_WITHOUT_RESULT_FORMS = (
    ("mbarrier", "init"), ("mbarrier", "inval"), ("mbarrier", "expect_tx"), ("mbarrier", "complete_tx"),
    ("multimem", "st"), ("multimem", "red"), ("wmma", "store"),
    ("wgmma", "fence"), ("wgmma", "commit_group"), ("wgmma", "wait_group"), ("tcgen05", "dealloc"),
)  # fmt: skip


def registers_in(operand: Operand) -> Iterator[Register]:
    """The registers of an operand; for an address, the register from which it is computed."""
    match operand:
        case Register():
            yield operand
        case Not(register) | Subword(register):
            yield register
        case Pair(first, second):
            yield from (register for register in (first, second) if register.name != "_")
        case Vector(items) | Arguments(items):
            for item in items:
                yield from registers_in(item)
        case Address(base, _, coordinates):
            if isinstance(base, Register):
                yield base
            for item in coordinates:
                yield from registers_in(item)
        case _:
            pass


def has_result(instruction: Instruction) -> bool:
    """Whether the first operand is written."""
    form = (instruction.opcode, *instruction.modifiers[:1])
    if form in (("bar", "red"), ("barrier", "red")) or instruction.modifiers[:2] == ("cta", "red"):
        return True
    if instruction.opcode == "call":
        return False  # results come by parameters, which are memory
    return instruction.opcode not in _WITHOUT_RESULT and form not in _WITHOUT_RESULT_FORMS


def is_product(instruction: Instruction) -> bool:
    """Whether it is a product of a warpgroup, which may read its result before it writes it."""
    return (instruction.opcode, *instruction.modifiers[:1]) == ("wgmma", "mma_async")


def written_and_read(instruction: Instruction) -> tuple[list[str], list[str]]:
    """The names of the registers that an instruction writes and reads. A guarded instruction may keep its destination,
    so it reads that too.
    """
    written: list[str] = []
    sources: tuple[Operand, ...] = instruction.operands
    if has_result(instruction) and sources and not isinstance(sources[0], Address):
        results = 2 if instruction.opcode == "tcgen05" and "red" in instruction.modifiers else 1
        written = [register.name for operand in sources[:results] for register in registers_in(operand)]
        sources = sources[results:]
    read = [register.name for operand in sources for register in registers_in(operand)]
    if "cc" in instruction.modifiers:
        written.append(CARRY)
    if instruction.opcode in ("addc", "subc", "madc"):
        read.append(CARRY)
    if instruction.guard is not None:
        guard = instruction.guard
        read.append(guard.register.name if isinstance(guard, Not) else guard.name)
        read += written
    elif is_product(instruction):
        read += written
    return written, read
