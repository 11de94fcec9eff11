# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The targets of kernels as programs compare them."""

from enum import Enum
from functools import total_ordering


@total_ordering
class Arch(Enum):
    """Targets by compute capability, in its order; those of features of one GPU or family come after the plain one."""

    sm_80 = (8, 0, "")
    sm_86 = (8, 6, "")
    sm_87 = (8, 7, "")
    sm_89 = (8, 9, "")
    sm_90 = (9, 0, "")
    sm_90a = (9, 0, "a")
    sm_100 = (10, 0, "")
    sm_100a = (10, 0, "a")
    sm_100f = (10, 0, "f")
    sm_101 = (10, 1, "")
    sm_101a = (10, 1, "a")
    sm_101f = (10, 1, "f")
    sm_103 = (10, 3, "")
    sm_103a = (10, 3, "a")
    sm_103f = (10, 3, "f")
    sm_110 = (11, 0, "")
    sm_110a = (11, 0, "a")
    sm_110f = (11, 0, "f")
    sm_120 = (12, 0, "")
    sm_120a = (12, 0, "a")
    sm_120f = (12, 0, "f")
    sm_121 = (12, 1, "")
    sm_121a = (12, 1, "a")
    sm_121f = (12, 1, "f")

    @property
    def major(self) -> int:
        """The first number of the compute capability."""
        return self.value[0]

    @property
    def minor(self) -> int:
        """The second number of the compute capability."""
        return self.value[1]

    def is_family_of(self, arch: "Arch") -> bool:
        """Whether it is in the family of `arch`: of its major number, and not before it."""
        return self.major == arch.major and self.minor >= arch.minor

    def __lt__(self, other: "Arch") -> bool:
        return self._place() < other._place()

    def _place(self) -> tuple[int, int, str]:
        return self.value
