# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: matrix loads, stores and transpositions: NVVM intrinsics, and inline assembly where LLVM has none."""

from xdsl.ir import Operation

from ...dialects import ptx
from ...layout.atoms.ptx_text import matrix_text, movmatrix_text
from .inline_assembly import effect
from .writer import FunctionWriter, Rule, rule


def _ldmatrix(w: FunctionWriter, op: ptx.LdMatrixOp) -> None:
    count, pointer = op.registers, w.typed(op.ptr)
    returned = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
    if op.shape is None:
        trans = ".trans" if op.trans is not None else ""
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{op.num.value.data}{trans}.b16.p3"
        fragments = w.temp(f"call {returned} @{name}({pointer})")
    else:
        text = matrix_text(op.instruction, "$")
        fragments = w.temp(f"{effect(text, [*['=r'] * count, 'r'], [pointer], returned)} convergent")
    type, whole = w.type(op.result), "poison"
    for index in range(count):
        part = fragments if count == 1 else w.temp(f"extractvalue {returned} {fragments}, {index}")
        whole = w.temp(f"insertelement {type} {whole}, i32 {part}, i32 {index}")
    w.bind(op.result, whole)


def _stmatrix(w: FunctionWriter, op: ptx.StMatrixOp) -> None:
    count, pointer, value = op.registers, w.typed(op.ptr), w.typed(op.value)
    parts = [f"i32 {w.temp(f'extractelement {value}, i32 {index}')}" for index in range(count)]
    operands = [pointer, *parts]
    if op.shape is None:
        trans = ".trans" if op.trans is not None else ""
        name = f"llvm.nvvm.stmatrix.sync.aligned.m8n8.x{op.num.value.data}{trans}.b16.p3"
        w.emit(f"call void @{name}({', '.join(operands)})")
    else:
        text = matrix_text(op.instruction, "$")
        w.emit(f"{effect(text, ['r'] * (count + 1), operands)} convergent")


def _movmatrix(w: FunctionWriter, op: ptx.MovMatrixOp) -> None:
    text = movmatrix_text("$")
    w.define(op.result, f'call i32 asm sideeffect "{text}", "=r,r"({w.typed(op.value)}) convergent')


PTX_MATRIX: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.LdMatrixOp, _ldmatrix),
    rule(ptx.StMatrixOp, _stmatrix),
    rule(ptx.MovMatrixOp, _movmatrix),
)
