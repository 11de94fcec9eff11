# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running kernels: the engine protocol, the simulator, CUDA, and the tensors that kernels run on."""
