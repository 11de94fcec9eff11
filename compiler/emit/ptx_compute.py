# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: instructions on registers alone, by inline assembly: special registers, functions, conversions, matrices, and
PTX as text.

LLVM narrows arithmetic by the ranges of special registers: a thread index below 128 needs 7 bits. The assembly of a
matrix instruction has no side effect, so that LLVM erases a product that is not used, and is convergent, so that it
stays where all lanes of the warp execute it.
"""

import struct
from typing import cast

from xdsl.dialects.builtin import i8
from xdsl.ir import Operation

from ...dialects import ptx
from ...dialects.ptx import SregOp
from ...dialects.ptx.mma import register_types
from ...layout.atoms.mma_sync import Registers, registers
from .inline_assembly import compute, effect, from_register, in_register, register
from .types import quote
from .writer import FunctionWriter, Rule, rule


def _sreg(w: FunctionWriter, op: SregOp) -> None:
    name = op.register.data
    low, high = w.registers[name]
    if low == high:
        w.bind(op.result, str(low))
        return
    above = high + 1 if high + 1 < 2**31 else high + 1 - 2**32  # LLVM writes the bound as a signed i32
    intrinsic = f"@llvm.nvvm.read.ptx.sreg.{name.replace('cluster_', 'cluster.')}"
    w.define(op.result, f"call range(i32 {low}, {above}) i32 {intrinsic}()")


def _instruction(w: FunctionWriter, op: Operation) -> None:
    mnemonic = cast(ptx.PtxOp, op).mnemonic()
    assert mnemonic is not None
    compute(w, mnemonic, op, op.operands)


def _cvt(w: FunctionWriter, op: ptx.CvtOp) -> None:
    """A conversion; a pair of floats of 4 bits is a register of 8 bits, which inline assembly has not outside."""
    mnemonic = op.mnemonic()
    letters = [register(value.type, op)[1] if value.type != i8 else "h" for value in (op.result, *op.values)]
    if op.result.type == i8:
        places = ", ".join(f"${1 + n}" for n in range(len(op.values)))
        text = quote(f"{{\n\t.reg .b8 %b;\n\t{mnemonic} %b, {places};\n\tcvt.u16.u8 $0, %b;\n\t}}")
        call = f'call i16 asm {text}, "=h,{",".join(letters[1:])}"'
        given = ", ".join(in_register(w, value, op) for value in op.values)
        w.define(op.result, f"trunc i16 {w.temp(f'{call}({given})')} to i8")
    elif i8 in op.values.types:
        word = w.temp(f"zext {w.typed(op.values[0])} to i16")
        text = quote(f"{{\n\t.reg .b8 %b;\n\tcvt.u8.u16 %b, $1;\n\t{mnemonic} $0, %b;\n\t}}")
        from_register(w, op.result, w.temp(f'call i32 asm {text}, "=r,h"(i16 {word})'), op)
    elif len(op.values) == 5:
        text = quote(f"{mnemonic} $0, {{$1, $2, $3, $4}}, $5;")
        given = ", ".join(in_register(w, value, op) for value in op.values)
        call = f'call {op.result.type} asm {text}, "={",".join(letters)}"({given})'
        from_register(w, op.result, w.temp(call), op)
    else:
        _instruction(w, op)


def _rsqrt(w: FunctionWriter, op: ptx.RsqrtOp) -> None:
    w.call(op, f"@llvm.nvvm.rsqrt.approx{'.ftz' if op.flushes else ''}.f")  # which LLVM schedules, unlike assembly


def _createpolicy(w: FunctionWriter, op: ptx.CreatePolicyOp) -> None:
    (share,) = struct.unpack("<I", struct.pack("<f", op.share))
    w.define(op.result, f'call i64 asm "{op.mnemonic()} $0, 0f{share:08X};", "=l"()')


_OPERATIONS: tuple[type[Operation], ...] = (
    ptx.Ex2Op, ptx.Lg2Op, ptx.RcpOp, ptx.SqrtOp, ptx.SinOp, ptx.CosOp, ptx.TanhOp,
    ptx.PrmtOp, ptx.Dp4aOp, ptx.F32x2Op, ptx.MinMax3Op,
)  # fmt: skip


def _mma_sync(w: FunctionWriter, op: ptx.MmaSyncOp | ptx.MmaSyncScaledOp | ptx.MmaSyncSparseOp) -> None:
    atom = op.atom
    groups = [registers(atom, operand) for operand in "DABC"]
    letters = [register(type, op)[1] for operand in "DABC" for type in register_types(atom, operand)]
    scales = ""  # or metadata
    if isinstance(op, ptx.MmaSyncScaledOp):
        first, (byte_a, thread_a, byte_b, thread_b) = len(letters), op.selected
        scales = f", {{${first}}}, {{{byte_a}, {thread_a}}}, {{${first + 1}}}, {{{byte_b}, {thread_b}}}"
        letters += ["r", "r"]
    elif isinstance(op, ptx.MmaSyncSparseOp):
        scales = f", ${len(letters)}, {op.select.value.data:#x}"
        letters.append("r")
    text = quote(f"{op.mnemonic()} {_operands(groups)}{scales};")
    results = groups[0].count
    constraints = ",".join([f"={letter}" for letter in letters[:results]] + letters[results:])
    types = [w.type(result) for result in op.d]
    returned = types[0] if results == 1 else f"{{ {', '.join(types)} }}"
    values = ", ".join(w.typed(value) for value in op.operands)
    call = w.temp(f'call {returned} asm {text}, "{constraints}"({values}) convergent nounwind memory(none)')
    for index, result in enumerate(op.d):
        w.bind(result, call if results == 1 else w.temp(f"extractvalue {returned} {call}, {index}"))


def _operands(groups: list[Registers]) -> str:
    """`{$0,$1}, {$2}, ...`: the registers of each operand."""
    numbers = iter(range(sum(group.count for group in groups)))
    return ", ".join("{" + ",".join(f"${next(numbers)}" for _ in range(group.count)) + "}" for group in groups)


def _inline(w: FunctionWriter, op: ptx.InlineOp) -> None:
    types = [register(result.type, op)[0] for result in op.res]
    returned = "void" if not types else types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"
    letters = [letter.strip() for letter in op.constraints.data.split(",") if letter]
    given = [in_register(w, value, op) for value in op.args]
    call = f"{effect(op.text.data, letters, given, returned)} convergent nounwind"
    if not types:
        w.emit(call)
        return
    held = w.temp(call)
    for index, result in enumerate(op.res):
        part = held if len(types) == 1 else w.temp(f"extractvalue {returned} {held}, {index}")
        from_register(w, result, part, op)


PTX_COMPUTE: tuple[tuple[type[Operation], Rule], ...] = (
    rule(SregOp, _sreg),
    *((kind, _instruction) for kind in _OPERATIONS),
    rule(ptx.CvtOp, _cvt),
    rule(ptx.RsqrtOp, _rsqrt),
    rule(ptx.CreatePolicyOp, _createpolicy),
    rule(ptx.MmaSyncOp, _mma_sync),
    rule(ptx.MmaSyncScaledOp, _mma_sync),
    rule(ptx.MmaSyncSparseOp, _mma_sync),
    rule(ptx.InlineOp, _inline),
)
