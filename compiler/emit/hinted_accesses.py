# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads, stores and cp.async with cache hints: inline assembly, since LLVM has no form for most of them.

The instruction's text is the operation's mnemonic, which its verifier composes of words of our tables.
"""

from ...dialects import ptx
from ...dialects.ptx.base import REGISTER_LETTERS
from .inline_assembly import effect
from .writer import FunctionWriter


def load_by_assembly(w: FunctionWriter, op: ptx.LoadOp) -> str:
    """Writes the load; the value in the registers of `ptx.access_registers`, as one integer or a vector of them."""
    count, bits = ptx.access_registers(op.result.type)
    register = f"i{max(bits, 16)}"
    returned = register if count == 1 else f"{{ {', '.join([register] * count)} }}"
    loaded = _brace(count, 0)
    place, given, letters = _policy(w, op, count + 1)
    text = f"{op.mnemonic()} {loaded}, [${count}]{place};"
    constraints = [*[f"={_letter(bits)}"] * count, "l", *letters]
    value = w.temp(effect(text, constraints, [w.typed(op.ptr), *given], returned))
    if count == 1:
        return value if bits == max(bits, 16) else w.temp(f"trunc {register} {value} to i{bits}")
    whole = "poison"
    for index in range(count):
        part = w.temp(f"extractvalue {returned} {value}, {index}")
        whole = w.temp(f"insertelement <{count} x {register}> {whole}, {register} {part}, i32 {index}")
    return whole


def store_by_assembly(w: FunctionWriter, op: ptx.StoreOp, value: str) -> None:
    """Writes the store of `value`, given with its type in the registers of `ptx.access_registers`."""
    count, bits = ptx.access_registers(op.value.type)
    register = f"i{max(bits, 16)}"
    if count > 1:
        parts = [f"{register} {w.temp(f'extractelement {value}, i32 {index}')}" for index in range(count)]
    else:
        parts = [value if bits == max(bits, 16) else f"{register} {w.temp(f'zext {value} to {register}')}"]
    place, given, letters = _policy(w, op, count + 1)
    text = f"{op.mnemonic()} [$0], {_brace(count, 1)}{place};"
    w.emit(effect(text, ["l", *[_letter(bits)] * count, *letters], [w.typed(op.ptr), *parts, *given]))


def copy_by_assembly(w: FunctionWriter, op: ptx.CpAsyncOp) -> None:
    """Writes a cp.async with a prefetch size or a policy, for which LLVM has no intrinsic."""
    sized = op.src_size is not None
    place, _, letters = _policy(w, op, 3 if sized else 2)
    text = f"{op.mnemonic()} [$0], [$1], {op.bytes.value.data}{', $2' if sized else ''}{place};"
    destination = w.typed(op.dst) if op.policy is None else f"i32 {_opaque(w, op)}"
    operands = [destination, *(w.typed(value) for value in op.operands[1:])]
    w.emit(effect(text, ["r", "l", *"r" * sized, *letters], operands))


def _opaque(w: FunctionWriter, op: ptx.CpAsyncOp) -> str:
    """The address in shared memory, by an instruction that changes nothing and that ptxas does not see through.

    Where that address is a register of the thread plus one of the warp, ptxas of CUDA 13.0 to 13.3 gives the copy and
    policy registers that were never written (LDGSTS [R0+UR0], desc[UR1] on sm_90), which is an illegal instruction.
    """
    return w.temp(f'call i32 asm "prmt.b32 $0, $1, 0, 0x3210;", "=r,r"({w.typed(op.dst)})')


def _policy(
    w: FunctionWriter, op: ptx.LoadOp | ptx.StoreOp | ptx.CpAsyncOp, index: int
) -> tuple[str, list[str], list[str]]:
    """The text, the arguments and the constraints that a policy, operand `index`, adds."""
    return ("", [], []) if op.policy is None else (f", ${index}", [w.typed(op.policy)], ["l"])


def _letter(bits: int) -> str:
    """The constraint of a register that moves `bits` bits, 16 at least."""
    return REGISTER_LETTERS[max(bits, 16)]


def _brace(count: int, first: int) -> str:
    """The operands of a vector's registers, `{$1, $2}`, or of a single one."""
    names = ", ".join(f"${first + index}" for index in range(count))
    return names if count == 1 else f"{{{names}}}"
