# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cf.assert`: the device's __assertfail, which prints the place of an assertion that does not hold, and traps.

Its parameters are the message, the name of the file, the line, the name of the function and the size of a character
(PTX Writer's Guide to Interoperability, Assertions).
"""

from pathlib import PurePath

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.dialects.cf import AssertOp
from xdsl.ir import Operation

from .writer import FunctionWriter, Rule, rule

_DECLARATION = "declare void @__assertfail(ptr, ptr, i32, ptr, i64)"


def _assert(w: FunctionWriter, op: AssertOp) -> None:
    if not w.module.assertions:
        return
    w.module.declarations["__assertfail"] = _DECLARATION
    at = op.location
    file, line = (at.filename.data, at.line.data) if isinstance(at, FileLineColLoc) else ("", 0)
    n = w.fresh("")
    fails, holds = f"fails{n}", f"holds{n}"
    w.emit(f"br i1 {w.ref(op.arg)}, label %{holds}, label %{fails}")
    w.start_block(fails)
    message, name, kernel = (w.module.string(w.kernel, text) for text in (op.msg.data, PurePath(file).name, w.kernel))
    w.emit(f"call void @__assertfail({message}, {name}, i32 {line}, {kernel}, i64 1)")
    w.emit(f"br label %{holds}")
    w.start_block(holds)


ASSERTIONS: tuple[tuple[type[Operation], Rule], ...] = (rule(AssertOp, _assert),)
