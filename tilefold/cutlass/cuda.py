# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of CUDA in the process (`cutlass.cuda`)."""


def initialize_cuda_context(device_id: int = 0) -> None:
    """Does nothing: the first launch makes a GPU ready."""


__all__ = ["initialize_cuda_context"]
