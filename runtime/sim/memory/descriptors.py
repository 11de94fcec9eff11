# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix descriptors of shared addresses (PTX ISA, Asynchronous warpgroup-level matrix instructions)."""

from typing import Any

import numpy as np

from ....base.errors import Code
from ....layout.atoms.wgmma_smem import START_MASK, UNIT
from ..faults import Site
from ..values import Value
from ..warp import Warp
from .provenance import HINT


def descriptor_at(warp: Warp, site: Site, address: Value, fields: int) -> Value:
    """A matrix descriptor, with `fields`, of an operand that begins at a shared address. SimulationError (E3202) where
    a coordinate outside its mode has led to the address.
    """
    lanes: Any = np.unique(warp.select(address))
    for place in lanes.tolist():
        view = warp.launch.outside.describe(place)
        if view is not None:
            lane = int(warp.lane_numbers()[(warp.select(address) == place).argmax()])
            warp.fault(Code.SIM_OUT_OF_BOUNDS, site, lane, f"reads a matrix through {view}", HINT)
    return address // UNIT & START_MASK | fields
