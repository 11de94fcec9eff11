# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicates of copies: reading them, and executing a copy only in the lanes where they hold."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....dialects import tile
from ...arrays.storage import distances
from ...engine import NumPyArray
from ..faults import Site, site_of
from ..memory.tensors import port, tensor_value
from ..translate import Translator
from ..warp import Warp

Flags = NDArray[np.bool_]


def read_predicates(op: tile.CopyOp, t: Translator) -> Callable[[Warp], Flags] | None:
    """A function that reads a copy's predicates, one for each element of the source; None if it has none."""
    layout = op.pred_layout
    if op.pred is None or layout is None:
        return None
    assert isinstance(op.pred.type, tile.TensorType)
    slot, site, reader = t.slot(op.pred), site_of(op), port(op, op.pred.type, "load", t)
    places, of_element = np.unique(distances(layout), return_inverse=True)

    def read(warp: Warp) -> Flags:
        tensor = tensor_value(warp.registers[slot])
        flags = [reader.load(warp, tensor, int(place)) for place in places]
        holds = np.concatenate(flags, axis=1).astype(bool)
        warp.note(site, "decides by", holds)
        return holds[:, of_element]

    return read


def under(warp: Warp, chosen: NumPyArray | None, action: Callable[[], None]) -> None:
    """Executes `action` in the active lanes where `chosen` (active,) holds, in all where it is None."""
    if chosen is None or chosen.all():
        action()
    elif chosen.any():
        before = warp.mask_state()
        lanes = np.zeros(warp.lanes, bool)
        lanes[warp.lane_numbers()[chosen]] = True
        warp.narrow(lanes)
        action()
        warp.restore(before)


def one_for_all(warp: Warp, site: Site, flags: Flags) -> NDArray[np.bool_]:
    """The predicate of each lane for one execution of an atom: a fault (E3214) where those of its values differ."""
    _fault_where(
        warp, site, flags != flags[:, :1], "the predicates of the values that one atom moves differ",
        "give all values of one execution the same predicate: a mode of stride 0, or an atom of one value",
    )  # fmt: skip
    return flags[:, 0]


def leading_values(warp: Warp, site: Site, flags: Flags) -> NDArray[np.int64]:
    """How many values each lane copies with zero-fill: a fault (E3214) where those are not the first ones."""
    counts: NDArray[np.int64] = flags.sum(axis=1)
    wrong: Flags = flags != (np.arange(int(flags.shape[1])) < counts[:, None])
    _fault_where(
        warp, site, wrong,
        "an atom with zero-fill copies its first values, but a false predicate comes before a true one",
        "zero-fill is for the end of a row",
    )  # fmt: skip
    return counts


def _fault_where(warp: Warp, site: Site, wrong: Flags, message: str, hint: str) -> None:
    if wrong.any():
        index = int(wrong.any(axis=1).argmax())
        warp.fault(Code.SIM_PREDICATE, site, int(warp.lane_numbers()[index]), message, hint)
