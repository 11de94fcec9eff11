# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One execution of a copy atom by its table: which thread's value comes from where."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from ....layout.algebra.core import Layout
from ....layout.atoms.copy_atom import CopyAtom
from ....layout.atoms.instructions import Absent
from ....layout.atoms.numbers import Transposed
from ...arrays.storage import pack, unpack
from ..memory.arena import WORDS


@dataclass(frozen=True, slots=True)
class Exchange:
    """The movement of an atom as arrays, for a warp or less.

    A lane `i` reads `values_in` values and gets `values_out`. Value `v` that it gets is value `source_value[i, v]` of
    lane `source_lane[i, v]`. `readers` are the lanes whose values are used at all, `writers` those that write what no
    lane before them does.
    """

    values_in: int
    values_out: int
    readers: NDArray[np.bool_]
    writers: NDArray[np.bool_]
    source_lane: NDArray[np.int64]
    source_value: NDArray[np.int64]

    @property
    def crosses_lanes(self) -> bool:
        """Whether values go from one lane to another, so that the whole warp must take part."""
        return any(lane != source for lane, row in enumerate(self.source_lane.tolist()) for source in row)

    def move(self, content: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
        """From the bytes that each lane reads, values of `bits` as (lanes, bytes), those that each lane gets; the lanes
        are those of whole warps, or fewer.
        """
        lanes = content.shape[0]
        values = content.view(WORDS[bits // 8]) if bits >= 8 else unpack(content, bits)
        places = self.source_lane[:lanes] * self.values_in + self.source_value[:lanes]
        moved = values.reshape(-1, min(lanes, WARP) * self.values_in).take(places, axis=1).reshape(lanes, -1)
        return moved.view(np.uint8) if bits >= 8 else pack(moved, bits)


@cache
def exchange_of(atom: CopyAtom, lanes: int) -> Exchange | None:
    """The movement of `atom` by `lanes` lanes, which are groups of its threads one after the other.

    None for an atom that the table does not describe in full: one whose threads are not consecutive lanes, or that PTX
    does not have.
    """
    consecutive = all(atom.thr_id(i) == i for i in range(atom.threads))
    if isinstance(atom.instruction, Absent) or not consecutive or lanes % atom.threads:
        return None
    if isinstance(atom.contract.numbers, Transposed):
        return _transposition() if atom.val_bits == 16 else None
    source, target = _table(atom.src), _table(atom.dst)
    home: dict[int, tuple[int, int]] = {}
    for thread, row in enumerate(source):
        for value, place in enumerate(row):
            home.setdefault(place, (thread, value))
    threads = np.array([[home[place][0] for place in row] for row in target])
    values = np.array([[home[place][1] for place in row] for row in target])
    groups = lanes // atom.threads
    first = np.repeat(np.arange(groups) * atom.threads, atom.threads)[:, None]
    source_lane = np.tile(threads, (groups, 1)) + first
    readers = np.zeros(lanes, bool)
    readers[source_lane.ravel()] = True
    writers = np.tile([row not in target[:thread] for thread, row in enumerate(target)], groups)
    return Exchange(len(source[0]), len(target[0]), readers, writers, source_lane, np.tile(values, (groups, 1)))


def _transposition() -> Exchange:
    """The exchange of movmatrix, by registers: lane t holds elements 2*(t % 4) and the next of row t / 4."""
    lane, value = np.arange(WARP)[:, None], np.arange(2)[None, :]
    row, column = 2 * (lane % 4) + value, lane // 4  # of the matrix before it is transposed
    everyone = np.ones(WARP, bool)
    return Exchange(2, 2, everyone, everyone, 4 * row + column // 2, np.broadcast_to(column % 2, (WARP, 2)))


def _table(layout: Layout) -> list[list[int]]:
    """The place of each value of each thread."""
    threads, values = layout[0].size, layout[1].size
    return [[int(layout(t, v)) for v in range(values)] for t in range(threads)]
