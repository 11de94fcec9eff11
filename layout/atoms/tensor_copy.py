# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor copies by one thread between global and shared memory (CuTe's copy_sm90_tma.hpp)."""

from collections.abc import Mapping
from types import MappingProxyType

from ...base.spaces import GMEM, SMEM
from ...base.target import TargetFamily
from ..algebra.core import Layout
from .copy_atom import CopyAtom
from .instructions import REDUCTIONS, TensorCopy

TENSOR_COPIES: Mapping[str, TensorCopy] = MappingProxyType(
    {
        "SM90_TMA_LOAD": TensorCopy(),
        "SM90_TMA_LOAD_MULTICAST": TensorCopy(multicast=True),
        "SM90_TMA_STORE": TensorCopy(to_shared=False),
    }
    | {f"SM90_TMA_REDUCE_{name.upper()}": TensorCopy(to_shared=False, reduction=name) for name in REDUCTIONS}
)
"""The tensor copies by CuTe's names. CuTe has of the reductions the addition alone."""

_NAMES = {instruction: name for name, instruction in TENSOR_COPIES.items()}


def tensor_copy_atom(instruction: TensorCopy, bits: int) -> CopyAtom:
    """The atom of a tensor copy whose box has `bits` bits. Layouts decide the box (see `make_tma_copy`)."""
    layout = Layout((1, bits), (0, 1))
    spaces = ((GMEM,), (SMEM,))
    return CopyAtom(
        name=_NAMES[instruction],
        thr_id=Layout(1, 0),
        src_bits=layout,
        dst_bits=layout,
        ref_bits=layout,
        src_spaces=spaces[not instruction.to_shared],
        dst_spaces=spaces[instruction.to_shared],
        targets=TargetFamily(90, 80),
        instruction=instruction,
        source="PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor",
    )
