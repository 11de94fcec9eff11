# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of a run, and when its asynchronous operations complete."""

from dataclasses import dataclass
from enum import Enum

from ..options import MAX_BYTES, MAX_STEPS


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a run; beyond them it ends with an error.

    `steps` are operations executed by warps, `bytes` the memory of the arguments and of the block,
    `characters` the text that the kernel prints.
    """

    steps: int = MAX_STEPS
    bytes: int = MAX_BYTES
    characters: int = 16 << 20


class Completion(Enum):
    """When the asynchronous operations complete of which mbarriers tell, as PTX leaves open: when a thread looks at the
    mbarrier, when they are issued, or at random times in between.
    """

    LATE = "late"
    EARLY = "early"
    RANDOM = "random"
