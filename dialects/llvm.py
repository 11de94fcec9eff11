# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `llvm` dialect of xDSL with a missing operation of MLIR's: `llvm.mlir.poison`."""

from xdsl.dialects import llvm
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import IRDLOperation, result_def, traits_def
from xdsl.traits import Pure

from .definitions import irdl_op_definition


@irdl_op_definition
class PoisonOp(IRDLOperation):
    """`llvm.mlir.poison : i32`: a value that nothing may depend on (LLVM Language Reference, Poison Values)."""

    name = "llvm.mlir.poison"
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self, type: Attribute) -> None:
        super().__init__(result_types=[type])


LLVM = Dialect("llvm", [*llvm.LLVM.operations, PoisonOp], list(llvm.LLVM.attributes))
