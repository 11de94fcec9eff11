# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The type of tensor maps in memory, of the dialect `cute_nvgpu` of another compiler."""

__all__ = ["TmaDescriptorTiledType"]


class TmaDescriptorTiledType:
    """The type of a tensor map of tiles."""

    @staticmethod
    def get() -> "TmaDescriptorTiledType":
        """The type."""
        return TmaDescriptorTiledType()
