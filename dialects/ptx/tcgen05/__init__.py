# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of tcgen05: tensor memory, and the tensor core that one thread issues work to (PTX ISA, 5th Generation
Tensor Core Instructions).
"""
