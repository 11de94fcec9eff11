# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memories of pointers, which programs name in annotations, by the dialect `cute` of another compiler."""

from tilefold.builder.tensors.address_space import AddressSpace

__all__ = ["AddressSpace"]
