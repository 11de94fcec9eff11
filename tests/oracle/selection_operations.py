# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded choices of an epilogue: copies from tensor memory and layouts of shared memory."""

import re
from collections.abc import Callable

from tilefold.layout.atoms.tmem_copy import SHAPES, repeat_to, select_epilogue_smem, select_tmem_load

from .algebra_operations import Inputs
from .record import parse
from .umma_operations import in_bytes, width

_OP = re.compile(r"SM100_TMEM_(LOAD|STORE)_([0-9]+dp[0-9]+b)1x(_16b)?")


def _repeat(inputs: Inputs, dynamic: bool) -> Inputs:
    match = _OP.fullmatch(inputs["op"])
    assert match is not None
    shape = next(name for name, (word, *_) in SHAPES.items() if word == match[2])
    return {"op": repeat_to(match[1] == "LOAD", shape, inputs["num_col_bits"], bool(match[3])).name}


def _load(inputs: Inputs, dynamic: bool) -> Inputs:
    lanes, columns = parse(inputs["tmem_shape"], False)
    return {"op": select_tmem_load(width(inputs["acc"]), width(inputs["d"]), lanes, columns, inputs["d_major"]).name}


def _smem(inputs: Inputs, dynamic: bool) -> Inputs:
    bits, (m, n) = width(inputs["type"]), parse(inputs["epi_tile"], False)
    return {"atom_layout": in_bytes(select_epilogue_smem(bits, m, n, inputs["major"]), bits)}


SELECTION: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "sm100_get_epilogue_smem_swizzle_layout_atom": _smem,
    "sm100_get_tmem_load_op": _load,
    "tmem_op_repeater": _repeat,
}
