# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing and assertions, by functions of the device.

`ptx.printf` is vprintf, whose arguments lie in a buffer as C passes variadic ones.

Narrow integers are widened to 32 bits and floats to f64 (CUDA C++ Programming Guide, Formatted Output; ISO
C, default argument promotions); each lies at its natural alignment. The format is a constant array, never
part of the text.

`cf.assert` is __assertfail, which prints the place of an assertion that does not hold, and traps. Its parameters are
the message, the name of the file, the line, the name of the function and the size of a character (PTX Writer's Guide to
Interoperability, Assertions).
"""

from pathlib import PurePath

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.dialects.cf import AssertOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code
from ...base.printable import printable, printable_line
from ...dialects import ptx
from ...dialects.ptx.base import PtrType, float_bits, integer_bits
from ...passes.errors import LoweringError
from .writer import FunctionWriter, Rule, rule


def _promote(w: FunctionWriter, value: SSAValue, conversion: str) -> tuple[str, str]:
    """The type and name of an argument after C's promotions."""
    type, name = w.type(value), w.ref(value)
    if isinstance(value.type, PtrType):
        return "ptr", name if type == "ptr" else w.temp(f"addrspacecast {type} {name} to ptr")
    if (bits := float_bits(value.type)) is not None:
        return "double", name if bits == 64 else w.temp(f"fpext {type} {name} to double")
    if (integer_bits(value.type) or 32) < 32:
        extend = "sext" if conversion in ("d", "i") and type != "i1" else "zext"
        return "i32", w.temp(f"{extend} {type} {name} to i32")
    return type, name


def _printf(w: FunctionWriter, op: ptx.PrintfOp) -> None:
    try:
        conversions = op.conversions()
    except VerifyException as error:
        raise LoweringError(Code.EMIT_UNSUPPORTED, str(error), op) from error
    if len(conversions) != len(op.args):
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, f"{len(conversions)} conversions for {len(op.args)} values to print", op
        )
    buffer = "null"
    if conversions:
        pairs = zip(op.args, conversions, strict=True)
        values = [_promote(w, value, conversion) for value, conversion in pairs]
        struct = f"{{ {', '.join(type for type, _ in values)} }}"
        buffer = w.alloca(struct, 8)
        for index, (type, name) in enumerate(values):
            field = w.temp(f"getelementptr {struct}, ptr {buffer}, i32 0, i32 {index}")
            w.emit(f"store {type} {name}, ptr {field}")
    w.module.declarations["vprintf"] = "declare i32 @vprintf(ptr, ptr)"
    w.temp(f"call i32 @vprintf({w.module.string(w.kernel, printable(op.format.data))}, ptr {buffer})")


def _assert(w: FunctionWriter, op: AssertOp) -> None:
    if not w.module.assertions:
        return
    w.module.declarations["__assertfail"] = "declare void @__assertfail(ptr, ptr, i32, ptr, i64)"
    at = op.location
    file, line = (at.filename.data, at.line.data) if isinstance(at, FileLineColLoc) else ("", 0)
    n = w.fresh("")
    fails, holds = f"fails{n}", f"holds{n}"
    w.emit(f"br i1 {w.ref(op.arg)}, label %{holds}, label %{fails}")
    w.start_block(fails)
    texts = printable_line(op.msg.data), printable_line(PurePath(file).name), w.kernel
    message, name, kernel = (w.module.string(w.kernel, text) for text in texts)
    w.emit(f"call void @__assertfail({message}, {name}, i32 {line}, {kernel}, i64 1)")
    w.emit(f"br label %{holds}")
    w.start_block(holds)


PRINTF: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.PrintfOp, _printf),
    rule(AssertOp, _assert),
)
