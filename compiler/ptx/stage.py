# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stage `ptx`: a program whose kernels are executed from their PTX."""

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.rewriter import Rewriter

from ...base.errors import Code
from ...dialects.kernel import kernels_in
from ...dialects.ptx import EntryOp
from .parser import parse_ptx
from .places import locations
from .syntax import PtxError
from .translate import translate


def read_back(module: ModuleOp, text: str, file: str, *, in_text: bool = False) -> ModuleOp:
    """A program at stage `instr` with the bodies of its kernels from their PTX, `text`; `file` names that in messages.
    Operations have the places that `.loc` says, or those `in_text`.

    Parameters keep their names and layouts. PtxError (E1009) for an instruction that is not supported.
    """
    read, result = parse_ptx(text, file), module.clone()
    names = {op.location.filename.data for op in module.walk() if isinstance(op.location, FileLineColLoc)}
    files = {
        number: next((known for known in sorted(names) if known == name or known.endswith(f"/{name}")), name)
        for number, name in read.files.items()
    }
    locate = locations({} if in_text else files, file)
    for entry in kernels_in(result, EntryOp):
        function = read.functions[entry.sym_name.data]
        shared = 0 if entry.shared_bytes is None else entry.shared_bytes.value.data
        body = translate(read, function, entry.function_type.inputs.data, file, locate, shared)
        if body.variables:
            variable = body.variables[0]
            text = f"the variable {variable.name} in {variable.space} memory is not supported"
            raise PtxError(Code.PTX_UNSUPPORTED, text, variable.place, file=file)
        made = EntryOp.create(properties=dict(entry.properties), regions=[body.region])
        made.location = entry.location
        Rewriter.replace_op(entry, made, [])
    return result
