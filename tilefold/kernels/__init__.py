# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A library of kernels: functions of arrays of NumPy, torch and JAX, for every target and the simulator
(docs/kernels.md).
"""

from .attentions import attention, decode_attention
from .elementwise import quantize, rope, swiglu
from .losses import cross_entropy
from .norms import layer_norm, rms_norm, softmax
from .products import gemm, grouped_gemm, linear, scaled_gemm

__all__ = [
    "attention", "cross_entropy", "decode_attention", "gemm", "grouped_gemm", "layer_norm", "linear", "quantize",
    "rms_norm", "rope", "scaled_gemm", "softmax", "swiglu",
]  # fmt: skip
