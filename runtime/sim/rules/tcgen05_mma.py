# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for multiplications by the tensor core and their commits (PTX ISA, tcgen05.mma, tcgen05.commit)."""

import numpy as np

from ....base.errors import Code
from ....base.target import MAX_CLUSTER
from ....dialects.ptx.tcgen05.base import TensorDescriptorOp
from ....dialects.ptx.tcgen05.mma import TensorCommitOp, TensorMmaBase, TensorMmaOp, TensorMmaScaledOp, TensorMmaWsOp
from ..events import Step
from ..faults import site_of
from ..launch import Completion
from ..ordering.cluster import map_to_rank
from ..ordering.mbarrier import mbarriers_of
from ..tcgen05.multiply import Call, Tcgen05MmaRule
from ..tcgen05.pipe import Issued, commit, uncommitted
from ..translate import Rules, Translator
from ..warp import Warp
from .ptx_mbarrier import Barriers
from .ptx_wgmma import matrix_descriptor
from .tcgen05_copies import one_lane, same


def _mma(op: TensorMmaOp | TensorMmaWsOp | TensorMmaScaledOp, t: Translator) -> Step:
    name, site = op.mnemonic(), site_of(op)
    divisor = op.divisor if isinstance(op, TensorMmaOp) else 0
    factors = op.factors if isinstance(op, TensorMmaScaledOp) else 0
    multiply = Tcgen05MmaRule(op, t, op.of, op.blocks, name, ws=op.WS, divisor=divisor, factors=factors,
                               is_sparse=op.is_sparse)  # fmt: skip
    d, a, b, idesc, accumulate = t.slots((op.d, op.a, op.b, op.idesc, op.accumulate))
    mask = t.slots(op.mask) if isinstance(op, TensorMmaOp) else ()
    zero = t.slot(op.zero_columns) if isinstance(op, TensorMmaWsOp) and op.zero_columns is not None else None
    scales = t.slots((op.sfa, op.sfb)) if isinstance(op, TensorMmaScaledOp) else ()
    metadata = None if op.metadata is None else t.slot(op.metadata)
    in_cells, unsupported = op.a_in_tensor_memory, _unsupported(op)

    def step(warp: Warp) -> None:
        lane = one_lane(warp, site, name)
        if unsupported:
            warp.fault(Code.SIM_UNSUPPORTED, site, lane, f"the simulator does not execute {unsupported} of {name}")
        held, cells = warp.registers, multiply.cells
        addresses = [cells.address(warp, held[slot]) for slot in scales]
        call = Call(
            cells.address(warp, held[d]),
            cells.address(warp, held[a]) if in_cells else same(warp, held[a]),
            same(warp, held[b]),
            same(warp, held[idesc]),
            bool(same(warp, held[accumulate])),
            tuple([same(warp, held[slot]) for slot in mask]),
            0 if zero is None else same(warp, held[zero]),
            (addresses[0], addresses[1]) if addresses else None,
            None if metadata is None else cells.address(warp, held[metadata]),
        )
        multiply.start(warp, lane, call)

    return step


def _unsupported(op: TensorMmaBase) -> str:
    """The part of an instruction that has no model here."""
    if op.is_sparse and isinstance(op, TensorMmaScaledOp):
        return "the scale factors of sparse matrices"
    return "the shift of A" if isinstance(op, TensorMmaOp) and op.ashift is not None else ""


def _commit(op: TensorCommitOp, t: Translator) -> Step:
    site, name, barriers, bar = site_of(op), op.mnemonic(), Barriers(op, op.bar, t, "async"), t.slot(op.bar)
    mask = None if op.multicast is None else t.slot(op.multicast)

    def step(warp: Warp) -> None:
        lane = one_lane(warp, site, name)
        open = warp.state(Issued).open
        if not any(work.use.lane == lane for work in open):
            other = uncommitted(warp.block)
            if other is not None:
                text = f"commits nothing, and {other.describe(lane)} is not committed"
                hint = "let the thread that issues the work commit it: choose it once"
                warp.fault(Code.SIM_TENSOR_ISSUE, site, lane, text, hint, other=other.origin)
        address = same(warp, warp.registers[bar])
        arrival = commit(warp, site, lane, barriers.shared.shadow is not None)
        for at in _places(warp, lane, address, None if mask is None else same(warp, warp.registers[mask])):
            (row,) = barriers.rows(warp, address=np.full(warp.lanes, at)).tolist()
            barrier = mbarriers_of(warp.block.cluster)[row]
            barrier.track(arrival, warp, np.array([lane]))
            if warp.launch.completion is Completion.EARLY:
                barrier.land()

    def _places(warp: Warp, lane: int, address: int, chosen: int | None) -> list[int]:
        if chosen is None:
            return [address]
        size = warp.block.cluster.size
        ranks = [rank for rank in range(MAX_CLUSTER) if chosen >> rank & 1]
        if not ranks or ranks[-1] >= size:
            text = f"the mask {chosen & 0xFFFF:#06x} names {f'rank {ranks[-1]}' if ranks else 'no block'}"
            hint = "bit i stands for rank i: set bits of ranks below the size of the cluster"
            warp.fault(Code.SIM_OUT_OF_BOUNDS, site, lane, f"{text}; the cluster has {size} blocks", hint)
        return [int(map_to_rank(address, rank)) for rank in ranks]

    return step


TCGEN05_MMA: Rules = {
    TensorMmaOp: _mma,
    TensorMmaWsOp: _mma,
    TensorMmaScaledOp: _mma,
    TensorCommitOp: _commit,
    TensorDescriptorOp: matrix_descriptor,
}
