# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules that CuTe programs import, and the modules of tilefold that they are."""

import sys
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from tilefold.cute.public import publish

MODULES: Mapping[str, str] = MappingProxyType({
    "": "tilefold.cutlass",
    "cute": "tilefold.cute",
    "cute.arch": "tilefold.cute.arch",
    "cute.arch.nvvm_wrappers": "tilefold.cute.arch",
    "cute.arch.nvvm": "tilefold.cutlass.mlir.dialects.nvvm",
    "cute.arch.smem": "tilefold.cute.arch",
    "cute.atom": "tilefold.cute",
    "cute.core": "tilefold.cute",
    "cute.experimental": "tilefold.cute.experimental",
    "cute.experimental.host_runtime": "tilefold.cute.experimental",
    "cute.experimental.iket": "tilefold.cutlass.iket",
    "cute.iket": "tilefold.cutlass.iket",
    "cute.math": "tilefold.cute.math",
    "cute.nvgpu": "tilefold.cute.nvgpu",
    "cute.nvgpu.common": "tilefold.cute.nvgpu",
    "cute.nvgpu.cpasync": "tilefold.cute.nvgpu.cpasync",
    "cute.nvgpu.tcgen05": "tilefold.cute.nvgpu.tcgen05",
    "cute.nvgpu.tcgen05.copy": "tilefold.cute.nvgpu.tcgen05",
    "cute.nvgpu.tcgen05.mma": "tilefold.cute.nvgpu.tcgen05",
    "cute.nvgpu.warp": "tilefold.cute.nvgpu.warp",
    "cute.nvgpu.warp.mma": "tilefold.cute.nvgpu.warp",
    "cute.nvgpu.warpgroup": "tilefold.cute.nvgpu.warpgroup",
    "cute.runtime": "tilefold.cute.runtime",
    "cute.testing": "tilefold.cute.testing",
    "cute.tensor": "tilefold.cutlass.tensor",
    "cute.typing": "tilefold.cute.typing",
    "jax": "tilefold.cutlass.jax",
    "jax.testing": "tilefold.cutlass.jax",
    "memory": "tilefold.cute.utils",
    "runtime": "tilefold.cute.runtime",
    "experimental": "tilefold.cutlass.experimental",
    "experimental.cuda": "tilefold.cutlass.experimental.primitives",
    "experimental.primitives": "tilefold.cutlass.experimental.primitives",
    "experimental.task_scheduling": "tilefold.cutlass.experimental.task_scheduling",
    **{
        f"experimental.task_scheduling.{name}": f"tilefold.cutlass.experimental.task_scheduling.{name}"
        for name in ("enums", "memory", "resources", "schedule_builder", "task", "task_manager")
    },
    "cuda": "tilefold.cutlass.architectures",
    "pipeline": "tilefold.cute.pipeline",
    "pipeline.helpers": "tilefold.cute.pipeline",
    "pipeline.sm90": "tilefold.cute.pipeline",
    "testing": "tilefold.cute.testing",
    "torch": "tilefold.cutlass.torch",
    "utils": "tilefold.cute.utils",
    "utils.ampere_helpers": "tilefold.cutlass.architectures",
    "utils.distributed": "tilefold.cute.utils.distributed",
    "utils.dynamic_persistent_tile_scheduler": "tilefold.cute.utils",
    "utils.tensormap_manager": "tilefold.cute.utils",
    "vector": "tilefold.cutlass.tensor",
    "_mlir": "tilefold.cutlass.mlir",
    "_mlir.ir": "tilefold.cutlass.mlir.ir",
    "_mlir_helpers": "tilefold.cutlass.mlir",
    "_mlir_helpers.arith": "tilefold.cutlass.mlir.helpers",
    "_mlir_helpers.math": "tilefold.cute.math",
    "_mlir_helpers.op": "tilefold.cutlass.cutlass_dsl",
    "_mlir.extras": "tilefold.cutlass.mlir",
    "_mlir.extras.types": "tilefold.cutlass.mlir.types",
    "_mlir_helpers.dialect_proxy": "tilefold.cutlass.mlir.helpers",
    "_mlir.dialects": "tilefold.cutlass.mlir.dialects",
    "_mlir.dialects.builtin": "tilefold.cutlass.mlir.dialects.cute_nvgpu",
    "_mlir.dialects.cute": "tilefold.cutlass.mlir.dialects.cute",
    "_mlir.dialects.cute_nvgpu": "tilefold.cutlass.mlir.dialects.cute_nvgpu",
    "_mlir.dialects.arith": "tilefold.cutlass.mlir.dialects.arith",
    "_mlir.dialects.llvm": "tilefold.cutlass.mlir.dialects.llvm",
    "_mlir.dialects.math": "tilefold.cute.math",
    "_mlir.dialects.nvvm": "tilefold.cutlass.mlir.dialects.nvvm",
    "_mlir.dialects.vector": "tilefold.cutlass.mlir.dialects.vector",
    "_mlir._mlir_libs": "tilefold.cutlass.mlir",
    "_mlir._mlir_libs._cutlass_ir": "tilefold.cutlass.mlir",
    "_mlir._mlir_libs._cutlass_ir._mlir": "tilefold.cutlass.mlir",
    "_mlir._mlir_libs._cutlass_ir._mlir.ir": "tilefold.cutlass.mlir.ir",
    "cutlass_dsl": "tilefold.cutlass.cutlass_dsl",
    "base_dsl": "tilefold.cutlass.cutlass_dsl",
    "base_dsl._mlir_helpers": "tilefold.cutlass.mlir",
    "base_dsl._mlir_helpers.op": "tilefold.cutlass.cutlass_dsl",
    "base_dsl.arch": "tilefold.cutlass.architectures",
    "base_dsl.ast_preprocessor": "tilefold.cutlass.cutlass_dsl",
    "base_dsl.common": "tilefold.cutlass.cutlass_dsl",
    "base_dsl.compiler": "tilefold.cute",
    "base_dsl.dsl": "tilefold.cutlass.cutlass_dsl",
    "base_dsl.enums": "tilefold.cutlass.architectures",
    "base_dsl.runtime": "tilefold.cutlass.cutlass_dsl",
    "base_dsl.runtime.cuda": "tilefold.cutlass.cutlass_dsl",
    "base_dsl.typing": "tilefold.cutlass.base_typing",
    "utils.gemm": "tilefold.cute.utils.gemm",
    "utils.gemm.sm100": "tilefold.cute.utils.gemm.sm100",
    "utils.layout": "tilefold.cute.utils",
    "utils.pipeline": "tilefold.cute.pipeline",
    "utils.smem_allocator": "tilefold.cute.utils",
    "utils.static_persistent_tile_scheduler": "tilefold.cute.utils",
    "utils.sm100": "tilefold.cute.utils.blackwell_helpers",
    "utils.sm90": "tilefold.cute.utils.hopper_helpers",
    "utils.tensor_helpers": "tilefold.cute.utils",
    "utils.hardware_info": "tilefold.cute.utils",
    "utils.blackwell_helpers": "tilefold.cute.utils.blackwell_helpers",
    "utils.blockscaled_layout": "tilefold.cute.utils.blockscaled_layout",
    "utils.hopper_helpers": "tilefold.cute.utils.hopper_helpers",
    "utils.mixed_input_helpers": "tilefold.cute.utils.mixed_input_helpers",
})  # fmt: skip
"""The module for each dotted name below `cutlass`."""


def add_modules(root: str) -> None:
    """Makes the modules importable as parts of the package `root`. They are the modules themselves, not copies."""
    for target in set(MODULES.values()):
        publish(import_module(target).__name__)
    for name, target in MODULES.items():
        module = sys.modules.setdefault(f"{root}.{name}" if name else root, import_module(target))
        parent, _, last = name.rpartition(".")
        if name:
            holder = import_module(MODULES[parent])
            if last not in vars(holder):
                setattr(holder, last, module)
