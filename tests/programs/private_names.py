# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Private names of the other compiler that tilefold has, with the public repositories that need each."""

from collections.abc import Mapping

_QUACK, _FLASH, _INFER, _LIGER = (
    "Dao-AILab/quack", "Dao-AILab/flash-attention", "flashinfer-ai/flashinfer", "linkedin/Liger-Kernel",
)  # fmt: skip

NEEDED_BY: Mapping[str, tuple[str, ...]] = {
    "_mlir.dialects.arith.bitcast": (_INFER,),
    "_mlir.dialects.arith.constant": (_INFER,),
    "_mlir.dialects.arith.extui": (_INFER,),
    "_mlir.dialects.arith.maxnumf": (_INFER,),
    "_mlir.dialects.arith.minimumf": (_INFER,),
    "_mlir.dialects.arith.select": (_INFER,),
    "_mlir.dialects.arith.shrui": (_INFER,),
    "_mlir.dialects.cute.AddressSpace": (_INFER,),
    "_mlir.dialects.llvm.bitcast": (_INFER,),
    "_mlir.dialects.llvm.extractvalue": (_QUACK, _INFER),
    "_mlir.dialects.llvm.inline_asm": (_QUACK, _FLASH, _INFER, _LIGER),
    "_mlir.dialects.llvm.intr_ctlz": (_QUACK,),
    "_mlir.dialects.llvm.ptrtoint": (_INFER, _LIGER),
    "_mlir.dialects.math.absi": (_FLASH,),
    "_mlir.dialects.nvvm.atomicrmw": (_QUACK, _INFER),
    "_mlir.dialects.nvvm.fmax": (_QUACK, _FLASH),
    "_mlir.dialects.nvvm.sub_packed_f32x2": (_FLASH,),
    "_mlir.extras.types": (_QUACK, _INFER),
    "_mlir.ir.IntegerType": (_INFER,),
    "_mlir.ir.Type.parse": (_QUACK, _INFER),
    "_mlir.ir.Value": (_QUACK, _INFER),
    "_mlir.ir.VectorType": (_QUACK, _INFER),
    "_mlir_helpers.arith.bitcast": (_QUACK,),
    "_mlir_helpers.math.rcp": (_QUACK,),
    "base_dsl.arch.Arch": (_QUACK, _FLASH),
    "base_dsl.ast_preprocessor.DSLPreprocessor": (_QUACK,),
    "base_dsl.enums.Arch": (_QUACK,),
    "base_dsl.runtime.cuda.load_cubin_module_data": (_QUACK, _FLASH),
    "base_dsl.typing.Integer": (_QUACK,),
    "base_dsl.typing.JitArgument": (_QUACK,),
    "base_dsl.typing.Vector": (_QUACK,),
    "base_dsl.typing.__STR_TO_DTYPE__": ("programs of single people",),
    "base_dsl.typing.get_c_pointers": (_QUACK,),
    "base_dsl.typing.get_mlir_types": (_QUACK, _INFER),
    "cute.arch.nvvm.atomicrmw": ("programs of single people",),
    "cute.tensor.TensorSSA": (_QUACK,),
    "cute.tensor._Tensor": (_QUACK,),
    "cutlass_dsl.BaseDSL": (_QUACK, _FLASH),
    "cutlass_dsl.JitCompiledFunction": (_FLASH, _INFER),
    "cutlass_dsl.NumericMeta": (_QUACK,),
    "cutlass_dsl.and_": (_QUACK,),
    "cutlass_dsl.if_generate": (_QUACK, _FLASH),
    "cutlass_dsl.is_dynamic_expression": (_INFER,),
    "cutlass_dsl.not_": (_FLASH,),
    "pipeline.PipelineAsync._make_sync_object": (_QUACK, _INFER),
    "pipeline.helpers.PipelineOp": (_INFER, _LIGER),
    "pipeline.PipelineTmaAsync.init_empty_barrier_arrive_signal": (_QUACK,),
}
"""The names behind `cutlass.`. Any other private name is an error (E5009) at its use."""
