# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations that recorded cases name: from their inputs to their outputs."""

from collections.abc import Callable
from typing import Any

from .algebra_operations import ALGEBRA, is_composition
from .copy_operations import COPY
from .mma_operations import MMA, holds_its_matrices
from .scale_operations import SCALES
from .selection_operations import SELECTION
from .tma_operations import TMA, is_copy
from .tma_umma_operations import TMA_UMMA, fills_stages
from .tmem_operations import TMEM
from .umma_operations import UMMA, is_divided_evenly
from .wgmma_operations import WGMMA

Operation = Callable[[dict[str, Any], bool], dict[str, Any]]

OPERATIONS: dict[str, Operation] = {
    **ALGEBRA,
    **COPY,
    **MMA,
    **SCALES,
    **SELECTION,
    **TMA,
    **TMA_UMMA,
    **TMEM,
    **UMMA,
    **WGMMA,
}


def is_right(op: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> bool:
    """Whether `outputs` is mathematically right, for the operations whose recorded results are not all so."""
    if op in ("mma_atom", "umma_atom"):
        return holds_its_matrices(outputs)
    if op == "tma_map":
        return is_copy(inputs)
    if op == "make_tma_atom_sm100":
        return fills_stages(outputs)
    if op == "umma_tiled_mma":
        return is_divided_evenly(outputs)
    return op == "composition" and is_composition(inputs, outputs["result"])
